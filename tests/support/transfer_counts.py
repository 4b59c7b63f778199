"""How many requests a platform has seen."""

from __future__ import annotations

import asyncio

from prime_local import LocalPlatform

__all__ = ["requests", "until"]

PATIENCE = 40.0


def requests(platform: LocalPlatform, operation: str) -> int:
    """How many of an operation there were."""
    return platform.ledger()["requests"].get(operation, 0)


async def until(platform: LocalPlatform, operation: str, count: int) -> None:
    """Waits until there were so many."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while requests(platform, operation) < count:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)
