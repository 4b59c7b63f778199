"""The route that looks at background jobs; they are started and logged by commands."""

from __future__ import annotations

import asyncio
import signal

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.processes import read_to_end
from prime_local.sandboxes.record import Status

_LOOK_SECONDS = 10.0
# A line for each file: the exit code that it holds, or a dash.
_LOOK = """
for file; do
  code=-
  if [ -s "$file" ]; then read -r code <"$file"; fi
  echo "$code"
done 2>/dev/null
"""


async def batch_get_background_job_statuses(call: Call) -> Reply:
    wanted: dict[str, list[str]] = {}
    for job in call.body["jobs"]:
        wanted.setdefault(job["sandbox_id"], []).append(job["job_id"])
    answers = await asyncio.gather(
        *(_look(call, sandbox_id, job_ids) for sandbox_id, job_ids in wanted.items())
    )
    rows = {
        (sandbox_id, job_id): row
        for (sandbox_id, job_ids), answer in zip(wanted.items(), answers, strict=True)
        for job_id, row in zip(job_ids, answer, strict=True)
    }
    items = [
        {**job, **rows[job["sandbox_id"], job["job_id"]]}
        for job in (
            {name: job[name] for name in ("sandbox_id", "job_id")} for job in call.body["jobs"]
        )
    ]
    return Reply(
        {
            "statuses": [item for item in items if "code" not in item],
            "errors": [item for item in items if "code" in item],
        }
    )


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler for handler in (batch_get_background_job_statuses,)
}


async def _look(call: Call, sandbox_id: str, job_ids: list[str]) -> list[JsonObject]:
    """Return what is to be said of each job of a sandbox."""
    life = call.core.sandboxes.find(sandbox_id)
    error = _obstacle(life)
    if life is None or error is not None:
        return [error or {}] * len(job_ids)
    output = b""
    files = [f"/tmp/job_{job_id}.exit" for job_id in job_ids]
    try:
        output = await _run(life, Command(("/bin/sh", "-c", _LOOK, "look", *files), cwd="/"))
    except CommandFault as fault:
        error = _error("RUNTIME_ERROR", f"Cannot look into the sandbox: {fault.message}")
    lines = output.decode("ascii", errors="replace").splitlines()
    if not life.record.live:
        error = _obstacle(life)
    elif error is None and len(lines) != len(job_ids):
        error = _error("RUNTIME_ERROR", "Cannot look into the sandbox")
    if error is not None:
        return [error] * len(job_ids)
    return [_row(line) for line in lines]


async def _run(life: SandboxLife, command: Command) -> bytes:
    """Run a short command that its user must not notice, and return what it wrote.

    Raises:
        CommandFault: it could not be run, or took too long.
    """
    process = await life.launch_unnoticed(command)
    try:
        return await asyncio.wait_for(read_to_end(process), _LOOK_SECONDS)
    except asyncio.TimeoutError:
        raise CommandFault("deadline_exceeded", f"no answer in {_LOOK_SECONDS:g} s") from None
    finally:
        process.signal_group(signal.SIGKILL)


def _obstacle(life: SandboxLife | None) -> JsonObject | None:
    if life is None:
        return _error("NOT_FOUND", "Sandbox not found")
    if not life.record.vm:
        return _error("NOT_VM", "Sandbox is not a VM")
    if life.record.status is not Status.RUNNING:
        return _error("NOT_RUNNING", "Sandbox is not running")
    if not life.gateway_ready:
        return _error("RUNTIME_ERROR", "Cannot look into the sandbox: it is not reachable yet")
    return None


def _row(line: str) -> JsonObject:
    if line == "-":
        return {"completed": False, "exit_code": None}
    if line.isdigit():
        return {"completed": True, "exit_code": int(line)}
    return _error("RUNTIME_ERROR", "The exit code of the job cannot be read")


def _error(code: str, message: str) -> JsonObject:
    return {"code": code, "message": message}
