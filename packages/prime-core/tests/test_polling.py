"""The shared poll schedule: many who wait, few questions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from prime_core import polling
from prime_core.polling import PollSchedule, PollTimeout

Answers = Mapping[str, Any]
TICK = 0.12
SECONDS = {
    name: getattr(polling, name)
    for name in ("TICK", "TICK_JITTER", "FIRST_INTERVAL", "LONGEST_INTERVAL", "LAST_LOOK_LEAD")
}


@pytest.fixture(autouse=True)
def quick_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the schedule's second a short one."""
    for name, seconds in SECONDS.items():
        monkeypatch.setattr(polling, name, seconds * TICK)


class Source:
    """Answers questions for states, and keeps when it was asked for what."""

    def __init__(self, states: dict[str, object] | None = None) -> None:
        self.states: dict[str, object] = states or {}
        self.asked: list[tuple[float, list[str]]] = []
        self.before: Callable[[], Awaitable[None]] | None = None

    async def fetch(self, keys: list[str]) -> Answers:
        self.asked.append((time.monotonic(), keys))
        if self.before is not None:
            await self.before()
        return {key: self.states[key] for key in keys if key in self.states}

    @property
    def ticks(self) -> list[float]:
        """When it was asked, questions of the same moment counted once."""
        ticks: list[float] = []
        for at, _ in self.asked:
            if not ticks or at - ticks[-1] > TICK / 5:
                ticks.append(at)
        return ticks


def schedule_of(source: Source, batch: int = 100) -> PollSchedule[str, Any]:
    return PollSchedule(
        source.fetch, transient=lambda error: isinstance(error, ConnectionError), batch=batch
    )


def soon(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def ready(state: object) -> bool:
    return state == "ready"


def polling_tasks() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if "PollSchedule" in repr(task.get_coro())]


async def test_a_state_that_is_there_is_returned_at_once() -> None:
    source = Source({"a": "ready"})
    schedule = schedule_of(source)
    started = time.monotonic()
    assert await schedule.wait("a", ready, soon(5)) == "ready"
    assert time.monotonic() - started < 0.2
    assert len(source.asked) == 1


async def test_the_schedule_ends_with_its_last_waiter() -> None:
    source = Source({"a": "ready"})
    schedule = schedule_of(source)
    await schedule.wait("a", ready, soon(5))
    await asyncio.sleep(0.01)
    assert polling_tasks() == []
    assert await schedule.wait("a", ready, soon(5)) == "ready", "it starts again"


async def test_many_waiters_share_batches_of_a_hundred() -> None:
    source = Source({f"k{n}": "ready" for n in range(250)})
    schedule = schedule_of(source)
    await asyncio.gather(*(schedule.wait(f"k{n}", ready, soon(5)) for n in range(250)))
    assert sorted(len(keys) for _, keys in source.asked) == [50, 100, 100]
    assert sorted(key for _, keys in source.asked for key in keys) == sorted(source.states)


async def test_two_waiters_of_a_key_share_its_question() -> None:
    source = Source({"a": "ready"})
    schedule = schedule_of(source)
    await asyncio.gather(*(schedule.wait("a", ready, soon(5)) for _ in range(10)))
    assert [keys for _, keys in source.asked] == [["a"]]


async def test_there_is_at_most_one_tick_a_second_even_for_waiters_who_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in SECONDS.items():
        monkeypatch.setattr(polling, name, seconds)
    source = Source({"a": "pending"})
    schedule = schedule_of(source)
    first = asyncio.ensure_future(schedule.wait("a", ready, soon(20)))
    await asyncio.sleep(0.3)
    source.states.update(a="ready", b="ready")
    assert await schedule.wait("b", ready, soon(20)) == "ready"
    assert await first == "ready"
    assert [sorted(keys) for _, keys in source.asked] == [["a"], ["a", "b"]]
    start, second = source.ticks
    assert 1.0 <= second - start < 1.6


