"""A limit of calls under way that follows what the platform takes."""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["AdaptiveLimit"]

SHRINK = 0.7
SMALLEST_PAUSE = 0.1
LONGEST_PAUSE = 20.0


class AdaptiveLimit:
    """Lets fewer calls be under way when the platform refuses some, and more when it does not.

    Each refusal shrinks the limit by three tenths, but all calls that left before the last time
    count as one; as many calls that pass as the limit allows let it grow by one. A refusal also
    holds every call back, for as long as the platform asks, or else twice as long each time.

    Args:
        most: the most calls under way, at least 1; what it begins with.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = float(most)
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._shrunk_at = 0.0  # loop times
        self._opens_at = 0.0
        self._pause = SMALLEST_PAUSE
        self._timer: asyncio.TimerHandle | None = None

    @property
    def allowed(self) -> int:
        """How many calls may be under way just now."""
        return max(1, int(self._allowed))

    async def enter(self) -> float:
        """Waits for a place; `leave` gives it back.

        Returns:
            The loop time, for `refused`.
        """
        loop = asyncio.get_running_loop()
        if self._waiting or not self._free(loop):
            place: asyncio.Future[None] = loop.create_future()
            self._waiting.append(place)
            self._wake()
            try:
                await place
            except BaseException:
                if place.done() and not place.cancelled():
                    self.leave()  # it was given a place just then
                elif place in self._waiting:
                    self._waiting.remove(place)
                raise
        else:
            self._under_way += 1
        return loop.time()

    def leave(self) -> None:
        """Gives a place back."""
        self._under_way -= 1
        self._wake()

    def passed(self) -> None:
        """A call was not refused."""
        self._pause = SMALLEST_PAUSE
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)

    def refused(self, began: float, retry_after: float | None) -> None:
        """A call was refused because there are too many.

        Args:
            began: what `enter` gave.
            retry_after: seconds that the platform asked to wait, or None.
        """
        now = asyncio.get_running_loop().time()
        if began >= self._shrunk_at:
            self._shrunk_at = now
            self._allowed = max(1.0, SHRINK * min(self._allowed, self._under_way))
            if retry_after is None:
                self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        pause = self._pause if retry_after is None else retry_after
        self._opens_at = max(self._opens_at, now + pause)

    def _free(self, loop: asyncio.AbstractEventLoop) -> bool:
        return self._under_way < self.allowed and loop.time() >= self._opens_at

    def _wake(self) -> None:
        """Gives free places to those who wait longest, now or when calls may leave again."""
        if not self._waiting:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._opens_at:
            if self._timer is None:
                self._timer = loop.call_at(self._opens_at, self._open)
            return
        while self._waiting and self._under_way < self.allowed:
            place = self._waiting.popleft()
            if not place.done():
                self._under_way += 1
                place.set_result(None)

    def _open(self) -> None:
        self._timer = None
        self._wake()
