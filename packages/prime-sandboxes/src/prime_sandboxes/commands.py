"""Commands in a sandbox: their checks, and what their failures mean."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from prime_core.errors import APIError, APITimeoutError, PrimeError
from prime_core.reaper import reaper
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.arguments import check_seconds
from prime_sandboxes.command_streams import CommandOutput, run_session, send_signal
from prime_sandboxes.errors import CommandTimeoutError, not_running
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.models import TERMINAL_STATUSES, CommandResponse, ErrorContext
from prime_sandboxes.operations import (
    COMMAND_SESSION_CONNECT,
    COMMAND_SESSION_START,
    CREATE_SANDBOX_AUTH_TOKEN,
)

__all__ = [
    "GONE_CODES",
    "ReadContext",
    "command_spec",
    "end_session",
    "explain",
    "give_up_session",
    "is_gone",
    "run_command",
    "run_in_sandbox",
    "unknown_sandbox",
]

logger = logging.getLogger("prime_sandboxes")

DEFAULT_TIMEOUT = 300.0
# The longest deadline that the Connect protocol's ten digits of milliseconds can say.
LONGEST_TIMEOUT = 9_999_999.0
# A start that was given up may arrive a little later than the word that it is not wanted.
LATE_START_PAUSES = (0.0, 0.5, 1.5)
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
    gateway: Gateway,
    sandbox_id: str,
    command: str,
    spec: pb.CommandSpec,
    timeout: float,
    output: CommandOutput,
) -> CommandResponse:
    """Runs a command; failures are raised as the gateway tells them.

    When the caller is cancelled, the command goes on.

    Args:
        gateway: the client's.
        sandbox_id: the sandbox.
        command: the command line, for errors.
        spec: the command.
        timeout: seconds that it may run.
        output: takes what arrives; names the session.

    Raises:
        CommandTimeoutError: the command's limit was reached.
        APIError: any other failure, with the gateway's ``code``.
    """
    try:
        await run_session(gateway, sandbox_id, spec, timeout, output)
    except APIError as error:
        if output.overflowed:
            with contextlib.suppress(PrimeError):
                await end_session(gateway, sandbox_id, output.session_uuid, pb.SIGNAL_SIGKILL)
            raise
        late = isinstance(error, APITimeoutError) and error.phase == "total"
        ran = error.operation == COMMAND_SESSION_START.id
        if not ran or not (late or error.code == "deadline_exceeded"):
            raise
        raise await _timed_out(gateway, sandbox_id, command, timeout, output) from error
    fault = output.fault
    if fault is not None and fault.code == "deadline_exceeded":
        raise await _timed_out(gateway, sandbox_id, command, timeout, output)
    if fault is not None:
        raise output.failure(
            APIError, f"The command could not be run: {fault.code}: {fault.message}"
        )
    if output.exit_code is None:
        raise output.failure(
            APIError, f"The command in sandbox {sandbox_id} ended without exit code."
        )
    stdout, stderr = await output.text()
    return CommandResponse(stdout=stdout, stderr=stderr, exit_code=output.exit_code)


async def _timed_out(
    gateway: Gateway,
    sandbox_id: str,
    command: str,
    timeout: float,
    output: CommandOutput,
) -> CommandTimeoutError:
    """Kills a command whose time is over and makes its error.

    No source says that the platform kills it by itself, so it is told to; a sandbox that is
    gone has no command to kill.
    """
    with contextlib.suppress(PrimeError):
        await end_session(gateway, sandbox_id, output.session_uuid, pb.SIGNAL_SIGKILL)
    return CommandTimeoutError(sandbox_id, command, timeout, *await output.text())


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
    output = CommandOutput()
    undo = partial(give_up_session, gateway, sandbox_id, output.session_uuid)
    owed = reaper.owe(gateway.transport, f"A command in sandbox {sandbox_id}", undo)
    try:
        result = await run_command(gateway, sandbox_id, command, spec, timeout, output)
    except Exception as error:
        owed.settle()
        if not isinstance(error, (CommandTimeoutError, APIError)):
            raise
        failure = error
    except BaseException:
        if output.sent:
            # In the background: the caller's cancellation is not delayed for that.
            owed.call_in()
        else:
            owed.settle()
        raise
    else:
        owed.settle()
        return result
    reason = await explain(failure, read_context, sandbox_id, command)
    if reason is failure:
        raise failure
    raise reason from failure


async def explain(
    error: PrimeError, read_context: ReadContext, sandbox_id: str, command: str | None
) -> PrimeError:
    """What a failure means: the sandbox's own end, or only itself.

    Args:
        error: what failed.
        read_context: reads the state of the sandbox.
        sandbox_id: the sandbox.
        command: what was to run, if that is known.
    """
    gone = isinstance(error, APIError) and is_gone(error)
    # A stream that breaks or ends early may have died with its sandbox, and a conflict may be
    # about a sandbox that has ended.
    if isinstance(error, APIError) and not gone and error.status_code not in (None, 409):
        return error
    context = await read_context(sandbox_id)
    if context.status in TERMINAL_STATUSES:
        status, kind = context.status, context.error_type
    elif gone and not (_of_session(error) and context.status is not None):
        status, kind = "TERMINATED", context.error_type or "SANDBOX_NOT_FOUND"
    else:
        return error
    ended = not_running(sandbox_id, status, kind, context.error_message, command)
    ended.__cause__ = error
    return ended


def is_gone(error: APIError) -> bool:
    """Whether the platform says that there is no such session or sandbox, or no longer."""
    return error.code in GONE_CODES or error.status_code == 410 or unknown_sandbox(error)


def _of_session(error: PrimeError) -> bool:
    """Whether it is about a session that was there before, which a sandbox may outlive."""
    return isinstance(error, APIError) and error.operation == COMMAND_SESSION_CONNECT.id


async def end_session(
    gateway: Gateway, sandbox_id: str, session_uuid: str, number: pb.Signal
) -> None:
    """Sends a signal to a command; one that has ended takes none.

    Raises:
        APIError: the gateway could not be told.
    """
    try:
        await send_signal(gateway, sandbox_id, session_uuid, number)
    except APIError as error:
        if not is_gone(error):
            raise


async def give_up_session(gateway: Gateway, sandbox_id: str, session_uuid: str) -> None:
    """Kills a command that nobody waits for, as far as that can be done.

    Its start may still be on its way, so what is not there is killed a little later.
    """
    for pause in LATE_START_PAUSES:
        await asyncio.sleep(pause)
        try:
            await send_signal(gateway, sandbox_id, session_uuid, pb.SIGNAL_SIGKILL)
        except APIError as error:
            if is_gone(error):
                continue
            # Its sandbox ends it at the latest; a gateway that is down is not waited for.
            logger.debug("A command could not be killed: %s", error)
        return


def unknown_sandbox(error: APIError) -> bool:
    """Whether the platform knows no such sandbox; a gateway's bare 404 doesn't say so."""
    return error.status_code == 404 and error.operation == CREATE_SANDBOX_AUTH_TOKEN.id