async def test_a_wait_that_is_shorter_than_the_way_to_the_next_tick_has_its_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in SECONDS.items():
        monkeypatch.setattr(polling, name, seconds)
    source = Source({"a": "pending", "b": "ready"})
    schedule = schedule_of(source)
    first = asyncio.ensure_future(schedule.wait("a", ready, soon(20)))
    await asyncio.sleep(0.1)
    assert await schedule.wait("b", ready, soon(0.5)) == "ready"
    first.cancel()


async def test_intervals_grow_while_a_tick_takes_along_what_is_nearly_due() -> None:
    source = Source({"a": "pending"})
    schedule = schedule_of(source)
    with pytest.raises(PollTimeout):
        await schedule.wait("a", ready, soon(12 * TICK))
    # After 1, 1.5, 2.25 and 3.4 ticks more, and a last look a tick before the deadline; two that
    # are closer together than a tick are one.
    gaps = [(after - before) / TICK for before, after in pairwise(source.ticks)]
    assert 4 <= len(gaps) <= 6
    assert all(gap >= 0.99 for gap in gaps)
    assert max(gaps) > 2.5


async def test_a_waiter_may_ask_at_a_pace_of_its_own() -> None:
    source = Source({"a": "pending"})
    schedule = schedule_of(source)
    with pytest.raises(PollTimeout):
        await schedule.wait("a", ready, soon(9 * TICK), interval=2 * TICK, longest=2 * TICK)
    gaps = [(after - before) / TICK for before, after in pairwise(source.ticks)]
    assert len(gaps) <= 5
    assert all(gap >= 1.9 for gap in gaps[:-1])
    assert max(gaps) < 4, "it did not grow"


async def test_what_is_nearly_due_travels_in_a_tick_that_comes_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in {"TICK": 1.0, "TICK_JITTER": 0.0, "FIRST_INTERVAL": 1.35}.items():
        monkeypatch.setattr(polling, name, seconds)
    source = Source({"a": "pending"})
    schedule = schedule_of(source)
    first = asyncio.ensure_future(schedule.wait("a", ready, soon(20)))
    await asyncio.sleep(1.02)
    source.states.update(a="ready", b="ready")
    assert await schedule.wait("b", ready, soon(20)) == "ready"
    assert await first == "ready"
    assert [sorted(keys) for _, keys in source.asked] == [["a"], ["a", "b"]]


async def test_the_last_look_comes_shortly_before_the_deadline() -> None:
    source = Source({"a": "pending"})
    schedule = schedule_of(source)
    # The growing interval would have it asked after 9.1 ticks and then after 14.2.
    wait = asyncio.ensure_future(schedule.wait("a", ready, soon(13 * TICK)))
    await asyncio.sleep(11 * TICK)
    source.states["a"] = "ready"
    assert await wait == "ready"


