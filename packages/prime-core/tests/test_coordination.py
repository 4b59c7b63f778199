"""Small primitives: batching, one flight for many, running together, one per loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Mapping

import pytest

from prime_core.batching import Batcher
from prime_core.concurrency import run_all
from prime_core.deadlines import wait_until
from prime_core.per_loop import PerLoop
from prime_core.single_flight import SingleFlight


class Work:
    """A batch's work that keeps its batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.results: dict[int, int | BaseException] = {}
        self.error: BaseException | None = None
        self.seconds = 0.0

    async def run(self, keys: list[int]) -> Mapping[int, int | BaseException]:
        self.batches.append(keys)
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return {key: self.results.get(key, key * 10) for key in keys if key >= 0}


def batcher(work: Work, size: int = 100, delay: float = 0.05) -> Batcher[int, int]:
    return Batcher(work.run, size=size, delay=delay)


async def test_keys_of_a_moment_travel_in_one_batch() -> None:
    work = Work()
    batch = batcher(work)
    started = time.monotonic()
    results = await asyncio.gather(*(batch.submit(key) for key in range(10)))
    assert results == [key * 10 for key in range(10)]
    assert work.batches == [list(range(10))]
    assert 0.04 < time.monotonic() - started < 0.5


async def test_a_full_batch_leaves_at_once() -> None:
    work = Work()
    batch = batcher(work, size=3, delay=60.0)
    waits = [asyncio.ensure_future(batch.submit(key)) for key in range(7)]
    await asyncio.wait(waits[:6], timeout=5.0)
    assert work.batches == [[0, 1, 2], [3, 4, 5]]
    assert not waits[6].done()
    batch.flush()
    assert await waits[6] == 60


async def test_a_key_submitted_twice_is_asked_for_once() -> None:
    work = Work()
    batch = batcher(work)
    assert list(await asyncio.gather(batch.submit(1), batch.submit(1))) == [10, 10]
    assert work.batches == [[1]]


async def test_a_key_submitted_while_its_batch_runs_is_asked_for_again() -> None:
    work = Work()
    work.seconds = 0.1
    batch = batcher(work, delay=0.0)
    first = asyncio.ensure_future(batch.submit(1))
    await asyncio.sleep(0.05)
    assert list(await asyncio.gather(first, batch.submit(1))) == [10, 10]
    assert work.batches == [[1], [1]]


async def test_a_failed_batch_fails_for_all_and_the_next_works() -> None:
    work = Work()
    work.error = ConnectionError("down")
    batch = batcher(work)
    results = await asyncio.gather(batch.submit(1), batch.submit(2), return_exceptions=True)
    assert list(results) == [work.error, work.error]
    work.error = None
    assert await batch.submit(1) == 10


async def test_a_key_that_fails_or_is_missing_fails_alone() -> None:
    work = Work()
    work.results[2] = LookupError("two")
    batch = batcher(work)
    results = await asyncio.gather(
        batch.submit(1), batch.submit(2), batch.submit(-3), return_exceptions=True
    )
    assert [repr(result) for result in results] == ["10", "LookupError('two')", "KeyError(-3)"]


