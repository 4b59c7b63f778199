"""Pacing: one limiter and one gate per rate-limit scope.

The limiter keeps calls below a documented limit before they are sent; the gate is closed by
the first 429 and holds every call of the scope back until the platform's Retry-After is over.
After that they leave at the limiter's pace, not in a wave.
"""

from __future__ import annotations

import asyncio
import time

from aiolimiter import AsyncLimiter

from prime_core.deadlines import timeout_at
from prime_core.operations import RateLimit

__all__ = ["Scope"]


def _limiter(limit: RateLimit) -> AsyncLimiter:
    # Simulated with 1,000 creates against a sliding window: a burst of a fiftieth at 95 % of
    # the rate gets no 429; larger bursts overshoot the window.
    burst = max(1.0, limit.requests / 50)
    rate = 0.95 * limit.requests / limit.seconds
    return AsyncLimiter(burst, burst / rate)


class Scope:
    """One rate-limit class of calls, on one event loop."""

    __slots__ = ("_limiter", "opens_at")

    def __init__(self, limit: RateLimit | None) -> None:
        self._limiter = _limiter(limit) if limit is not None else None
        self.opens_at = 0.0  # on time.monotonic(); in the past when open

    @property
    def free(self) -> bool:
        """Whether calls may pass without waiting or counting."""
        return self._limiter is None and self.opens_at <= time.monotonic()

    def close(self, seconds: float) -> None:
        """Holds every call of the scope back for so many seconds from now."""
        self.opens_at = max(self.opens_at, time.monotonic() + seconds)

    async def enter(self, patience: float) -> bool:
        """Waits for the gate and for a place in the limit.

        Args:
            patience: seconds to wait at most.

        Returns:
            False when the patience was over first.
        """
        deadline = asyncio.get_running_loop().time() + patience
        try:
            async with timeout_at(deadline):
                while True:
                    closed = self.opens_at - time.monotonic()
                    if closed > 0:
                        await asyncio.sleep(closed)
                    elif self._limiter is None:
                        return True
                    else:
                        await self._limiter.acquire()
                        if self.opens_at <= time.monotonic():
                            return True
        except asyncio.TimeoutError:
            return False
