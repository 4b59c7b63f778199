"""Many callers, few requests: keys are collected for a moment and asked for together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

__all__ = ["Batcher"]

K = TypeVar("K")
V = TypeVar("V")


class Batcher(Generic[K, V]):
    """Collects keys until a batch is full or its time is over, then runs them as one.

    It lives on one event loop. The same key submitted twice is asked for once.

    Args:
        run: does the work of a batch; a key that is missing from its answer, or is mapped to
            an exception, fails for its submitters alone.
        size: most keys of a batch.
        delay: seconds from the first key of a batch to its start at the latest.
    """

    def __init__(
        self,
        run: Callable[[list[K]], Awaitable[Mapping[K, V | BaseException]]],
        *,
        size: int,
        delay: float,
    ) -> None:
        self._run = run
        self._size = size
        self._delay = delay
        self._waiting: dict[K, asyncio.Future[V]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, key: K) -> V:
        """Adds a key to the next batch and waits for its result."""
        loop = asyncio.get_running_loop()
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = loop.create_future()
            if len(self._waiting) >= self._size:
                self.flush()
            elif self._timer is None:
                self._timer = loop.call_later(self._delay, self.flush)
        return await asyncio.shield(future)

    def flush(self) -> None:
        """Starts the batch that is being collected at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            batch, self._waiting = self._waiting, {}
            task = asyncio.get_running_loop().create_task(self._perform(batch))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _perform(self, batch: dict[K, asyncio.Future[V]]) -> None:
        try:
            results = await self._run(list(batch))
        except BaseException as error:
            for future in batch.values():
                _fail(future, error)
            if not isinstance(error, Exception):
                raise
            return
        for key, future in batch.items():
            result = results.get(key, KeyError(key))
            if isinstance(result, BaseException):
                _fail(future, result)
            elif not future.done():
                future.set_result(result)


def _fail(future: asyncio.Future[V], error: BaseException) -> None:
    if future.done():
        return
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
    else:
        future.set_exception(error)
        future.exception()  # its submitter may be gone; that is no news
