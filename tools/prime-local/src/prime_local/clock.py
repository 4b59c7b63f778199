"""The platform's clock: real time plus what a test added, with timers that follow it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone


class Timer:
    """A pending call on the platform clock."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Forget the call; harmless once it has run."""
        self.callback = None


class PlatformClock:
    """Seconds and dates of the platform; both move only forward.

    Timers run on the event loop that first schedules one.

    Args:
        skew: seconds by which its dates differ from this machine's; negative when it is late.
    """

    def __init__(self, skew: float = 0.0) -> None:
        self._offset = 0.0
        self._started = time.monotonic()
        self._epoch = datetime.now(timezone.utc) + timedelta(seconds=skew)
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._wake: asyncio.TimerHandle | None = None

    @property
    def advanced(self) -> float:
        """The seconds that `advance` has added so far."""
        return self._offset

    def now(self) -> float:
        """Return the platform's monotonic time in seconds."""
        return time.monotonic() + self._offset

    def date(self, seconds_ahead: float = 0.0) -> datetime:
        """Return the platform's UTC date, or the one `seconds_ahead` from now."""
        return self._epoch + timedelta(seconds=self.now() - self._started + seconds_ahead)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back once the platform clock has moved on by `seconds`, never from this call."""
        timer = Timer(self.now() + seconds, callback)
        heapq.heappush(self._timers, (timer.when, next(self._order), timer))
        if self._timers[0][2] is timer:
            self._arm()
        return timer

    def advance(self, seconds: float) -> None:
        """Move the clock forward and run, in order, every timer that became due.

        Args:
            seconds: how far, at least 0.
        """
        target = self.now() + seconds
        while self._timers and self._timers[0][0] <= target:
            # Each callback sees the time it was due at, so that what it schedules is right too.
            self._offset += max(0.0, self._timers[0][0] - self.now())
            self._run_due()
        self._offset += max(0.0, target - self.now())
        self._arm()

    def close(self) -> None:
        """Drop all timers."""
        self._timers.clear()
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None

    def _run_due(self) -> None:
        now = self.now()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()

    def _arm(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if self._timers:
            delay = max(0.0, self._timers[0][0] - self.now())
            self._wake = asyncio.get_running_loop().call_later(delay, self._on_wake)

    def _on_wake(self) -> None:
        self._wake = None
        self._run_due()
        self._arm()
