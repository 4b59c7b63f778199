"""How rented things move from state to state: by the clock, by being read, or at once."""

from __future__ import annotations

from collections.abc import Callable

from prime_local.clock import PlatformClock, Timer


class Pace:
    """What a step takes.

    Args:
        clock: the platform's.
        seconds: on that clock; 0 for none.
        reads: how often it must be read; 0 for none.
    """

    def __init__(self, clock: PlatformClock, seconds: float, reads: int) -> None:
        self.clock = clock
        self.seconds = seconds
        self.reads = reads


class Steps:
    """The way of one thing.

    Args:
        pace: what each step takes.
        take: takes the next step; returns whether there is another.
    """

    def __init__(self, pace: Pace, take: Callable[[], bool]) -> None:
        self._pace = pace
        self._take = take
        self._reads = 0
        self._going = True
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin; without time and reads to take, go the whole way."""
        if self._pace.seconds:
            self._timer = self._pace.clock.call_later(self._pace.seconds, self._on_time)
        elif not self._pace.reads:
            while self._going:
                self._going = self._take()

    def read(self) -> None:
        """Note that it was read; the step that this completes shows at the next read."""
        if self._pace.reads and self._going:
            self._reads += 1
            if self._reads >= self._pace.reads:
                self._reads = 0
                self._going = self._take()

    def stop(self) -> None:
        """Go no further."""
        self._going = False
        if self._timer is not None:
            self._timer.cancel()

    def _on_time(self) -> None:
        self._going = self._going and self._take()
        if self._going:
            self._timer = self._pace.clock.call_later(self._pace.seconds, self._on_time)
