"""What calls do while a host that used to answer does not.

After a few failures in a row with nothing answered in between, a host that has answered
before is taken to be down. Calls then stop knocking all at once: they wait here, one of
them at a time asks whether the host is back, and its first answer lets all of them go on.
A wait is bounded by its call's deadline, and costs no attempt: the budget of three attempts
is for scattered failures, and would lose a whole fleet to an outage of two seconds.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque

from prime_core.deadlines import wait_until

__all__ = ["HostHealth"]

FAILURES_UNTIL_DOWN = 3
FIRST_PROBE_DELAY = 0.1
LONGEST_PROBE_DELAY = 1.0


class HostHealth:
    """Whether one host answers, on one event loop."""

    __slots__ = ("_answered", "_down_since", "_failures", "_probes", "_timer", "_waiters", "down")

    def __init__(self) -> None:
        self.down = False
        self._answered = False
        self._failures = 0
        self._down_since = 0.0
        self._probes = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def answered(self, sent: float) -> None:
        """Notes an answer of the host: it is up, and everybody may go on.

        Args:
            sent: when the request was sent, on ``time.monotonic()``. One from before the host
                went down says nothing of now: a slow host still answers what it had accepted.
        """
        self._failures = 0
        self._answered = True
        if self.down and sent >= self._down_since:
            self.down = False
            self._probes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            while self._waiters:
                self._release_next()

    def failed(self) -> None:
        """Notes that the host could not be reached or said that it is unavailable."""
        self._failures += 1
        if self._answered and self._failures >= FAILURES_UNTIL_DOWN:
            if not self.down:
                self.down = True
                self._down_since = time.monotonic()
            self._schedule_probe()

    async def wait(self, deadline: float) -> bool:
        """Waits until the host is up again, or until it is this call's turn to ask it.

        Args:
            deadline: loop time.

        Returns:
            False when the deadline came first.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        self._schedule_probe()
        try:
            return await wait_until(turn, deadline)
        except BaseException:
            if turn.done():  # the turn came together with the cancellation: pass it on
                self._schedule_probe()
            raise
        finally:
            if not turn.done():
                turn.cancel()

    def _schedule_probe(self) -> None:
        if self._timer is None and self.down:
            delay = min(LONGEST_PROBE_DELAY, FIRST_PROBE_DELAY * 2**self._probes)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay * random.uniform(0.5, 1.0), self._probe)

    def _probe(self) -> None:
        self._timer = None
        self._probes = min(self._probes + 1, 10)
        self._release_next()
        # Not only after this probe's failure: its call may be cancelled without a word.
        if self._waiters:
            self._schedule_probe()

    def _release_next(self) -> None:
        while self._waiters:
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