async def test_a_submitter_that_leaves_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    work.error = ConnectionError("down")
    batch = batcher(work)
    first, second = (asyncio.ensure_future(batch.submit(key)) for key in (1, 2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(ConnectionError):
        await second
    assert work.batches == [[1, 2]]
    del first, second
    gc.collect()
    assert caplog.text == ""


async def test_a_submitter_that_leaves_does_not_take_its_key_along() -> None:
    batch = batcher(Work())
    first, second = (asyncio.ensure_future(batch.submit(1)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 10
    assert first.cancelled()


async def test_flushing_nothing_does_nothing() -> None:
    work = Work()
    batcher(work).flush()
    await asyncio.sleep(0.01)
    assert work.batches == []


async def test_many_callers_of_a_key_share_one_flight() -> None:
    flights: list[str] = []

    async def work(key: str) -> str:
        flights.append(key)
        await asyncio.sleep(0.02)
        return key.upper()

    flight = SingleFlight(work)
    results = await asyncio.gather(*(flight.do(key) for key in "aabab"))
    assert results == ["A", "A", "B", "A", "B"]
    assert flights == ["a", "b"]
    assert await flight.do("a") == "A"
    assert flights == ["a", "b", "a"]


async def test_the_first_callers_cancellation_leaves_the_flight_to_the_others() -> None:
    async def work(key: str) -> str:
        await asyncio.sleep(0.05)
        return key.upper()

    flight = SingleFlight(work)
    first = asyncio.ensure_future(flight.do("a"))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(flight.do("a"))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "A"
    assert first.cancelled()


async def test_a_flight_that_fails_fails_for_all_and_is_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = [ConnectionError("down")]

    async def work(key: str) -> str:
        await asyncio.sleep(0.01)
        if errors:
            raise errors.pop()
        return key

    flight = SingleFlight(work)
    results = await asyncio.gather(flight.do("a"), flight.do("a"), return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionError] * 2
    assert await flight.do("a") == "a"
    errors.append(ConnectionError("again"))
    alone = asyncio.ensure_future(flight.do("a"))
    await asyncio.sleep(0)
    alone.cancel()
    await asyncio.sleep(0.05)
    gc.collect()
    assert caplog.text == ""


async def test_coroutines_run_together_and_keep_their_order() -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(0.05 - number * 0.01)
        return number

    started = time.monotonic()
    assert await run_all(work(number) for number in range(5)) == [0, 1, 2, 3, 4]
    assert time.monotonic() - started < 0.2
    assert await run_all([]) == []


async def test_the_first_failure_cancels_the_others_and_waits_for_their_end() -> None:
    ended: list[str] = []

    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise LookupError("first")

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            ended.append("slow")

    with pytest.raises(LookupError):
        await run_all([slow(), fail(), slow()])
    assert ended == ["slow", "slow"]


async def test_a_cancellation_reaches_all_and_waits_for_their_end() -> None:
    ended: list[int] = []

    async def slow(number: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            ended.append(number)

    together = asyncio.ensure_future(run_all(slow(number) for number in range(3)))
    await asyncio.sleep(0.01)
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert sorted(ended) == [0, 1, 2]


async def test_others_get_their_turn_while_many_are_started() -> None:
    started = 0
    seen: list[int] = []

    async def work() -> None:
        nonlocal started
        started += 1

    async def other() -> None:
        while started < 2_000:
            seen.append(started)
            await asyncio.sleep(0)

    await asyncio.gather(other(), run_all(work() for _ in range(2_000)))
    assert len(seen) > 5, seen


async def test_a_cancellation_while_many_are_started_leaves_none_behind() -> None:
    ended = 0

    async def work() -> None:
        nonlocal ended
        try:
            await asyncio.sleep(60)
        finally:
            ended += 1

    works = [work() for _ in range(1_000)]  # those that were not started are closed
    together = asyncio.ensure_future(run_all(works))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert 0 < ended < 1_000


def test_each_loop_has_its_own_object_and_keeps_it() -> None:
    made: list[object] = []

    def make() -> object:
        made.append(object())
        return made[-1]

    per_loop = PerLoop(make)
    assert not per_loop

    async def main() -> tuple[object, object]:
        return per_loop.get(), per_loop.get()

    first, again = asyncio.run(main())
    second, _ = asyncio.run(main())
    assert first is again
    assert first is not second
    assert len(made) == 2
    assert per_loop


def test_the_objects_of_closed_loops_are_disposed_of_at_the_next_new_one() -> None:
    disposed: list[int] = []
    numbers = iter(range(100))
    per_loop = PerLoop(lambda: next(numbers), lambda loop, value: disposed.append(value))

    async def main() -> int:
        return per_loop.get()

    assert [asyncio.run(main()) for _ in range(50)] == list(range(50))
    assert disposed == list(range(49))
    assert len(list(per_loop.pop_all())) == 1
    assert not per_loop


def test_loops_of_many_threads_do_not_disturb_each_other() -> None:
    disposed: list[object] = []
    per_loop = PerLoop(object, lambda loop, value: disposed.append(value))
    failures: list[BaseException] = []

    async def main() -> None:
        mine = per_loop.get()
        await asyncio.sleep(0)
        assert per_loop.get() is mine

    def work() -> None:
        try:
            for _ in range(30):
                asyncio.run(main())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(disposed) + len(list(per_loop.pop_all())) == 240
    assert len(set(disposed)) == len(disposed)


async def test_a_wait_for_a_future_ends_at_its_deadline_and_leaves_it_alone() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    assert not await wait_until(future, loop.time() + 0.05)
    assert not await wait_until(future, loop.time() - 1)
    assert not future.done()
    loop.call_later(0.02, future.set_result, None)
    assert await wait_until(future, loop.time() + 5)
    assert await wait_until(future, loop.time() - 1)
