"""Running several coroutines as one, on every supported Python version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

__all__ = ["run_all", "run_each"]

T = TypeVar("T")

# Tasks that are created together start in one step of the loop, during which nothing else runs.
STARTED_AT_ONCE = 250


async def run_all(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs coroutines together and returns their results in order.

    The first failure, or a cancellation, cancels the others and waits for their end before
    it is raised. ``asyncio.gather`` leaves them running, and ``asyncio.TaskGroup`` needs
    Python 3.11 and wraps the failure in a group.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[T]] = []
    waiting = iter(coroutines)
    try:
        for coroutine in waiting:
            tasks.append(loop.create_task(coroutine))
            if len(tasks) % STARTED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for coroutine in waiting:
            coroutine.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def run_each(
    work: Callable[[T], Awaitable[object]], items: Iterable[T], *, limit: int
) -> None:
    """Works on items, so many at once; they are pulled as their turn comes.

    The first failure, or a cancellation, cancels what is under way, waits for its end, and is
    raised; items that have had no turn have none.
    """
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    await run_all(worker() for _ in range(limit))
