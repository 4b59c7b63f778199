"""Routes of runs: their dispatch and their life, and the lists that hold external ones too."""

from __future__ import annotations

import hashlib

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.sandboxes.record import Owner
from prime_local.training.external import ExternalRun
from prime_local.training.runs.admission import SOURCE_REFUSED
from prime_local.training.runs.record import KIND, Run
from prime_local.training.runs.registry import RunRegistry
from prime_local.training.runs.wire import date, to_dispatch_wire, to_wire

_REPOSITORY = "registry.example/primeintellect-ai/prime-rl"
_TOKEN_LENGTH = 40


async def create_training_run(call: Call) -> Reply:
    owner = Owner(call.core.user_id, _team(call, call.body.get("teamId")))
    doom = None if call.fault is None else call.fault.fails
    run = _runs(call).create(call.body, owner, doom)
    return await _dispatched(call, run)


async def resume_training_run(call: Call) -> Reply:
    return await _dispatched(call, _runs(call).resume(call.parameters["run_id"], call.body))


async def prepare_training_run(call: Call) -> Reply:
    if call.body.get("sourceRef"):
        raise PlatformError(403, SOURCE_REFUSED)
    tag = call.body.get("imageTag") or "main"
    digest = hashlib.sha256(tag.encode()).hexdigest()
    commit = hashlib.sha1(tag.encode(), usedforsecurity=False).hexdigest()
    runtime = {
        "repository": _REPOSITORY,
        "digest": f"sha256:{digest}",
        "image_commit": commit,
        "source_commit": None,
        "schema_commit": commit,
    }
    install = {"python": "3.12", "requirements": ["prime-rl-configs"], "constraints": []}
    return Reply(
        {
            "contract_version": 1,
            "mode": call.body.get("mode") or "rl",
            "runtime": runtime,
            "schema_install": install,
            "submission_supported": True,
        }
    )


async def pause_training_run(call: Call) -> Reply:
    run = _run(call)
    _runs(call).pause(run)
    await call.core.saved()
    return Reply({"runId": run.id, "status": run.status.value})


async def stop_run(call: Call) -> Reply:
    run = _run(call)
    _runs(call).stop(run)
    return await _changed(call, run)


async def restart_run(call: Call) -> Reply:
    run = _run(call)
    _runs(call).restart(run)
    return await _changed(call, run)


async def get_training_run(call: Call) -> Reply:
    run = _runs(call).find(call.parameters["run_id"])
    if run is None:
        return Reply({"run": _external(call).to_wire()})
    return Reply({"run": _wire(call, run)})


async def list_training_runs(call: Call) -> Reply:
    query = call.parameters
    team = _team(call, query.get("team_id"))
    external = call.core.recording.external_runs.select(team)
    runs = [run for run in _runs(call).all() if run.owner.team_id == team]
    dated = [(date(run.created_at), _wire(call, run, detail=False)) for run in runs]
    dated += [(run.created_at, run.to_wire()) for run in external]
    rows = [row for _, row in sorted(dated, key=lambda each: each[0], reverse=True)]
    page, limit = query["page"], query["limit"]
    return Reply(
        {
            "runs": rows[(page - 1) * limit : page * limit],
            "total": len(rows),
            "page": page,
            "limit": limit,
            "total_pages": -(-len(rows) // limit),
        }
    )


async def delete_run(call: Call) -> Reply:
    run = _runs(call).find(call.parameters["run_id"])
    if run is None:
        call.core.recording.external_runs.delete(_external(call))
    else:
        _runs(call).delete(run)
    await call.core.saved()
    return Reply({})


async def delete_training_run(call: Call) -> Reply:
    run_id = call.parameters["run_id"]
    run = _runs(call).find(run_id)
    if run is not None:
        _runs(call).delete(run)
        await call.core.saved()
    elif not _runs(call).was_there(run_id):
        raise PlatformError(404, "Run not found")
    return Reply({"runId": run_id, "deleted": True})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_training_run,
        resume_training_run,
        prepare_training_run,
        pause_training_run,
        stop_run,
        restart_run,
        get_training_run,
        list_training_runs,
        delete_run,
        delete_training_run,
    )
}


def _runs(call: Call) -> RunRegistry:
    return call.core.recording.runs


def _run(call: Call) -> Run:
    """Return the hosted run that is meant.

    Raises:
        PlatformError: 404, or 409 for a run of elsewhere.
    """
    run = _runs(call).find(call.parameters["run_id"])
    if run is None:
        _external(call)
        raise PlatformError(409, f"Only runs of kind {KIND} run here")
    return run


def _external(call: Call) -> ExternalRun:
    return call.core.recording.external_runs.get(call.parameters["run_id"])


def _team(call: Call, asked: str | None) -> str | None:
    if asked is None and call.assumptions.team_header == "honoured":
        return call.request.headers.get("X-Prime-Team-ID") or None
    return asked or None


def _wire(call: Call, run: Run, *, detail: bool = True) -> JsonObject:
    return to_wire(run, _runs(call).ahead(run), detail=detail)


async def _changed(call: Call, run: Run) -> Reply:
    await call.core.saved()
    return Reply({"run": _wire(call, run)})


async def _dispatched(call: Call, run: Run) -> Reply:
    await call.core.saved()
    token = call.core.identifiers.make("pit_", _TOKEN_LENGTH)
    return Reply(to_dispatch_wire(run, token), 201)
