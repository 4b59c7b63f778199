"""Commands in a sandbox: their checks, and what their failures mean."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Awaitable, Callable, Mapping

from prime_core.errors import APIError, APITimeoutError, PrimeError
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.arguments import check_seconds
from prime_sandboxes.command_streams import CommandOutput, kill_session, run_session
from prime_sandboxes.errors import CommandTimeoutError, not_running
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.models import TERMINAL_STATUSES, CommandResponse, ErrorContext
from prime_sandboxes.operations import COMMAND_SESSION_START, CREATE_SANDBOX_AUTH_TOKEN

__all__ = [
    "GONE_CODES",
    "ReadContext",
    "command_spec",
    "run_command",
    "run_in_sandbox",
    "unknown_sandbox",
]

DEFAULT_TIMEOUT = 300.0
# The longest deadline that the Connect protocol's ten digits of milliseconds can say.
LONGEST_TIMEOUT = 9_999_999.0
GONE_CODES = frozenset({"not_found", "sandbox_not_found", "sandbox_terminated"})

ReadContext = Callable[[str], Awaitable[ErrorContext]]


def command_spec(
    command: str, working_dir: str | None, env: Mapping[str, str] | None, user: str | None
) -> pb.CommandSpec:
    """Checks a command and puts it into the gateway's form.

    Raises:
        ValueError: empty, or with a NUL character, or an environment name with ``=``.
    """
    if not isinstance(command, str):
        raise TypeError(f"command is a string, not {type(command).__name__}")
    if not command.strip():
        raise ValueError("command is empty")
    if user == "":
        raise ValueError("user is the name of an account in the sandbox, not empty")
    if working_dir == "":
        raise ValueError("working_dir is a path in the sandbox, not empty")
    environment = dict(env or {})
    if not all(isinstance(word, str) for pair in environment.items() for word in pair):
        raise TypeError("env maps names to values, both strings")
    if any(not name or "=" in name for name in environment):
        raise ValueError("a name in env is empty or holds '='")
    words = [command, working_dir or "", user or "", *environment, *environment.values()]
    if any("\0" in word for word in words):
        raise ValueError("command, working_dir, env and user can't hold a NUL character")
    return pb.CommandSpec(
        cmd="/bin/bash", args=["-c", command], envs=environment, cwd=working_dir, user=user
    )


def check_timeout(timeout: float | None) -> float:
    """The time limit of a command in seconds; 300 by default."""
    if timeout is None:
        return DEFAULT_TIMEOUT
    if check_seconds("timeout", timeout) > LONGEST_TIMEOUT:
        raise ValueError(f"timeout is at most {LONGEST_TIMEOUT:,.0f} s, not {timeout!r}")
    return float(timeout)


async def run_command(
    gateway: Gateway, sandbox_id: str, command: str, spec: pb.CommandSpec, timeout: float
) -> CommandResponse:
    """Runs a command; failures are raised as the gateway tells them.

    Raises:
        CommandTimeoutError: the command's limit was reached.
        APIError: any other failure, with the gateway's ``code``.
    """
    output = CommandOutput()
    session_uuid = str(uuid.uuid4())
    try:
        await run_session(gateway, sandbox_id, spec, session_uuid, timeout, output)
    except APIError as error:
        if output.overflowed:
            with contextlib.suppress(PrimeError):
                await kill_session(gateway, sandbox_id, session_uuid)
            raise
        late = isinstance(error, APITimeoutError) and error.phase == "total"
        ran = error.operation == COMMAND_SESSION_START.id
        if not ran or not (late or error.code == "deadline_exceeded"):
            raise
        raise await _timed_out(
            gateway, sandbox_id, command, session_uuid, timeout, output
        ) from error
    fault = output.fault
    if fault is not None and fault.code == "deadline_exceeded":
        raise await _timed_out(gateway, sandbox_id, command, session_uuid, timeout, output)
    if fault is not None:
        raise output.failure(
            APIError, f"The command could not be run: {fault.code}: {fault.message}"
        )
    if output.exit_code is None:
        raise output.failure(
            APIError, f"The command in sandbox {sandbox_id} ended without exit code."
        )
    stdout, stderr = output.text()
    return CommandResponse(stdout=stdout, stderr=stderr, exit_code=output.exit_code)


async def _timed_out(
    gateway: Gateway,
    sandbox_id: str,
    command: str,
    session_uuid: str,
    timeout: float,
    output: CommandOutput,
) -> CommandTimeoutError:
    """Kills a command whose time is over and makes its error.

    No source says that the platform kills it by itself, so it is told to; a sandbox that is
    gone has no command to kill.
    """
    with contextlib.suppress(PrimeError):
        await kill_session(gateway, sandbox_id, session_uuid)
    return CommandTimeoutError(sandbox_id, command, timeout, *output.text())


async def run_in_sandbox(
    gateway: Gateway,
    read_context: ReadContext,
    sandbox_id: str,
    command: str,
    spec: pb.CommandSpec,
    timeout: float,
) -> CommandResponse:
    """Runs a command; a failure because the sandbox is gone names the sandbox's own.

    Raises:
        SandboxNotRunningError: or the subclass that says why it ended.
        CommandTimeoutError: the command's limit was reached and the sandbox runs.
        APIError: any other failure.
    """
    failure: PrimeError
    try:
        return await run_command(gateway, sandbox_id, command, spec, timeout)
    except CommandTimeoutError as error:
        gone, failure = False, error
    except APIError as error:
        gone = error.code in GONE_CODES or error.status_code == 410 or unknown_sandbox(error)
        # A stream that breaks or ends early may have died with its sandbox, and a conflict
        # may be about a sandbox that has ended.
        if not gone and error.status_code not in (None, 409):
            raise
        failure = error
    context = await read_context(sandbox_id)
    if context.status in TERMINAL_STATUSES:
        ended = not_running(
            sandbox_id, context.status, context.error_type, context.error_message, command
        )
    elif gone:
        kind = context.error_type or "SANDBOX_NOT_FOUND"
        ended = not_running(sandbox_id, "TERMINATED", kind, context.error_message, command)
    else:
        raise failure
    raise ended from failure


def unknown_sandbox(error: APIError) -> bool:
    """Whether the platform knows no such sandbox; a gateway's bare 404 doesn't say so."""
    return error.status_code == 404 and error.operation == CREATE_SANDBOX_AUTH_TOKEN.id
