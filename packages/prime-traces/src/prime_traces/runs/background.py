"""Work on the process's loop thread, and blocking work off it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from prime_core.reaper import reaper
from prime_core.sync import in_thread, loop_thread

__all__ = ["exiting", "off_loop", "on_loop_thread"]

T = TypeVar("T")


async def on_loop_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the loop thread; the caller's cancellation leaves it running there."""
    loop = loop_thread().loop
    if asyncio.get_running_loop() is loop:  # for the sync twin, whose calls run there
        return await asyncio.shield(loop.create_task(coroutine))
    return await reaper.run(coroutine)


async def off_loop(function: Callable[..., T], *args: object) -> T:
    """Calls a function that computes or blocks on a thread of its own."""
    if exiting():
        return function(*args)
    return await in_thread(function)(*args)


def exiting() -> bool:
    """Whether the interpreter has begun to exit, from when on no thread can be started."""
    return not threading.main_thread().is_alive()
