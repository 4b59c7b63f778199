"""Telling the platform how a run ended, for as long as there is time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from prime_core.errors import APITimeoutError
from prime_traces.runs.outlet import is_transient

__all__ = ["report"]

# Between two attempts; the last one is repeated.
PAUSES = (0.5, 1.0, 2.0)


async def report(tell: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Tells it, again and again while only the way there fails.

    Args:
        tell: says it; that it was said before must not matter to it.
        seconds: how long it may take in all.

    Raises:
        APIError: it could not be told.
    """
    deadline = time.monotonic() + seconds
    failure: Exception = APITimeoutError(
        f"The platform did not answer within {seconds:g} s.", sent="unknown", phase="total"
    )
    attempt = 0
    while (left := deadline - time.monotonic()) > 0:
        try:
            await asyncio.wait_for(tell(), left)
            return
        except asyncio.TimeoutError as error:
            if isinstance(error, APITimeoutError):
                failure = error
        except Exception as error:
            if not is_transient(error):
                raise
            failure = error
        pause = PAUSES[min(attempt, len(PAUSES) - 1)]
        attempt += 1
        await asyncio.sleep(max(0.0, min(pause, deadline - time.monotonic())))
    raise failure
