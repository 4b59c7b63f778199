"""Background tasks that somebody owns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger("prime_local")


class TaskSet:
    """Holds running tasks, reports their failures and ends them when it closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def settle(self, seconds: float) -> None:
        """Wait for the tasks of now, and for those that they start, at most `seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._tasks and (left := deadline - loop.time()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)

    async def close(self, seconds: float) -> None:
        """Cancel what still runs and wait for it, at most `seconds`."""
        for task in self._tasks:
            task.cancel()
        await self.settle(seconds)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background task failed", exc_info=error)
