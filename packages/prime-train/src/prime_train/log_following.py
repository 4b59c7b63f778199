"""Following a log: looking at it again and again, and telling what is new."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from prime_core.errors import APIError, NotFoundError, RateLimitError
from prime_train import log_pace
from prime_train.hosted_waiting import is_transient
from prime_train.log_lines import LogGap
from prime_train.log_pace import LinePace
from prime_train.log_windows import LogWindows, Placed
from prime_train.models.run_logs import MOST_LINES

__all__ = ["LogSource", "Phase", "follow_log"]

# Seconds between two looks before a log begins, and for how many looks it may be late.
START_PAUSE = 10.0
START_LOOKS = 18
# After so many 429s in a row.
THROTTLED_PAUSES = (10.0, 10.0, 30.0)
SHORTEST_PAUSE = 0.05
# By how many seconds the windows of the platform's clock and of this one may differ.
SLACK = 30.0


class Phase(enum.Enum):
    """Where in its life is what logs: it does not yet, it does, or it has ended."""

    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@dataclass(frozen=True)
class LogSource:
    """A log to follow.

    Attributes:
        phase: looks where in its life is what logs.
        read: reads that many lines, from the end.
        is_absent: whether an error says that there is no log now.
        late: makes the error of a follow that takes too long.
        whole: whether ``read`` brings the whole log each time.
        newest: how many lines of a log that is there already are told; None for all.
        window: seconds of the past that ``read`` can reach.
    """

    phase: Callable[[], Awaitable[Phase]]
    read: Callable[[int], Awaitable[str]]
    is_absent: Callable[[NotFoundError], bool]
    late: Callable[[], Exception]
    whole: bool = False
    newest: int | None = None
    window: float = 0.0


async def follow_log(source: LogSource, timeout: float) -> AsyncIterator[str]:
    """Yields the lines of a log as they come, until what logs is over and its log was read again.

    Failures that pass by themselves, and 429s, are waited for.

    Raises:
        APIError: another failure; or there is still no log, minutes after it should have begun.
        Exception: ``source.late()`` when the time is over.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    follower = _Follower(source)
    while not follower.done:
        for line in await follower.look():
            yield line
        if not follower.done:
            await follower.pause(deadline)
    for line in follower.windows.finish():
        yield line


class _Follower:
    """One follow of a log.

    Attributes:
        done: whether the last line was read.
    """

    def __init__(self, source: LogSource) -> None:
        self.windows = LogWindows(depth=MOST_LINES)
        self.done = False
        self._source = source
        self._clock = asyncio.get_running_loop().time
        self._pace = LinePace(whole=source.whole)
        self._phase = Phase.WAITING
        self._phase_due = -1.0
        self._absent = False
        self._absences = 0
        self._throttles = 0
        # When the log was read last, and last had something new; None before.
        self._read_at: float | None = None
        self._grown_at: float | None = None
        self._began = False
        # The size of the last window, and how many lines came since the first, and that when.
        self._last_size = 0
        self._came = 0
        self._first_at = 0.0
        self._looked_at = 0.0

    async def look(self) -> list[str]:
        """Reads the log once more: what is new."""
        self._looked_at = self._clock()
        try:
            # The state first: what is logged before the end is read after the end is seen.
            if self._phase is not Phase.OVER and self._looked_at >= self._phase_due:
                self._phase = await self._source.phase()
                self._phase_due = self._looked_at + log_pace.LOG_PAUSE - SHORTEST_PAUSE
            found = await self._read()
        except RateLimitError:
            self._throttles += 1
            return []
        except APIError as error:
            if not is_transient(error):
                raise
            return []
        self._throttles = 0
        self.done = self._phase is Phase.OVER
        return found

    async def pause(self, deadline: float) -> None:
        """Waits until the next look is due."""
        if self._throttles:
            seconds = THROTTLED_PAUSES[min(self._throttles, len(THROTTLED_PAUSES)) - 1]
        elif self._absent or self._phase is Phase.WAITING:
            seconds = START_PAUSE
        else:
            seconds = self._looked_at + self._pace.interval - self._clock()
        seconds = max(seconds, SHORTEST_PAUSE)
        if self._clock() + seconds > deadline:
            raise self._source.late()
        await asyncio.sleep(seconds)

    async def _read(self) -> list[str]:
        asked = self._pace.lines if self._began else MOST_LINES
        try:
            placed = self.windows.place(await self._source.read(asked))
            if not placed.sure and placed.size >= asked < MOST_LINES:
                asked = MOST_LINES
                placed = self.windows.place(await self._source.read(asked))
        except NotFoundError as error:
            if not self._source.is_absent(error):
                raise
            return self._without_log(error)
        self._absent, self._absences = False, 0
        return self._told(placed, asked)

    def _without_log(self, error: NotFoundError) -> list[str]:
        self._absent = True
        if self._phase is Phase.RUNNING:
            self._absences += 1
            if self._absences >= START_LOOKS:
                raise error
        if self._phase is Phase.OVER and self._began:
            gap = LogGap("The log went away: lines may be missing here, at its end.")
            return [*self.windows.finish(), gap]
        if self._read_at is None:
            self._read_at = self._looked_at
        return []

    def _told(self, placed: Placed, asked: int) -> list[str]:
        """Takes what was read, and learns from it how fast lines come."""
        size, before = placed.size, self._read_at
        gap = self._gap(placed, size, asked)
        told = [*self.windows.finish(), LogGap(gap)] if gap else []
        new = self.windows.take(placed)
        if before is None:
            self._first_at = self._looked_at
            if self._source.newest is not None:
                newest = self._source.newest - self.windows.holds_back
                new = new[max(0, len(new) - newest) :]
        else:
            self._came += len(new)
            self._pace.grown(len(new), self._looked_at - before)
        if gap:
            self._pace.surprised()
        self._learn_capacity(size, asked, changed=bool(new))
        self._read_at = self._looked_at
        if new:
            self._grown_at, self._began = self._looked_at, True
        return [*told, *new]

    def _gap(self, placed: Placed, size: int, asked: int) -> str:
        """Why lines may be missing before a window; empty where none are."""
        if self._source.whole or self._read_at is None or not size:
            return ""
        full = size >= min(asked, self._pace.capacity) or (self._began and size == self._last_size)
        if self._began and (placed.sure or placed.known == len(placed.lines)):
            return ""
        if full:
            return f"More than {size} lines came between two looks: some may be missing here."
        if not self._began or placed.joins:
            return ""
        # Lines are out of reach after a while. If nothing new came meanwhile, none is missing.
        quiet = self._looked_at - (self._grown_at or 0.0)
        away = self._looked_at - self._read_at
        if away < self._source.window and quiet > self._source.window - SLACK:
            return ""
        return "The log does not go on where it was: lines may be missing here."

    def _learn_capacity(self, size: int, asked: int, *, changed: bool) -> None:
        """Sees that windows hold less than is asked for, whatever there is."""
        if self._source.whole:
            return
        if size > self._pace.capacity:
            self._pace.capacity = MOST_LINES
        elif changed and 0 < size < asked:
            lately = self._looked_at - self._first_at < self._source.window - SLACK
            if size == self._last_size or (size < self._came and lately):
                self._pace.capacity = size
        self._last_size = size
