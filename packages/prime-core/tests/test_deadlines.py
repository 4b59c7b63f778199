"""Limits whose end is moved while they hold."""

from __future__ import annotations

import asyncio
import time

import pytest

from prime_core.deadlines import move_deadline, timeout_at


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_end_is_moved_on_and_taken_away() -> None:
    async with timeout_at(now() + 0.05) as limit:
        move_deadline(limit, now() + 10)
        await asyncio.sleep(0.1)
        move_deadline(limit, None)
        await asyncio.sleep(0.01)


async def test_an_end_is_moved_forward() -> None:
    async def work() -> None:
        async with timeout_at(now() + 10) as limit:
            move_deadline(limit, now() + 0.02)
            await asyncio.sleep(5)

    began = time.monotonic()
    with pytest.raises(asyncio.TimeoutError):
        await work()
    assert time.monotonic() - began < 2


async def test_an_end_that_has_come_stays() -> None:
    async def work() -> None:
        async with timeout_at(now() + 0.01) as limit:
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                move_deadline(limit, None)
                move_deadline(limit, now() + 10)
                raise

    with pytest.raises(asyncio.TimeoutError):
        await work()


async def test_a_limit_that_is_left_is_not_moved() -> None:
    async with timeout_at(now() + 0.05) as limit:
        pass
    move_deadline(limit, now() + 0.01)
    await asyncio.sleep(0.05)
