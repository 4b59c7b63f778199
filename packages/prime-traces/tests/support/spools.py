"""Records for spools, and what of them has arrived at a platform."""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_local import LocalPlatform
from prime_traces import AsyncTraceSpool
from prime_traces.spool.status import SpoolState


def trace(identity: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """A record that the platform takes."""
    return {
        "id": identity,
        "timing": {"start": time.time()},
        "nodes": [{"message": {"role": "user", "content": text}}],
        **fields,
    }


class Arrived:
    """The traces service of a platform with a data directory.

    Args:
        platform: the platform.
        data_dir: its directory.
    """

    def __init__(self, platform: LocalPlatform, data_dir: Path) -> None:
        self.platform = platform
        self._data_dir = data_dir

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self._data_dir / "traces.sqlite3")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def ids(self) -> Counter[str]:
        """How many copies there are of each trace."""
        return Counter(row[0] for row in self._rows("SELECT trace_id FROM traces"))

    def in_order(self) -> list[str]:
        """The traces in the order in which they were stored."""
        return [row[0] for row in self._rows("SELECT trace_id FROM traces ORDER BY id")]

    def contexts(self) -> dict[str, str]:
        """The context of each trace, as JSON."""
        return dict(self._rows("SELECT trace_id, context FROM traces"))

    def episodes(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT episode_id FROM episodes ORDER BY id")]

    def uploads(self) -> int:
        """How many uploads were stored."""
        [(count,)] = self._rows("SELECT COUNT(*) FROM uploads")
        return int(count)

    @property
    def requests(self) -> int:
        """How many uploads were asked for."""
        return self.platform.ledger()["requests"].get("upload_traces", 0)

    async def requested(self) -> None:
        """Returns once an upload was asked for."""
        for _ in range(1000):
            if self.requests:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("nothing was uploaded")


@pytest.fixture
def arrived(platform: LocalPlatform, tmp_path: Path) -> Arrived:
    return Arrived(platform, tmp_path / "platform")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small disk needs root and mount")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def waiting(directory: Path) -> list[str]:
    """The names of the segments in a spool's directory."""
    names = itertools.chain(directory.glob("*.open"), directory.glob("*.sealed"))
    return sorted(path.name for path in names)


async def until(spool: AsyncTraceSpool, state: SpoolState) -> None:
    for _ in range(1000):
        if spool.state == state:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"it is {spool.state}, not {state}")
