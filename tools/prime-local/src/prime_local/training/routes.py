"""Routes of training runs."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.training.external import ExternalRun
from prime_local.training.sample_store import PREFIX


async def create_external_run(call: Call) -> Reply:
    if not call.core.recording.capacity.access.external_runs:
        raise PlatformError(403, "This team is not enabled for external runs")
    run = call.core.recording.external_runs.create(call.body)
    await call.core.saved()
    return Reply({"run": run.to_wire()}, 201)


async def set_external_run_status(call: Call) -> Reply:
    status, message = call.body["status"], call.body.get("error_message")
    call.core.recording.external_runs.close(_run(call), status, message)
    await call.core.saved()
    return Reply({})


async def finalize_external_run(call: Call) -> Reply:
    runs = call.core.recording.external_runs
    runs.finalize(runs.get(call.body["run_id"]), call.body["exit_code"])
    await call.core.saved()
    return Reply({})


async def log_external_run_metrics(call: Call) -> Reply:
    runs = call.core.recording.external_runs
    runs.log(runs.get(call.body["run_id"]), call.body["metrics"])
    await call.core.saved()
    return Reply({})


async def presign_external_run_samples(call: Call) -> Reply:
    run_id, step = _step(call)
    found, signature = call.core.recording.sample_files.announce(run_id, step)
    await call.core.saved()
    host = f"{call.request.scheme}://{call.request.host}"
    url = f"{host}{PREFIX}{found.key}?signature={signature}"
    return Reply({"data": {"presignedUrl": url, "s3Key": found.key}})


async def confirm_external_run_samples(call: Call) -> Reply:
    run_id, step = _step(call)
    call.core.recording.sample_files.confirm(run_id, step, call.body["s3_key"])
    await call.core.saved()
    return Reply({})


async def get_run_metrics(call: Call) -> Reply:
    first, last = call.parameters.get("min_step"), call.parameters.get("max_step")
    rows = [
        row
        for row in call.core.recording.external_runs.metrics(_run(call))
        if (first is None or row.get("step", first - 1) >= first)
        and (last is None or row.get("step", last + 1) <= last)
    ]
    return Reply({"metrics": rows[: call.parameters.get("limit")]})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_external_run,
        set_external_run_status,
        finalize_external_run,
        log_external_run_metrics,
        presign_external_run_samples,
        confirm_external_run_samples,
        get_run_metrics,
    )
}


def _run(call: Call) -> ExternalRun:
    return call.core.recording.external_runs.get(call.parameters["run_id"])


def _step(call: Call) -> tuple[str, int]:
    body: JsonObject = call.body
    return call.core.recording.external_runs.get(body["run_id"]).id, body["step"]
