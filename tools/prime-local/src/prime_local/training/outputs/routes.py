"""Routes of what runs show: logs, metrics, samples, checkpoints."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.training.external import ExternalRun
from prime_local.training.outputs import series
from prime_local.training.outputs.components import ENV_SERVER, Component, env_servers, pick
from prime_local.training.outputs.logs import DEFAULT_SINCE, ComponentLog, Wanted, read, readable
from prime_local.training.outputs.saves import checkpoint_rows
from prime_local.training.runs.record import Run

_NARROW = 200


async def get_run_logs(call: Call) -> Reply:
    asked = call.parameters
    run = call.core.recording.runs.get(asked["run_id"])
    component = pick(run, asked.get("component"), asked.get("pod_index"), asked.get("env_name"))
    return await _log(call, run, component)


async def get_run_env_server_logs(call: Call) -> Reply:
    asked = call.parameters
    run = call.core.recording.runs.get(asked["run_id"])
    return await _log(call, run, pick(run, ENV_SERVER, asked["env_index"], asked["env_name"]))


async def list_run_env_servers(call: Call) -> Reply:
    run = _hosted(call)
    return Reply({"env_servers": [] if run is None else env_servers(run)})


async def get_run_metrics(call: Call) -> Reply:
    asked, run = call.parameters, _hosted(call)
    bounds = (asked.get("min_step"), asked.get("max_step"), asked.get("limit"))
    if run is None:
        return Reply({"metrics": _logged(call, *bounds)})
    return Reply({"metrics": series.metrics(run, _now(call), *bounds)})


async def get_run_progress(call: Call) -> Reply:
    run = _hosted(call)
    if run is not None:
        return Reply(series.progress(run, _now(call)))
    steps = [row["step"] for row in _logged(call) if type(row.get("step")) is int]
    return Reply(
        {
            "latestStep": max(steps, default=None),
            "stepsWithSamples": [],
            "stepsWithDistributions": [],
            "lastUpdatedAt": _external(call).updated_at,
        }
    )


async def get_run_samples(call: Call) -> Reply:
    asked, run = call.parameters, _hosted(call)
    page, limit = asked["page"], asked["limit"]
    if run is not None:
        return Reply(series.samples(run, _now(call), asked["step"], page, limit))
    nothing = {"samples": [], "total": 0, "page": page, "limit": limit, "total_pages": 0}
    return Reply({"run_id": asked["run_id"], **nothing})


async def get_run_distributions(call: Call) -> Reply:
    asked, run = call.parameters, _hosted(call)
    kind, step = asked.get("type") or "rewards", asked.get("step")
    if run is not None:
        return Reply(series.distribution(run, _now(call), kind, step))
    return Reply({"chartData": {"histogramData": []}, "step": step})


async def list_run_checkpoints(call: Call) -> Reply:
    run = _hosted(call)
    status = call.parameters.get("status_filter")
    rows = [] if run is None else checkpoint_rows(run, _now(call), status)
    return Reply({"checkpoints": rows})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        get_run_logs,
        get_run_env_server_logs,
        list_run_env_servers,
        get_run_metrics,
        get_run_progress,
        get_run_samples,
        get_run_distributions,
        list_run_checkpoints,
    )
}


async def _log(call: Call, run: Run, component: Component) -> Reply:
    asked = call.parameters
    wanted = Wanted(
        asked["tail_lines"],
        asked.get("search"),
        bool(asked.get("regex")),
        asked.get("level"),
        asked.get("since_seconds"),
    )
    if call.assumptions.log_window == "narrow" and not wanted.filtered:
        wanted = Wanted(min(wanted.tail_lines, _NARROW))
    readable(run, component)
    # What is kept of a run that is over is kept whole.
    reach = wanted.since_seconds or (None if run.status.final else DEFAULT_SINCE)
    now = _now(call)
    since = None if reach is None else now - reach
    return Reply({"logs": await read(ComponentLog(run, component, now), wanted, since=since)})


def _now(call: Call) -> float:
    return call.core.recording.runs.now()


def _hosted(call: Call) -> Run | None:
    """Return the hosted run that is meant, or None for a run of elsewhere.

    Raises:
        PlatformError: 404.
    """
    run = call.core.recording.runs.find(call.parameters["run_id"])
    if run is None:
        _external(call)
    return run


def _external(call: Call) -> ExternalRun:
    return call.core.recording.external_runs.get(call.parameters["run_id"])


def _logged(
    call: Call, first: int | None = None, last: int | None = None, limit: int | None = None
) -> list[JsonObject]:
    """Return the metrics that an external run has logged, of those that are asked for."""
    rows = [
        row
        for row in call.core.recording.external_runs.metrics(_external(call))
        if (first is None or row.get("step", first - 1) >= first)
        and (last is None or row.get("step", last + 1) <= last)
    ]
    return rows[:limit]