@pytest.mark.parametrize("timeout", [0.0, 0.1, 1.5])
async def test_a_deadline_that_passes_is_a_timeout_then_and_not_later(
    timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in SECONDS.items():
        monkeypatch.setattr(polling, name, seconds)
    schedule = schedule_of(Source({"a": "pending"}))
    started = time.monotonic()
    with pytest.raises(PollTimeout) as caught:
        await schedule.wait("a", ready, soon(timeout))
    assert timeout - 0.01 < time.monotonic() - started < timeout + 0.2
    assert caught.value.last_error is None
    await asyncio.sleep(0.01)
    assert polling_tasks() == []


async def test_a_key_that_the_answer_lacks_is_asked_for_again() -> None:
    source = Source()
    schedule = schedule_of(source)
    wait = asyncio.ensure_future(schedule.wait("a", ready, soon(5)))
    await asyncio.sleep(0.1)
    source.states["a"] = "ready"
    assert await wait == "ready"


async def test_an_error_that_may_pass_is_kept_and_asked_again() -> None:
    source = Source({"a": "ready"})
    failures = [ConnectionError("first")]

    async def fail() -> None:
        if failures:
            raise failures.pop()

    source.before = fail
    assert await schedule_of(source).wait("a", ready, soon(5)) == "ready"
    assert len(source.asked) == 2


async def test_the_last_error_that_may_pass_is_told_with_the_timeout() -> None:
    source = Source()
    error = ConnectionError("down")

    async def fail() -> None:
        raise error

    source.before = fail
    with pytest.raises(PollTimeout) as caught:
        await schedule_of(source).wait("a", ready, soon(0.2))
    assert caught.value.last_error is error


async def test_an_error_that_will_not_pass_ends_the_waits_of_its_question() -> None:
    source = Source()

    async def fail() -> None:
        raise PermissionError("no")

    source.before = fail
    schedule = schedule_of(source)
    results = await asyncio.gather(
        *(schedule.wait(key, ready, soon(5)) for key in "ab"), return_exceptions=True
    )
    assert [type(result) for result in results] == [PermissionError] * 2
    assert len(source.asked) == 1


async def test_an_error_in_the_answer_ends_the_waits_of_its_key_alone() -> None:
    source = Source({"a": LookupError("a is gone"), "b": "ready"})
    schedule = schedule_of(source)
    results = await asyncio.gather(
        *(schedule.wait(key, ready, soon(5)) for key in "aab"), return_exceptions=True
    )
    assert [repr(result) for result in results] == [
        "LookupError('a is gone')",
        "LookupError('a is gone')",
        "'ready'",
    ]


@pytest.mark.parametrize("error", [LookupError("ended"), TimeoutError("ended")])
async def test_what_a_look_raises_ends_its_wait(error: Exception) -> None:
    def look(_: object) -> bool:
        raise error

    source = Source({"a": "ended", "b": "ready"})
    schedule = schedule_of(source)
    results = await asyncio.gather(
        schedule.wait("a", look, soon(5)),
        schedule.wait("b", ready, soon(5)),
        return_exceptions=True,
    )
    assert list(results) == [error, "ready"]


async def test_a_timeout_in_the_answer_is_not_taken_for_the_waiters_own() -> None:
    error = TimeoutError("the sandbox timed out")
    with pytest.raises(TimeoutError) as caught:
        await schedule_of(Source({"a": error})).wait("a", ready, soon(5))
    assert caught.value is error


async def test_a_question_that_hangs_holds_no_waiter_past_its_deadline() -> None:
    source = Source()

    async def hang() -> None:
        await asyncio.Event().wait()

    source.before = hang
    schedule = schedule_of(source)
    started = time.monotonic()
    with pytest.raises(PollTimeout):
        await schedule.wait("a", ready, soon(0.1))
    assert time.monotonic() - started < 0.3
    schedule.close()
    await asyncio.sleep(0.01)
    assert polling_tasks() == []


async def test_a_waiter_that_is_cancelled_leaves_and_takes_the_schedule_along() -> None:
    source = Source({"a": "pending", "b": "pending"})
    schedule = schedule_of(source)
    waits = [asyncio.ensure_future(schedule.wait(key, ready, soon(60))) for key in "ab"]
    await asyncio.sleep(0.05)
    waits[0].cancel()
    await asyncio.sleep(1.3 * TICK)
    assert [sorted(keys) for _, keys in source.asked] == [["a", "b"], ["b"]]
    waits[1].cancel()
    await asyncio.wait(waits)
    await asyncio.sleep(0.01)
    assert polling_tasks() == []


async def test_a_waiter_cancelled_as_its_error_arrives_leaves_no_noise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Source({"a": LookupError("gone")})
    waits: list[asyncio.Future[object]] = []

    async def cancel() -> None:
        asyncio.get_running_loop().call_soon(waits[0].cancel)

    source.before = cancel
    waits.append(asyncio.ensure_future(schedule_of(source).wait("a", ready, soon(5))))
    await asyncio.wait(waits)
    waits.clear()
    await asyncio.sleep(0.05)
    assert caplog.text == ""


async def test_closing_ends_every_wait_with_an_error() -> None:
    schedule = schedule_of(Source({"a": "pending"}))
    waits = [asyncio.ensure_future(schedule.wait("a", ready, soon(60))) for _ in range(3)]
    await asyncio.sleep(0.05)
    schedule.close()
    for wait in waits:
        with pytest.raises(RuntimeError, match="closed"):
            await asyncio.wait_for(wait, 1.0)
    schedule.close()
    assert polling_tasks() == []
