"""One poll schedule for all who wait for a state: few batched questions instead of many.

Waiters of one client share a tick. It asks for every key that is due in batches, never more
often than once a second unless somebody can't wait so long; a key's interval grows from one
second to ten. Jitter is on the tick, not on each waiter, which would break the batches up. A
waiter's last look comes about a tick before its deadline, so that it can be answered; nothing
is waited for after that.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

from prime_core.deadlines import timeout_at
from prime_core.per_loop import PerLoop

__all__ = ["PollSchedule", "PollTimeout", "close_schedules"]

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

# Answers that arrive together are read in one go, during which the loop does nothing else.
QUESTIONS_AT_ONCE = 8
TICK = 1.0
TICK_JITTER = 0.1
FIRST_INTERVAL = 1.0
GROWTH = 1.5
LONGEST_INTERVAL = 10.0
# How long before its deadline a waiter's last look is due, which must be answered by then.
LAST_LOOK_LEAD = 1.0


class PollTimeout(Exception):
    """A waiter's deadline came before its answer.

    Attributes:
        last_error: the last failure to read the state, or None.
    """

    def __init__(self, last_error: Exception | None) -> None:
        super().__init__("the deadline came first")
        self.last_error = last_error


class _Waiter(Generic[V]):
    """One wait for one key: when it is due, and whom to tell."""

    def __init__(
        self,
        look: Callable[[V], bool],
        deadline: float,
        now: float,
        interval: float,
        longest: float,
    ) -> None:
        self.look = look
        self.deadline = deadline
        self.due = now
        self.interval = interval
        self.longest = longest
        self.last_error: Exception | None = None
        self.future: asyncio.Future[V] = asyncio.get_running_loop().create_future()

    def schedule(self, now: float) -> None:
        last = self.deadline - LAST_LOOK_LEAD
        self.due = min(now + self.interval, last if now < last else self.deadline)
        self.interval = min(self.interval * GROWTH, self.longest)


class PollSchedule(Generic[K, V]):
    """Waits for states on one event loop.

    Args:
        fetch: reads the states of at most ``batch`` keys; an exception in the answer fails
            that key's waiters, one that is raised is kept and asked again.
        transient: whether an exception raised by ``fetch`` may pass by itself.
        batch: most keys of a question.
    """

    def __init__(
        self,
        fetch: Callable[[list[K]], Awaitable[Mapping[K, V | Exception]]],
        *,
        transient: Callable[[Exception], bool],
        batch: int = 100,
    ) -> None:
        self._fetch = fetch
        self._transient = transient
        self._batch = batch
        self._waiters: dict[K, list[_Waiter[V]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._next_tick = 0.0

    async def wait(
        self,
        key: K,
        look: Callable[[V], bool],
        deadline: float,
        *,
        interval: float | None = None,
        longest: float | None = None,
    ) -> V:
        """Waits until ``look`` accepts the state of a key.

        Args:
            key: what to ask for.
            look: whether the wait is over; what it raises ends this wait.
            deadline: loop time; a question without an answer by then is not waited for.
            interval: seconds from the first question, which is asked at once, to the second;
                1 by default.
            longest: seconds that the growing interval ends at; 10 by default.

        Raises:
            PollTimeout: the deadline came first.
        """
        loop = asyncio.get_running_loop()
        interval = FIRST_INTERVAL if interval is None else interval
        longest = LONGEST_INTERVAL if longest is None else longest
        now = loop.time()
        waiter = _Waiter(look, deadline, now, interval, longest)
        # Each has its look, also one whose time is shorter than the way to the coming tick.
        self._next_tick = min(self._next_tick, max(now, deadline - LAST_LOOK_LEAD))
        self._waiters.setdefault(key, []).append(waiter)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run())
        self._wake.set()
        try:
            async with timeout_at(deadline):
                return await waiter.future
        except asyncio.TimeoutError:
            if waiter.future.cancelled():
                raise PollTimeout(waiter.last_error) from None
            return waiter.future.result()  # an answer of the last moment, or a timeout in it
        finally:
            waiters = self._waiters.get(key, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(key, None)
            if not self._waiters:
                self._wake.set()  # the schedule has nobody left to tick for

    def close(self) -> None:
        """Ends every wait with a RuntimeError."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        """Ticks while anybody waits; the task ends with the last waiter."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiters:
                due = min(w.due for waiters in self._waiters.values() for w in waiters)
                await self._sleep_until(max(due, self._next_tick))
                now = loop.time()
                if now < self._next_tick:
                    continue  # woken by a new waiter, which joins the coming tick
                self._next_tick = now + TICK + random.uniform(0, TICK_JITTER)
                # Half a tick ahead: keys that are nearly due travel in this batch.
                await self._ask_all(self._due(now + TICK / 2))
        finally:
            closed = RuntimeError("the client was closed while this waited")
            for waiters in self._waiters.values():
                for waiter in waiters:
                    if not waiter.future.done():
                        waiter.future.set_exception(closed)

    async def _sleep_until(self, when: float) -> None:
        self._wake.clear()
        if when > asyncio.get_running_loop().time():
            with contextlib.suppress(asyncio.TimeoutError):
                async with timeout_at(when):
                    await self._wake.wait()

    def _due(self, until: float) -> list[K]:
        return [
            key
            for key, waiters in self._waiters.items()
            if any(waiter.due <= until for waiter in waiters)
        ]

    async def _ask_all(self, keys: list[K]) -> None:
        starts = iter(range(0, len(keys), self._batch))

        async def ask_some() -> None:
            for start in starts:
                await self._ask(keys[start : start + self._batch])

        await asyncio.gather(*(ask_some() for _ in range(QUESTIONS_AT_ONCE)))

    async def _ask(self, keys: list[K]) -> None:
        try:
            answers = await self._fetch(keys)
        except Exception as error:
            for key in keys:
                for waiter in self._waiters.get(key, ()):
                    self._failed(waiter, error)
            return
        for key in keys:
            answer = answers.get(key)
            for waiter in self._waiters.get(key, ()):
                self._answered(waiter, answer)

    def _answered(self, waiter: _Waiter[V], answer: V | Exception | None) -> None:
        if waiter.future.done():
            return
        if isinstance(answer, Exception):
            waiter.future.set_exception(answer)
            return
        try:
            over = answer is not None and waiter.look(answer)
        except Exception as error:
            waiter.future.set_exception(error)
            return
        if over and answer is not None:
            waiter.future.set_result(answer)
        else:
            self._again(waiter)

    def _failed(self, waiter: _Waiter[V], error: Exception) -> None:
        if waiter.future.done():
            return
        if not self._transient(error):
            waiter.future.set_exception(error)
            return
        waiter.last_error = error
        self._again(waiter)

    def _again(self, waiter: _Waiter[V]) -> None:
        now = asyncio.get_running_loop().time()
        if now >= waiter.deadline:
            waiter.future.set_exception(PollTimeout(waiter.last_error))
        else:
            waiter.schedule(now)


def close_schedules(schedules: PerLoop[PollSchedule[K, V]]) -> None:
    """Ends every wait of a client's schedules, each on its own loop."""
    for loop, schedule in schedules.pop_all():
        if loop.is_running():
            loop.call_soon_threadsafe(schedule.close)
