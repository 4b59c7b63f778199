"""Whole folders, in and out of a sandbox, as tar archives."""

from __future__ import annotations

import contextlib
import shlex
import uuid
from typing import Literal

from prime_core.archives import UnpackedFolder
from prime_core.calls import Body
from prime_core.errors import APIError, APITimeoutError, PrimeError
from prime_core.reaper import reaper
from prime_core.sync import across
from prime_core.uploads import Upload
from prime_sandboxes import files
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.command_streams import CommandOutput, EventDecoder, run_session
from prime_sandboxes.commands import ReadContext, command_spec, run_in_sandbox
from prime_sandboxes.errors import (
    CommandTimeoutError,
    DownloadTimeoutError,
    SandboxFileNotFoundError,
    UploadTimeoutError,
)
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.models import CommandResponse

__all__ = ["download_directory", "upload_directory"]

# Seconds that tar may work in a sandbox where the caller sets no limit.
LONGEST_WORK = 86_400.0
CLEAN_UP_TIMEOUT = 10.0
# How much output of a command that only says what went wrong is kept.
MAX_COMPLAINT = 64 * 1024
_NO_FOLDER = 66
_NO_PROGRAM = 127


async def upload_directory(
    gateway: Gateway, read_context: ReadContext, call: files.FileCall, body: Upload
) -> None:
    """Sends an archive into the folder that the call names, and unpacks it there.

    What is left of the archive is removed on every road; the reaper does it where this is
    cancelled.
    """
    folder = call.file_path
    place = f"{folder.rstrip('/') or '/'}/.prime-{uuid.uuid4().hex}.tar".replace("//", "/")
    archive = files.FileCall(call.sandbox_id, place, read_context, call.timeout)

    async def remove() -> None:
        command = f"rm -f -- {shlex.quote(place)}"
        with contextlib.suppress(PrimeError):
            await _run(gateway, read_context, call.sandbox_id, command, CLEAN_UP_TIMEOUT)

    left_over = reaper.owe(gateway.transport, "An archive in a sandbox", remove)
    try:
        await files.upload(gateway, archive, body, "folder.tar")
        left = archive.left()
        try:
            # Without owners: they are those of another machine.
            result = await _run(
                gateway,
                read_context,
                call.sandbox_id,
                f"tar -C {shlex.quote(folder)} -xpof {shlex.quote(place)}; code=$?; "
                f"rm -f -- {shlex.quote(place)}; exit $code",
                LONGEST_WORK if left is None else left,
            )
        except CommandTimeoutError as error:
            limit = call.timeout or LONGEST_WORK
            raise UploadTimeoutError(call.sandbox_id, folder, limit) from error
        if result.exit_code:
            raise _failed(call, result.exit_code, result.stderr)
    except BaseException:
        with contextlib.suppress(Exception):
            await across(left_over.call_in())
        raise
    left_over.settle()


async def _run(
    gateway: Gateway, read_context: ReadContext, sandbox_id: str, command: str, timeout: float
) -> CommandResponse:
    spec = command_spec(command, None, None, None)
    return await run_in_sandbox(gateway, read_context, sandbox_id, command, spec, timeout)


async def download_directory(
    gateway: Gateway, call: files.FileCall, target: UnpackedFolder
) -> None:
    """Unpacks a folder of a sandbox while tar reads it there; nothing is stored there."""
    folder = shlex.quote(call.file_path)
    command = f"[ -d {folder} ] || exit {_NO_FOLDER}; exec tar -C {folder} -cf - ."
    output = CommandOutput()

    async def collect(body: Body, output: CommandOutput) -> None:
        decoder = EventDecoder()
        async for chunk in body.iter_any():
            for event in decoder.feed(chunk):
                await _take(event, output, target)
        decoder.finish()
        output.fault = decoder.fault

    async def send(left: float | None) -> None:
        spec = command_spec(command, None, None, None)
        limit = LONGEST_WORK if left is None else left
        output.session_uuid = str(uuid.uuid4())  # one that goes on would have a hole
        await run_session(
            gateway,
            call.sandbox_id,
            spec,
            limit,
            output,
            collect=collect,
            idle=files.IDLE_LIMIT,
        )

    try:
        await call.perform(send)
    except APITimeoutError as error:
        if error.phase not in ("idle", "total"):
            raise
        raise _late(call, error.phase) from error
    failure = _failure(call, output)
    if failure is not None:
        if isinstance(failure, APIError) and output.exit_code is None:
            await call.explain(failure)
        raise failure


def _failure(call: files.FileCall, output: CommandOutput) -> PrimeError | None:
    """Why the archive of a folder did not come whole."""
    fault = output.fault
    if fault is not None and fault.code == "deadline_exceeded":
        return _late(call, "total")
    if fault is not None:
        text = f"The folder could not be read: {fault.code}: {fault.message}"
        return output.failure(APIError, text)
    if output.exit_code is None:
        return output.failure(APIError, "The archive of the folder ended too early.")
    if output.exit_code:
        return _failed(call, output.exit_code, output.stderr.decode("utf-8", "replace"))
    return None


def _late(call: files.FileCall, phase: Literal["idle", "total"]) -> DownloadTimeoutError:
    limit = files.IDLE_LIMIT if phase == "idle" else call.timeout or LONGEST_WORK
    return DownloadTimeoutError(call.sandbox_id, call.file_path, limit, phase)


async def _take(
    event: pb.CommandSessionEvent, output: CommandOutput, target: UnpackedFolder
) -> None:
    output.begun = True
    kind = event.WhichOneof("event")
    if kind == "end":
        output.exit_code = event.end.exit_code
    elif kind == "data" and event.data.WhichOneof("output") == "stderr":
        output.stderr += event.data.stderr
        del output.stderr[:-MAX_COMPLAINT]
    elif kind == "data":
        await target.feed(event.data.stdout)


def _failed(call: files.FileCall, exit_code: int, complaint: str) -> PrimeError:
    if exit_code == _NO_FOLDER:
        text = f"{call.file_path!r} is no folder in the sandbox."
        return SandboxFileNotFoundError(text, operation="command_session_start")
    if exit_code == _NO_PROGRAM:
        text = "The sandbox's image has no tar, which moves folders; move the files one by one."
    else:
        text = f"tar failed in the sandbox with exit code {exit_code}: {complaint.strip()[-500:]}"
    return APIError(text, operation="command_session_start")
