"""A limit that follows what the platform takes."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import prime_core.adaptive
from prime_core.adaptive import AdaptiveLimit


async def test_no_more_than_the_limit_are_under_way() -> None:
    limit = AdaptiveLimit(3)
    under_way = most = 0

    async def work() -> None:
        nonlocal under_way, most
        await limit.enter()
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        limit.leave()

    await asyncio.gather(*[work() for _ in range(20)])
    assert most == 3


async def test_refusals_of_one_moment_shrink_it_once() -> None:
    limit = AdaptiveLimit(100)
    began = [await limit.enter() for _ in range(100)]
    for start in began:
        limit.refused(start, 0.01)
    assert limit.allowed == 70
    for _ in began:
        limit.leave()
    late = await limit.enter()
    limit.refused(late, 0.01)
    assert limit.allowed == 1  # of the one that was under way
    limit.leave()


async def test_it_grows_by_one_for_each_full_round() -> None:
    limit = AdaptiveLimit(10)
    began = [await limit.enter() for _ in range(10)]
    limit.refused(began[0], 0.0)
    assert limit.allowed == 7
    for _ in range(8):
        limit.passed()
    assert limit.allowed == 8
    for _ in range(100):
        limit.passed()
    assert limit.allowed == 10


async def test_a_refusal_holds_everybody_back() -> None:
    limit = AdaptiveLimit(5)
    refused = await limit.enter()
    limit.refused(refused, 0.1)
    limit.leave()

    async def work() -> float:
        began = await limit.enter()
        limit.leave()
        return began

    began = await asyncio.wait_for(asyncio.gather(work(), work()), 5)
    assert min(began) >= refused + 0.1


async def test_unnamed_pauses_double_until_a_call_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prime_core.adaptive, "SMALLEST_PAUSE", 1.0)
    limit = AdaptiveLimit(5)
    pauses = []
    for _ in range(6):
        now = asyncio.get_running_loop().time()
        limit.refused(now, None)
        pauses.append(round(limit._opens_at - now))
        await asyncio.sleep(0.002)
    assert pauses == [2, 4, 8, 16, 20, 20]
    limit.passed()
    limit.refused(asyncio.get_running_loop().time(), None)
    assert limit._pause == 2


async def test_a_cancelled_wait_loses_no_place() -> None:
    limit = AdaptiveLimit(1)
    await limit.enter()
    waits = [asyncio.ensure_future(limit.enter()) for _ in range(3)]
    await asyncio.sleep(0)
    waits[0].cancel()
    await asyncio.sleep(0)
    limit.leave()  # the second has the place now, and is cancelled before it knows
    waits[1].cancel()
    for wait in waits[:2]:
        with contextlib.suppress(asyncio.CancelledError):
            await wait
    await asyncio.wait_for(waits[2], 1)
    limit.leave()
    await asyncio.wait_for(limit.enter(), 1)
