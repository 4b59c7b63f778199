"""Work on many items, so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from prime_core.concurrency import run_each


async def test_items_are_pulled_as_their_turn_comes() -> None:
    pulled: list[int] = []
    done: list[int] = []
    most = 0

    def items() -> Iterator[int]:
        for item in range(10):
            pulled.append(item)
            yield item

    async def work(item: int) -> None:
        nonlocal most
        most = max(most, len(pulled) - len(done))
        await asyncio.sleep(0)
        done.append(item)

    await run_each(work, items(), limit=3)
    assert sorted(done) == list(range(10))
    assert most == 3


async def test_the_first_failure_ends_what_is_under_way_and_begins_nothing_more() -> None:
    begun: list[int] = []
    cancelled: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        if item == 2:
            raise ZeroDivisionError
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    with pytest.raises(ZeroDivisionError):
        await run_each(work, range(10), limit=3)
    assert begun == [0, 1, 2]
    assert cancelled == [0, 1]


async def test_no_items_are_no_work() -> None:
    async def work(item: int) -> None:
        raise AssertionError

    await run_each(work, [], limit=3)
