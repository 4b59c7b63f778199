"""A spool's records arrive, each of them once, and it says where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from prime_traces import AsyncTraceSpool
from spools import StartPlatform, Stored, trace, waiting


async def test_what_is_appended_arrives_and_leaves_the_disk(stored: Stored, tmp_path: Path) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        for number in range(5):
            await spool.append(trace(f"t{number}"))
        assert await spool.flush()
        assert stored.in_order() == [f"t{number}" for number in range(5)]
        stats = spool.stats
    assert (stats.appended, stats.uploaded, stats.pending) == (5, 5, 0)
    assert waiting(tmp_path / "spool") == []
    assert stored.requests == 1
