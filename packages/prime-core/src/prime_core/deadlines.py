"""Deadlines on awaits, for all supported Python versions."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys

if sys.version_info >= (3, 11):
    from asyncio import timeout, timeout_at
else:
    from async_timeout import timeout, timeout_at  # type: ignore[import-not-found,unused-ignore]

__all__ = ["move_deadline", "timeout", "timeout_at", "wait_until"]


def move_deadline(limit: timeout, deadline: float | None) -> None:
    """Moves the end of a `timeout_at`; None takes it away. One that has come or is left stays.

    Args:
        limit: what ``async with timeout_at(...) as limit`` gave.
        deadline: loop time.
    """
    with contextlib.suppress(RuntimeError):  # of one that can't be moved any more
        if sys.version_info >= (3, 11):
            limit.reschedule(deadline)
        else:
            # async_timeout would cancel the task that moves the end, such as the one that
            # sends a body, in place of the one that is limited.
            limited = limit._task
            limit.update(math.inf if deadline is None else deadline)
            limit._task = limited


async def wait_until(future: asyncio.Future[None], deadline: float) -> bool:
    """Waits for a future, at most until the loop time ``deadline``.

    Returns:
        Whether the future was done; it is left alone otherwise.
    """
    if not future.done():
        delay = deadline - asyncio.get_running_loop().time()
        await asyncio.wait([future], timeout=max(0.0, delay))
    return future.done()
