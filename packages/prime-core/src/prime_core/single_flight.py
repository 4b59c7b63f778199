"""One request for what many callers want at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["SingleFlight"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Lets the callers of a key share one run of the work, on one event loop.

    Args:
        work: what is done for a key, bounded in time. A caller's cancellation leaves it
            running for the others.
    """

    def __init__(self, work: Callable[[K], Awaitable[V]]) -> None:
        self._work = work
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def do(self, key: K) -> V:
        """Joins the work for a key that is under way, or starts it."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(self._run(key))
            # Its failure is no news when every caller is gone.
            flight.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._flights[key] = flight
        return await asyncio.shield(flight)

    async def _run(self, key: K) -> V:
        try:
            return await self._work(key)
        finally:
            del self._flights[key]
