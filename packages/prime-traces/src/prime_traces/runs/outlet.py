"""A bounded queue before a sink, and the work of emptying it. It lives on the loop thread.

Nothing that goes in is dropped: what the sink does not take, or not in time, is handed to
`Outlet.unsent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    BadRequestError,
    ForbiddenError,
    RateLimitError,
    ServerError,
    ValidationError,
)
from prime_traces.batches import DEFAULT_TARGET_BATCH_BYTES
from prime_traces.errors import LineFormatConflictError
from prime_traces.runs.background import exiting
from prime_traces.runs.parcels import Parcel
from prime_traces.runs.sinks import Sink

__all__ = ["Fallback", "Outlet", "is_transient"]

MAX_PARCELS = 256
MAX_BYTES = 256 * 1024 * 1024
# How long a caller waits for room.
PATIENCE = 5.0
# Before what failed is sent again; one failure more, and the sending ends, or pauses.
PAUSES = (2.0, 10.0)
SHUT = 300.0
# How many further requests may be spent on finding the records for which one was refused.
MAX_SPLITS = 64

_TRANSIENT = (APIConnectionError, APIResponseError, RateLimitError, ServerError)
_REJECTIONS = (BadRequestError, LineFormatConflictError, ValidationError, TypeError, ValueError)

Unsent = Callable[[Parcel, Exception | None, bool], Awaitable[None]]


@dataclass(frozen=True)
class Fallback:
    """Another sink, for an account that the first one does not serve.

    Attributes:
        sink: takes the same and all later parcels.
        open: whether it may be turned to; not once the first sink has taken something.
    """

    sink: Sink
    open: Callable[[], bool]


class Outlet:
    """Takes parcels from any caller and hands them to a sink, one after the other.

    Args:
        sink: where they go.
        unsent: takes what was not sent, the reason if there is one, and whether the parcel
            was refused for what it is.
        reopens: whether three failures in a row only pause it, for 300 s, or end it.
        joins: whether waiting parcels of a kind are sent as one.
        fallback: another sink.
    """

    def __init__(
        self,
        sink: Sink,
        unsent: Unsent,
        *,
        reopens: bool,
        joins: bool = True,
        fallback: Fallback | None = None,
    ) -> None:
        self._sink = sink
        self._unsent = unsent
        self._reopens = reopens
        self._joins = joins
        self._fallback = fallback
        self._queue: deque[Parcel] = deque()
        self._bytes = 0
        # What is being sent, in pieces; the last is under way.
        self._pending: list[Parcel] = []
        self._room = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._room.set()
        self._stalled = False
        self._failures = 0  # in a row
        self._reason: Exception | None = None  # why the latest sending failed
        self._shut_until = 0.0
        self._worker: asyncio.Task[None] | None = None

    async def put(self, parcel: Parcel) -> None:
        """Queues a parcel; after 5 s without room, or while the sink fails, it is kept unsent."""
        if not await self._has_room(parcel) or self._shut:
            await self._unsent(parcel, self._reason, False)
            return
        self._queue.append(parcel)
        self._bytes += parcel.size
        self._idle.clear()
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())

    async def drained(self) -> None:
        """Returns once everything that was put so far is sent, or kept unsent."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Ends the work at once; what is left, and what comes later, is kept unsent."""
        self._shut_until = math.inf
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.wait([self._worker], timeout=PATIENCE)
        left = [*reversed(self._pending), *self._queue]
        self._pending.clear()
        self._queue.clear()
        self._bytes = 0
        self._room.set()  # whoever waits for it finds that it is of no use
        for parcel in left:
            await self._unsent(parcel, self._reason, False)
        self._idle.set()

    @property
    def _shut(self) -> bool:
        return time.monotonic() < self._shut_until

    async def _has_room(self, parcel: Parcel) -> bool:
        deadline = time.monotonic() + PATIENCE
        while self._full(parcel) and not self._shut:
            self._room.clear()
            # Whoever waited in vain has told that the platform is slow: the next don't wait too.
            left = deadline - time.monotonic()
            if self._stalled or left <= 0:
                self._stalled = True
                return False
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._room.wait(), left)
        return True

    def _full(self, parcel: Parcel) -> bool:
        crowded = len(self._queue) >= MAX_PARCELS or self._bytes + parcel.size > MAX_BYTES
        return crowded and bool(self._queue)

    async def _work(self) -> None:
        while self._queue:
            self._pending = [self._take()]
            await self._deliver()
        self._idle.set()

    def _take(self) -> Parcel:
        parcel = self._queue.popleft()
        while self._joins and self._queue and self._queue[0].kind == parcel.kind:
            if parcel.size + self._queue[0].size > DEFAULT_TARGET_BATCH_BYTES:
                break
            parcel = parcel.joined(self._queue.popleft())
        self._bytes -= parcel.size
        self._room.set()
        return parcel

    async def _deliver(self) -> None:
        splits = MAX_SPLITS
        while self._pending:
            parcel = self._pending[-1]
            if self._shut:
                await self._give_up(parcel, self._reason, False)
                continue
            try:
                await self._sink.send(parcel)
            except Exception as error:
                if self._turns_to_fallback(error) or _lacks_a_thread(error):
                    continue
                refused = _refused(error)
                if refused and len(parcel.lines) > 1 and splits:
                    splits -= 1
                    first, second = parcel.halves()
                    self._pending[-1:] = [second, first]
                    continue
                if not refused:
                    self._reason = error
                    if await self._tries_again(error):
                        continue
                await self._give_up(parcel, error, refused)
            else:
                self._failures = 0
                self._reason = None
                self._stalled = False
                self._pending.pop()

    async def _give_up(self, parcel: Parcel, error: Exception | None, refused: bool) -> None:
        self._pending.pop()  # first: a stop while it is kept must not keep it again
        await self._unsent(parcel, error, refused)

    async def _tries_again(self, error: Exception) -> bool:
        """Whether the same is to be sent again; if it failed too often, nothing is for a while."""
        transient = is_transient(error)
        if transient and self._failures < len(PAUSES):
            pause = PAUSES[self._failures]
            self._failures += 1
            if self._sink.repeatable:
                await asyncio.sleep(pause)
            return self._sink.repeatable
        self._failures = 0
        # An error of another kind will not pass by itself.
        passes = transient and self._reopens
        self._shut_until = time.monotonic() + SHUT if passes else math.inf
        return False

    def _turns_to_fallback(self, error: Exception) -> bool:
        closed = isinstance(error, ForbiddenError) and error.code == "service_not_enabled"
        if not closed or self._fallback is None or not self._fallback.open():
            return False
        self._sink, self._fallback = self._fallback.sink, None
        return True


def is_transient(error: Exception) -> bool:
    """Whether a failure may pass by itself."""
    return isinstance(error, _TRANSIENT)


def _lacks_a_thread(error: Exception) -> bool:
    """Whether the interpreter has just begun to exit; sinks do without threads then."""
    return isinstance(error, RuntimeError) and "new thread" in str(error) and exiting()


def _refused(error: Exception) -> bool:
    """Whether a parcel was refused for what it is, so that it alone is concerned."""
    too_large = isinstance(error, APIError) and error.status_code == 413
    return too_large or isinstance(error, _REJECTIONS)
