"""Live processes in sandboxes: written to, read from and signalled while they run."""

from __future__ import annotations

import asyncio
import os
import uuid
import warnings
import weakref
from collections.abc import AsyncIterable, Mapping
from types import TracebackType

from typing_extensions import Self

from prime_core._async.api_client import AsyncAPIClient
from prime_core.buffers import ByteBuffer
from prime_sandboxes._async.process_output import AsyncProcessOutput
from prime_sandboxes._async.resource import AsyncSandboxResource
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.arguments import check_count, check_id, check_seconds
from prime_sandboxes.commands import command_spec
from prime_sandboxes.models import ProcessInfo
from prime_sandboxes.operations import COMMAND_SESSION_LIST
from prime_sandboxes.process_following import Follower, Wanted
from prime_sandboxes.process_input import to_bytes
from prime_sandboxes.process_session import ProcessSession, check_session, terminal_of

__all__ = ["AsyncSandboxProcess", "AsyncSandboxProcesses"]

OUTPUT_BUFFER = 8 * 1024 * 1024
LIST_TIMEOUT = 30.0


class AsyncSandboxProcess:
    """A process in a sandbox: write to it, read its output, signal it, wait for its end.

    Use it as a context manager, or end it with `aclose`. A connection that breaks is opened
    again, five times with pauses of 0.5 s and twice as long each; the exit code is not lost
    by that, what was written meanwhile is (see `AsyncProcessOutput.gaps`). Made by
    `AsyncSandboxClient.open_process` and `attach_process`. It is used on the event loop that
    made it.

    Args:
        session: the process in our hands.
    """

    def __init__(self, session: ProcessSession) -> None:
        self._session = session
        self._follower = session.follower
        self._stdout = AsyncProcessOutput(session.follower.stdout)
        self._stderr = AsyncProcessOutput(session.follower.stderr)

    @property
    def stdout(self) -> AsyncProcessOutput:
        """What it writes to standard output, or to its terminal."""
        return self._stdout

    @property
    def stderr(self) -> AsyncProcessOutput:
        """What it writes to standard error."""
        return self._stderr

    @property
    def pid(self) -> int:
        """Its process id in the sandbox."""
        return self._follower.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, None until that is known; 128 + N after signal N."""
        return self._follower.returncode

    @property
    def sandbox_id(self) -> str:
        """The sandbox that it runs in."""
        return self._follower.wanted.sandbox_id

    @property
    def session_uuid(self) -> str:
        """What `attach_process` takes, also in another program."""
        return self._follower.wanted.session_uuid

    @property
    def reconnects(self) -> int:
        """How often its connection was lost and opened again."""
        return max(0, self._follower.streams - 1)

    async def write_stdin(self, data: bytes) -> None:
        """Writes to its standard input, or its terminal, and waits until that has taken it.

        Writes keep their order, and each is written once, however often it must be sent.
        There is no way to close the input.

        Args:
            data: any number of bytes.

        Raises:
            BrokenPipeError: the process has ended, or has closed its input.
            APITimeoutError: it has not read its input for 30 s; a part may be written.
            SandboxNotRunningError: the sandbox does not run any more.
            APIError: any other failure; a part may be written.
        """
        await self._session.write(to_bytes(data))

    async def write_stdin_from(self, source: AsyncIterable[bytes]) -> None:
        """Writes what a source yields to its standard input, as it comes, in one request.

        For long input: nothing is held whole, and no piece waits for the answer to the one
        before. It is sent once: when the connection breaks, a part may be written.

        Args:
            source: yields bytes; other writes wait until it ends.

        Raises:
            BrokenPipeError: the process has ended, or has closed its input.
            SandboxNotRunningError: the sandbox does not run any more.
            APIError: any other failure; a part may be written.
        """
        await self._session.write_from(source)

    async def wait(self, *, timeout: float | None = None) -> int:
        """Waits for its end.

        Args:
            timeout: seconds to wait, above 0; no limit by default.

        Returns:
            The exit code; 128 + N after signal N.

        Raises:
            TimeoutError: it still runs when the time is over.
            SandboxNotRunningError: the sandbox has ended before it.
            APIError: its exit code can't be known.
        """
        limit = None if timeout is None else check_seconds("timeout", timeout)
        return await self._session.wait(limit)

    async def terminate(self) -> None:
        """Sends SIGTERM to its process group; does nothing once it has ended.

        Raises:
            APIError: the gateway could not be told within 10 s.
        """
        await self._session.signal(pb.SIGNAL_SIGTERM)

    async def kill(self) -> None:
        """Sends SIGKILL to it and its children; does nothing once it has ended.

        Raises:
            APIError: the gateway could not be told within 10 s.
        """
        await self._session.signal(pb.SIGNAL_SIGKILL)

    async def resize_terminal(self, columns: int, rows: int) -> None:
        """Tells it the size of its terminal.

        Args:
            columns: at least 1.
            rows: at least 1.

        Raises:
            BrokenPipeError: the process has ended.
            APIError: it has no terminal, or the gateway could not be told.
        """
        check_count("columns", columns, least=1)
        check_count("rows", rows, least=1)
        await self._session.resize(columns, rows)

    async def detach(self) -> None:
        """Lets go of it and its connection; it goes on and can be attached to again."""
        await self._session.detach("it was let go.")

    async def aclose(self) -> None:
        """Ends it: SIGTERM, 5 s later SIGKILL; returns when it has ended, within 20 s.

        What was not read of its output is dropped. When the caller is cancelled, this goes on
        without it.
        """
        await self._session.close()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "a process can't be pickled: its connection is here; send its sandbox_id and "
            "session_uuid, and call detach here and attach_process there"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        state = "running" if self.returncode is None else f"returncode={self.returncode}"
        return (
            f"AsyncSandboxProcess(pid={self.pid}, {state}, sandbox_id={self.sandbox_id!r}, "
            f"session_uuid={self.session_uuid!r})"
        )

    def __del__(self) -> None:
        follower = getattr(self, "_follower", None)
        if follower is not None and not follower.over.is_set():
            warnings.warn(
                f"process {follower.pid} in sandbox {self.sandbox_id} was not closed and goes "
                "on; use `async with`, `aclose()` or `detach()`",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            follower.abandon()


class AsyncSandboxProcesses(AsyncSandboxResource):
    """The part of the client that runs live processes."""

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._sessions: weakref.WeakSet[ProcessSession] = weakref.WeakSet()

    async def open_process(
        self,
        sandbox_id: str,
        command: str,
        working_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        *,
        terminal: tuple[int, int] | None = None,
        output_buffer: int = OUTPUT_BUFFER,
        spill_folder: str | os.PathLike[str] | None = None,
    ) -> AsyncSandboxProcess:
        """Starts a process with bash, with an open standard input, and returns while it runs.

        It is started once, however often that must be sent. It has a connection of its own,
        and lives as long as its sandbox: a running process keeps the sandbox from idling out.

        Args:
            sandbox_id: a running sandbox.
            command: a bash command line.
            working_dir: where to run it, a path in the sandbox.
            env: further environment variables.
            user: an account of the sandbox to run it as.
            terminal: columns and rows of a terminal to run it on, in place of pipes; all that
                it shows arrives on ``stdout``.
            output_buffer: bytes of each stream to keep until they are read, at least 1.
            spill_folder: folder for temporary files that take what exceeds ``output_buffer``,
                of any size; by default there are none.

        Raises:
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: an empty or impossible argument; nothing was sent.
            APIError: any other failure, such as an unknown ``working_dir``.
        """
        check_id(sandbox_id)
        start = pb.StartRequest(
            command=command_spec(command, working_dir, env, user),
            stdin=True,
            session_uuid=str(uuid.uuid4()),
        )
        if terminal is not None:
            columns, rows = terminal
            check_count("columns of terminal", columns, least=1)
            check_count("rows of terminal", rows, least=1)
            start.pty.CopyFrom(terminal_of(columns, rows))
        wanted = Wanted(sandbox_id, start.session_uuid, command, start)
        return await self._begin(wanted, output_buffer, spill_folder)

    async def attach_process(
        self,
        sandbox_id: str,
        session_uuid: str,
        *,
        output_buffer: int = OUTPUT_BUFFER,
        spill_folder: str | os.PathLike[str] | None = None,
    ) -> AsyncSandboxProcess:
        """Takes over a process that another client has started and let go of, or lost.

        Its output from now on arrives here, that from before is lost. One that ended a while
        ago still tells its exit code.

        Args:
            sandbox_id: the sandbox.
            session_uuid: `AsyncSandboxProcess.session_uuid`, or that of `list_processes`.
            output_buffer: as in `open_process`.
            spill_folder: as in `open_process`.

        Raises:
            SandboxNotRunningError: the sandbox does not run; the subclass says why.
            ValueError: not a uuid; nothing was sent.
            APIError: with the ``code`` ``not_found``, there is no such process any more; any
                other failure.
        """
        wanted = Wanted(check_id(sandbox_id), check_session(session_uuid))
        return await self._begin(wanted, output_buffer, spill_folder)

    async def list_processes(self, sandbox_id: str) -> list[ProcessInfo]:
        """Lists the commands that run in a sandbox, live processes and others.

        Args:
            sandbox_id: a running sandbox.

        Raises:
            APIError: the gateway could not be asked.
        """
        answer = await self._gateway.unary(
            check_id(sandbox_id),
            COMMAND_SESSION_LIST,
            pb.ListRequest(),
            pb.ListResponse,
            timeout=LIST_TIMEOUT,
        )
        return [_process_info(found) for found in answer.sessions]

    async def _begin(
        self, wanted: Wanted, output_buffer: int, spill_folder: str | os.PathLike[str] | None
    ) -> AsyncSandboxProcess:
        if isinstance(output_buffer, bool) or not isinstance(output_buffer, int):
            raise TypeError(f"output_buffer is a number of bytes, not {output_buffer!r}")
        if output_buffer < 1:
            raise ValueError(f"output_buffer is at least 1, not {output_buffer}")
        folder = None if spill_folder is None else os.fspath(spill_folder)
        if folder is not None and not await asyncio.to_thread(os.path.isdir, folder):
            raise ValueError(f"spill_folder is a folder, not {folder!r}")
        stdout, stderr = ByteBuffer(output_buffer, folder), ByteBuffer(output_buffer, folder)
        follower = Follower(self._gateway, self._error_context, wanted, (stdout, stderr))
        session = ProcessSession(self._gateway, follower)
        self._sessions.add(session)
        await session.begin()
        return AsyncSandboxProcess(session)

    async def _detach_processes(self) -> None:
        """Lets go of every process that is followed."""
        for session in list(self._sessions):
            if not session.follower.over.is_set():
                await session.detach("the client was closed; attach_process finds it again.")


def _process_info(found: pb.CommandSessionInfo) -> ProcessInfo:
    spec = found.command
    return ProcessInfo(
        pid=found.pid,
        session_uuid=found.session_uuid or None,
        command=[spec.cmd, *spec.args],
        env=dict(spec.envs),
        working_dir=spec.cwd if spec.HasField("cwd") else None,
        user=spec.user if spec.HasField("user") else None,
    )
