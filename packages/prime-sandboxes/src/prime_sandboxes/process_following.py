"""Follows a process, over lost connections, to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
from dataclasses import dataclass

from prime_core.buffers import ByteBuffer
from prime_core.deadlines import move_deadline, timeout, timeout_at
from prime_core.errors import APIError
from prime_sandboxes._proto import command_session_pb2 as pb
from prime_sandboxes.commands import ReadContext, explain
from prime_sandboxes.errors import SandboxNotRunningError
from prime_sandboxes.gateway import Gateway
from prime_sandboxes.operations import COMMAND_SESSION_CONNECT, COMMAND_SESSION_START
from prime_sandboxes.process_streams import ProcessStream, is_unsent, may_pass

__all__ = ["Follower", "Wanted", "not_followed"]

# The gateway keeps a session for a while after its end, so that a lost stream costs no exit code.
RECONNECTS = 5
FIRST_PAUSE = 0.5
PAUSE_JITTER = 0.25
# A stream that has lasted so long was a good one: the count begins anew.
SETTLED = 30.0
# How long the end of a stream may take after the exit code.
LAST_WORDS = 2.0


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
        """Whether it runs on a terminal, as far as we know."""
        return self.start is not None and self.start.HasField("pty")

    @property
    def selector(self) -> pb.CommandSessionSelector:
        """What names it in a request."""
        return pb.CommandSessionSelector(session_uuid=self.session_uuid)

    def __str__(self) -> str:
        return f"The process {self.session_uuid} in sandbox {self.sandbox_id}"


class Follower:
    """Reads the streams of a process into its buffers, with a task that it owns.

    It lives on one event loop.

    Attributes:
        wanted: which process it is.
        pid: its process id in the sandbox; 0 until it is known.
        returncode: its exit code, once it is known.
        failure: why that can't be known.
        stdout: what it has written to standard output, or to its terminal.
        stderr: what it has written to standard error.
        streams: how many streams it was followed on so far.
        begun: set once it runs, or can't.
        over: set once it has ended, or is not followed any more.
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
        self.failure: Exception | None = None
        self.stdout, self.stderr = buffers
        self.streams = 0
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self._program = os.getpid()
        self._gateway = gateway
        self._read_context = read_context
        self._exit_code: int | None = None
        self._opened = math.inf  # loop time
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to follow; to be called once."""
        if self.wanted.start is None:
            self._mark_gap()
        self._task = self.loop.create_task(self._run())

    async def stop(self) -> None:
        """Stops following; the process goes on."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=LAST_WORDS)

    def abandon(self) -> None:
        """Stops following soon, from any thread."""
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # of a loop that is closed
                self.loop.call_soon_threadsafe(self._task.cancel)

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child, whose parent follows the process."""
        return os.getpid() != self._program

    def refuse_elsewhere(self) -> None:
        """Raises what whoever uses it on another loop is told, where nothing would ever come."""
        if self.inherited or asyncio.get_running_loop() is not self.loop:
            raise RuntimeError(
                f"{self.wanted} is followed on another event loop or by another program: "
                "attach to it here with attach_process."
            )

    def refuse_ended(self) -> None:
        """Raises what whoever writes to an ended process is told."""
        if not self.over.is_set():
            return
        if self.returncode is None:
            assert self.failure is not None
            raise self.failure
        raise BrokenPipeError(f"The process has ended with exit code {self.returncode}.")

    async def over_within(self, seconds: float) -> bool:
        """Waits for the end for so long, and returns whether it has come."""
        with contextlib.suppress(asyncio.TimeoutError):
            async with timeout(seconds):
                await self.over.wait()
        return self.over.is_set()

    @property
    def gone(self) -> bool:
        """Whether it surely does not run any more."""
        return self.returncode is not None or isinstance(self.failure, SandboxNotRunningError)

    async def _run(self) -> None:
        try:
            await self._follow()
        except APIError as error:
            wanted = self.wanted
            self.finish(await explain(error, self._read_context, wanted.sandbox_id, wanted.command))
        except Exception as error:  # nobody may wait for ever
            self.finish(error)
        else:
            self.finish(None)
        finally:
            self.finish(not_followed(self.wanted, "its task was cancelled."))

    async def _follow(self) -> None:
        """Reads streams, one after the other, until the exit code is known."""
        failures = 0
        while True:
            self._opened = math.inf
            try:
                return await self._read_stream()
            except APIError as error:
                if self.loop.time() - self._opened >= SETTLED:
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
            request = pb.ConnectRequest(session=self.wanted.selector).SerializeToString()
        else:
            operation = COMMAND_SESSION_START
            request = self.wanted.start.SerializeToString()
        stream = await ProcessStream.open(self._gateway, self.wanted.sandbox_id, operation, request)
        self._opened = self.loop.time()
        self.streams += 1
        try:
            async with stream, timeout_at(None) as limit:
                async for event in stream.events():
                    if event.WhichOneof("event") == "end":
                        self._exit_code = event.end.exit_code  # the last one counts
                        move_deadline(limit, self.loop.time() + LAST_WORDS)
                    else:
                        await self._take(event)
        except (APIError, asyncio.TimeoutError):
            if self._exit_code is None:
                raise
        if self._exit_code is None:
            raise stream.failure(f"{self.wanted} ended without exit code.")

    async def _take(self, event: pb.CommandSessionEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "start":
            self.pid = event.start.pid
            self.begun.set()
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

    def finish(self, failure: Exception | None) -> None:
        """Notes how it ended, by its exit code or by a failure; the first word counts."""
        if self.over.is_set():
            return
        if failure is None:
            self.returncode = self._exit_code
        self.failure = failure
        self.stdout.end(failure)
        self.stderr.end(failure)
        self.over.set()
        self.begun.set()


def not_followed(wanted: Wanted, why: str) -> APIError:
    """The error of a process whose end nobody watches for."""
    return APIError(f"{wanted} is not followed any more: {why}")
