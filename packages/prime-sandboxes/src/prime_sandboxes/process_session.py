"""A live process: started, written to, signalled, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterable, Coroutine
from typing import Any

from prime_core.deadlines import timeout
from prime_core.errors import APIError, APITimeoutError, PrimeError
from prime_core.handover import when_received
from prime_core.reaper import reaper
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.commands import (
    end_session,
    give_up_session,
    is_gone,
)
from prime_sandboxes.errors import SandboxNotRunningError
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.operations import (
    COMMAND_SESSION_UPDATE,
)
from prime_sandboxes.process_following import Follower, not_followed
from prime_sandboxes.process_input import pieces_of, send_piece, stream_input
from prime_sandboxes.process_streams import may_pass

__all__ = ["ProcessSession", "check_session", "terminal_of"]

# How long `open_process` takes at most, and the unary calls that follow.
OPEN_TIMEOUT = 60.0
UPDATE_TIMEOUT = 10.0
# How long the news of an end may take after an answer that presumes it.
NEWS_TIMEOUT = 2.0
# How long a process has to end after each signal of `close`.
END_PATIENCE = 5.0


class ProcessSession:
    """A process in our hands: what is done with it, besides following it.

    Attributes:
        follower: what follows it; its state and output are there.
    """

    def __init__(self, gateway: Gateway, follower: Follower) -> None:
        self.follower = follower
        self._gateway = gateway
        self._wanted = follower.wanted
        self._detached = False
        self._writing = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Starts the process, or attaches to it, and waits until its pid is known.

        When the caller is cancelled meanwhile, or gives up, a process that may have been
        started is killed.

        Raises:
            PrimeError: it can't be started.
        """
        owed = reaper.owe(self._gateway.transport, str(self._wanted), self._undo_start)
        follower = self.follower
        follower.start()
        try:
            async with timeout(OPEN_TIMEOUT):
                await follower.begun.wait()
            if follower.failure is not None and not follower.pid:
                raise follower.failure
        except BaseException as error:
            follower.abandon()
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
        self.follower.refuse_elsewhere()
        if seconds is None:
            await self.follower.over.wait()
        elif not await self.follower.over_within(seconds):
            raise TimeoutError(f"The process still runs after {seconds:g} s.")
        if self.follower.returncode is None:
            assert self.follower.failure is not None
            raise self.follower.failure
        return self.follower.returncode

    async def write(self, data: bytes) -> None:
        """Writes to the input, in order with other writes.

        Raises:
            BrokenPipeError: the process has ended or closed its input.
            PrimeError: it may have been written in part.
        """
        self.follower.refuse_elsewhere()
        async with self._writing:
            self.follower.refuse_ended()
            for piece in pieces_of(data):
                await self._told_of_end(send_piece(self._gateway, self._wanted, piece))

    async def write_from(self, source: AsyncIterable[bytes]) -> None:
        """Writes what a source yields to the input, in order with other writes.

        Raises:
            BrokenPipeError: the process has ended or closed its input.
            PrimeError: it may have been written in part.
        """
        self.follower.refuse_elsewhere()
        async with self._writing:
            self.follower.refuse_ended()
            await self._told_of_end(stream_input(self._gateway, self._wanted, source))

    async def signal(self, number: pb.Signal) -> None:
        """Sends a signal; does nothing once the process has ended.

        Raises:
            PrimeError: the gateway could not be told.
        """
        if self.follower.gone:
            return
        wanted = self._wanted
        await end_session(self._gateway, wanted.sandbox_id, wanted.session_uuid, number)

    async def resize(self, columns: int, rows: int) -> None:
        """Tells the process the size of its terminal."""
        self.follower.refuse_ended()
        request = pb.UpdateRequest(session=self._wanted.selector, pty=terminal_of(columns, rows))
        await self._gateway.unary(
            self._wanted.sandbox_id,
            COMMAND_SESSION_UPDATE,
            request,
            pb.UpdateResponse,
            timeout=UPDATE_TIMEOUT,
        )

    async def close(self) -> None:
        """Ends the process if it runs, and lets go of its connection and output.

        It goes on when the caller is cancelled, and by the reaper when the whole loop is.
        """
        if self.follower.inherited:
            return  # it is the parent's to end
        self.follower.refuse_elsewhere()
        if self._closing is None:
            self._closing = self.follower.loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def detach(self, why: str) -> None:
        """Lets go of the process, which goes on."""
        if asyncio.get_running_loop() is not self.follower.loop:
            self.follower.abandon()
            return
        self._detached = self._detached or not self.follower.over.is_set()
        self.follower.finish(not_followed(self._wanted, why))
        await self.follower.stop()

    async def _told_of_end(self, call: Coroutine[Any, Any, None]) -> None:
        """Makes a call that writes; an answer that presumes an end is told as that."""
        try:
            await self._unless_over(call)
        except APIError as error:
            ended = is_gone(error)
            if not ended and error.code != "failed_precondition":
                raise
            if ended and await self.follower.over_within(NEWS_TIMEOUT):
                self.follower.refuse_ended()
            text = "The process has ended." if ended else "The process has no open input."
            raise BrokenPipeError(text) from error

    async def _unless_over(self, call: Coroutine[Any, Any, None]) -> None:
        """Makes a call, as long as the process runs."""
        calling = self.follower.loop.create_task(call)
        # A failure that comes when it is not awaited any more is no news.
        calling.add_done_callback(lambda done: done.cancelled() or done.exception())
        over = self.follower.loop.create_task(self.follower.over.wait())
        try:
            await asyncio.wait({calling, over}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                self.follower.refuse_ended()
            calling.result()
        finally:
            over.cancel()
            calling.cancel()
            await asyncio.wait({calling, over}, timeout=NEWS_TIMEOUT)

    async def _close(self) -> None:
        # Nobody will take what it still writes.
        for buffer in (self.follower.stdout, self.follower.stderr):
            await buffer.discard()
        if not self.follower.gone and not self._detached:
            await self._end()
        self.follower.finish(not_followed(self._wanted, "it was closed."))
        await self.follower.stop()

    async def _end(self) -> None:
        """Asks the process to end, then makes it; what fails is left to the reaper."""
        owed = reaper.owe(self._gateway.transport, str(self._wanted), self._kill)
        signals = [pb.SIGNAL_SIGTERM, pb.SIGNAL_SIGKILL]
        if self.follower.over.is_set():  # it is not followed, so nobody would tell of its end
            del signals[0]
        try:
            for number in signals:
                with contextlib.suppress(PrimeError, asyncio.TimeoutError):
                    async with timeout(END_PATIENCE):
                        await self.signal(number)
                if await self.follower.over_within(END_PATIENCE):
                    break
        except BaseException:
            owed.call_in()
            raise
        if self.follower.gone:
            owed.settle()
        else:
            owed.call_in()

    async def _kill(self) -> None:
        """Kills it wherever it stands; runs on the reaper's loop."""
        wanted = self._wanted
        await end_session(self._gateway, wanted.sandbox_id, wanted.session_uuid, pb.SIGNAL_SIGKILL)

    async def _undo_start(self) -> None:
        """Kills it if it was we who started it, also when its start is still on the way."""
        wanted = self._wanted
        if wanted.start is not None:
            await give_up_session(self._gateway, wanted.sandbox_id, wanted.session_uuid)


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
