"""A live process: followed over lost connections, written to, signalled, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from prime_core.buffers import ByteBuffer
from prime_core.deadlines import move_deadline, timeout, timeout_at
from prime_core.errors import APIError, APITimeoutError, PrimeError
from prime_core.reaper import reaper
from prime_core.sync import when_received
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.commands import (
    ReadContext,
    end_session,
    explain,
    give_up_session,
    is_gone,
)
from prime_sandboxes.errors import SandboxNotRunningError
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.operations import (
    COMMAND_SESSION_CONNECT,
    COMMAND_SESSION_SEND_INPUT,
    COMMAND_SESSION_START,
    COMMAND_SESSION_UPDATE,
)
from prime_sandboxes.process_streams import ProcessStream, is_unsent, may_pass

__all__ = ["ProcessSession", "Wanted", "check_session", "terminal_of"]

T = TypeVar("T")

# How long `open_process` takes at most, and the unary calls that follow.
OPEN_TIMEOUT = 60.0
INPUT_TIMEOUT = 30.0
UPDATE_TIMEOUT = 10.0
# The gateway keeps a session for a while after its end, so that a lost stream costs no exit code.
RECONNECTS = 5
FIRST_PAUSE = 0.5
PAUSE_JITTER = 0.25
# A stream that has lasted so long was a good one: the count begins anew.
SETTLED = 30.0
# How much of a write travels in one message.
INPUT_PIECE = 1024 * 1024
# How long the end of a stream may take after the exit code, or the news of an end after an
# answer that presumes it.
LAST_WORDS = 2.0
# How long a process has to end after each signal of `close`.
END_PATIENCE = 5.0


@dataclass(frozen=True)
class Wanted:
    """Which process it is, and how it is started.

    Attributes:
        sandbox_id: the sandbox.
        session_uuid: names it to the gateway.
        command: for errors; None for one that somebody else has started.
        start: how it is started; None attaches to it.
    """

    sandbox_id: str
    session_uuid: str
    command: str | None = None
    start: pb.StartRequest | None = None

    @property
    def terminal(self) -> bool:
        return self.start is not None and self.start.HasField("pty")


class ProcessSession:
    """Follows a process on one event loop, with a task that it owns.

    Attributes:
        wanted: which process it is.
        pid: its process id in the sandbox; 0 until it is known.
        returncode: its exit code, once it is known.
        stdout: what it has written to standard output, or to its terminal.
        stderr: what it has written to standard error.
        streams: how many streams it was followed on so far.
    """

    def __init__(
        self,
        gateway: Gateway,
        read_context: ReadContext,
        wanted: Wanted,
        buffers: tuple[ByteBuffer, ByteBuffer],
    ) -> None:
        self.wanted = wanted
        self.pid = 0
        self.returncode: int | None = None
        self.stdout, self.stderr = buffers
        self.streams = 0
        self._gateway = gateway
        self._read_context = read_context
        self._exit_code: int | None = None
        self._failure: Exception | None = None
        self._detached = False
        self._opened = math.inf  # loop time
        self._loop = asyncio.get_running_loop()
        self._begun = asyncio.Event()
        self._over = asyncio.Event()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def followed(self) -> bool:
        """Whether it is still to be closed."""
        return self._task is not None and not self._over.is_set()

    async def begin(self) -> None:
        """Starts the process, or attaches to it, and waits until its pid is known.

        When the caller is cancelled meanwhile, or gives up, a process that may have been
        started is killed.

        Raises:
            PrimeError: it can't be started.
        """
        owed = reaper.owe(self._gateway.owner, self._description, self._undo_start)
        self._task = self._loop.create_task(self._run())
        try:
            async with timeout(OPEN_TIMEOUT):
                await self._begun.wait()
            if self._failure is not None and not self.pid:
                raise self._failure
        except BaseException as error:
            self.abandon()
            surely_none = isinstance(error, APIError) and not may_pass(error)
            if surely_none or isinstance(error, SandboxNotRunningError):
                owed.settle()
            else:
                owed.call_in()
            if isinstance(error, asyncio.TimeoutError) and not isinstance(error, APIError):
                raise APITimeoutError(
                    f"The process did not start within {OPEN_TIMEOUT:g} s."
                ) from None
            raise
        when_received(owed.settle, owed.call_in)

    async def wait(self, seconds: float | None) -> int:
        """Waits for the exit code.

        Raises:
            TimeoutError: the process still runs after so many seconds.
            PrimeError: its end can't be known.
        """
        if seconds is None:
            await self._over.wait()
        elif not await self._over_within(seconds):
            raise TimeoutError(f"The process still runs after {seconds:g} s.")
        if self.returncode is None:
            assert self._failure is not None
            raise self._failure
        return self.returncode

    async def write(self, data: bytes) -> None:
        """Writes to the input, in order with other writes.

        Raises:
            BrokenPipeError: the process has ended or closed its input.
            PrimeError: it may have been written in part.
        """
        async with self._writing:
            self._refuse_ended()
            for start in range(0, len(data), INPUT_PIECE):
                await self._send_input(data[start : start + INPUT_PIECE])

    async def signal(self, number: pb.Signal) -> None:
        """Sends a signal; does nothing once the process has ended.

        Raises:
            PrimeError: the gateway could not be told.
        """
        if self._gone:
            return
        wanted = self.wanted
        await end_session(self._gateway, wanted.sandbox_id, wanted.session_uuid, number)

    async def resize(self, columns: int, rows: int) -> None:
        """Tells the process the size of its terminal."""
        self._refuse_ended()
        request = pb.UpdateRequest(session=self._selector, pty=terminal_of(columns, rows))
        await self._gateway.unary(
            self.wanted.sandbox_id,
            COMMAND_SESSION_UPDATE,
            request,
            pb.UpdateResponse,
            timeout=UPDATE_TIMEOUT,
        )

    async def close(self) -> None:
        """Ends the process if it runs, and lets go of its connection and output.

        It goes on when the caller is cancelled, and by the reaper when the whole loop is.
        """
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def detach(self, why: str) -> None:
        """Lets go of the process, which goes on."""
        if asyncio.get_running_loop() is not self._loop:
            self.abandon()
            return
        self._detached = self._detached or not self._over.is_set()
        self._finish(self._disconnected(why))
        await self._let_go()

    def abandon(self) -> None:
        """Stops following, from any thread; the process goes on."""
        task = self._task
        if task is not None:
            with contextlib.suppress(RuntimeError):  # of a loop that is closed
                self._loop.call_soon_threadsafe(task.cancel)

    async def _run(self) -> None:
        try:
            await self._follow()
        except APIError as error:
            wanted = self.wanted
            self._finish(
                await explain(error, self._read_context, wanted.sandbox_id, wanted.command)
            )
        except Exception as error:  # nobody may wait for ever
            self._finish(error)
        else:
            self._finish(None)
        finally:
            self._finish(self._disconnected("its task was cancelled."))

    async def _follow(self) -> None:
        """Reads streams, one after the other, until the exit code is known."""
        failures = 0
        while True:
            self._opened = math.inf
            try:
                return await self._read_stream()
            except APIError as error:
                if self._loop.time() - self._opened >= SETTLED:
                    failures = 0
                failures += 1
                if failures > RECONNECTS or not may_pass(error):
                    raise
                if self.pid or not is_unsent(error):
                    self._mark_gap()
            pause = FIRST_PAUSE * 2 ** (failures - 1)
            await asyncio.sleep(pause * random.uniform(1 - PAUSE_JITTER, 1 + PAUSE_JITTER))

    async def _read_stream(self) -> None:
        if self.pid or self.wanted.start is None:
            operation = COMMAND_SESSION_CONNECT
            request = pb.ConnectRequest(session=self._selector).SerializeToString()
        else:
            operation = COMMAND_SESSION_START
            request = self.wanted.start.SerializeToString()
        stream = await ProcessStream.open(self._gateway, self.wanted.sandbox_id, operation, request)
        self._opened = self._loop.time()
        self.streams += 1
        try:
            async with stream, timeout_at(None) as limit:
                async for event in stream.events():
                    if event.WhichOneof("event") == "end":
                        self._exit_code = event.end.exit_code  # the last one counts
                        move_deadline(limit, self._loop.time() + LAST_WORDS)
                    else:
                        await self._take(event)
        except (APIError, asyncio.TimeoutError):
            if self._exit_code is None:
                raise
        if self._exit_code is None:
            raise stream.failure(f"{self._description} ended without exit code.")

    async def _take(self, event: pb.CommandSessionEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "start":
            self.pid = event.start.pid
            self._begun.set()
        elif kind == "data":
            data = event.data
            if data.WhichOneof("output") == "stderr":
                buffer, piece = self.stderr, data.stderr
            else:  # a terminal's output counts as standard output
                buffer, piece = self.stdout, data.stdout or data.pty
            if piece and not buffer.put_nowait(piece):
                await buffer.put(piece)

    def _mark_gap(self) -> None:
        self.stdout.mark_gap()
        if not self.wanted.terminal:
            self.stderr.mark_gap()

    def _finish(self, failure: Exception | None) -> None:
        if self._over.is_set():
            return
        if failure is None:
            self.returncode = self._exit_code
        self._failure = failure
        self.stdout.end(failure)
        self.stderr.end(failure)
        self._over.set()
        self._begun.set()

    async def _send_input(self, piece: bytes) -> None:
        given = pb.CommandInput(pty=piece) if self.wanted.terminal else pb.CommandInput(stdin=piece)
        request = pb.SendInputRequest(
            session=self._selector, input=given, input_uuid=str(uuid.uuid4())
        )
        call = self._gateway.unary(
            self.wanted.sandbox_id,
            COMMAND_SESSION_SEND_INPUT,
            request,
            pb.SendInputResponse,
            timeout=INPUT_TIMEOUT,
        )
        try:
            await self._unless_over(call)
        except APIError as error:
            ended = is_gone(error)
            if not ended and error.code != "failed_precondition":
                raise
            if ended and await self._over_within(LAST_WORDS):
                self._refuse_ended()
            text = "The process has ended." if ended else "The process has no open input."
            raise BrokenPipeError(text) from error

    async def _unless_over(self, call: Coroutine[Any, Any, T]) -> T:
        """Makes a call, as long as the process runs."""
        calling = self._loop.create_task(call)
        # A failure that comes when it is not awaited any more is no news.
        calling.add_done_callback(lambda done: done.cancelled() or done.exception())
        over = self._loop.create_task(self._over.wait())
        try:
            await asyncio.wait({calling, over}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                self._refuse_ended()
            return calling.result()
        finally:
            over.cancel()
            calling.cancel()
            await asyncio.wait({calling, over}, timeout=LAST_WORDS)

    def _refuse_ended(self) -> None:
        if not self._over.is_set():
            return
        if self.returncode is None:
            assert self._failure is not None
            raise self._failure
        raise BrokenPipeError(f"The process has ended with exit code {self.returncode}.")

    async def _over_within(self, seconds: float) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            async with timeout(seconds):
                await self._over.wait()
        return self._over.is_set()

    @property
    def _gone(self) -> bool:
        """Whether it surely does not run any more."""
        return self.returncode is not None or isinstance(self._failure, SandboxNotRunningError)

    async def _close(self) -> None:
        # Nobody will take what it still writes.
        for buffer in (self.stdout, self.stderr):
            await buffer.discard()
        if not self._gone and not self._detached:
            await self._end()
        self._finish(self._disconnected("it was closed."))
        await self._let_go()

    async def _end(self) -> None:
        """Asks the process to end, then makes it; what fails is left to the reaper."""
        owed = reaper.owe(self._gateway.owner, self._description, self._kill)
        signals = [pb.SIGNAL_SIGTERM, pb.SIGNAL_SIGKILL]
        if self._over.is_set():  # it is not followed, so nobody would tell of its end
            del signals[0]
        try:
            for number in signals:
                with contextlib.suppress(PrimeError, asyncio.TimeoutError):
                    async with timeout(END_PATIENCE):
                        await self.signal(number)
                if await self._over_within(END_PATIENCE):
                    break
        except BaseException:
            owed.call_in()
            raise
        if self._gone:
            owed.settle()
        else:
            owed.call_in()

    async def _let_go(self) -> None:
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=LAST_WORDS)

    async def _kill(self) -> None:
        """Kills it wherever it stands; runs on the reaper's loop."""
        wanted = self.wanted
        await end_session(self._gateway, wanted.sandbox_id, wanted.session_uuid, pb.SIGNAL_SIGKILL)

    async def _undo_start(self) -> None:
        """Kills it if it was we who started it, also when its start is still on the way."""
        wanted = self.wanted
        if wanted.start is not None:
            await give_up_session(self._gateway, wanted.sandbox_id, wanted.session_uuid)

    @property
    def _selector(self) -> pb.CommandSessionSelector:
        return pb.CommandSessionSelector(session_uuid=self.wanted.session_uuid)

    @property
    def _description(self) -> str:
        return f"The process {self.wanted.session_uuid} in sandbox {self.wanted.sandbox_id}"

    def _disconnected(self, why: str) -> PrimeError:
        return APIError(f"{self._description} is not followed any more: {why}")


def check_session(session_uuid: str) -> str:
    """A session's uuid as the gateway takes it.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(session_uuid, str):
        raise TypeError(f"session_uuid is a string, not {type(session_uuid).__name__}")
    try:
        return str(uuid.UUID(session_uuid))
    except ValueError:
        raise ValueError(f"session_uuid is a uuid, not {session_uuid!r}") from None


def terminal_of(columns: int, rows: int) -> pb.PTY:
    """A terminal's size in the gateway's form."""
    return pb.PTY(size=pb.PTY.Size(cols=columns, rows=rows))
