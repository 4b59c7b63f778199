"""What is on disk for sure, and when."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spools import Arrived, trace

from prime_traces import AsyncTraceSpool, SpoolWriteError


@pytest.fixture
def events(arrived: Arrived, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is synced and renamed, with the number of uploads before it."""
    events: list[str] = []

    def log(name: str, path: str) -> None:
        if "spool" in path:
            kind = "folder" if os.path.isdir(path) else os.path.splitext(path)[1]
            events.append(f"{name} {kind} after {arrived.requests}")

    def recording(name: str, path_of: Callable[[Any], str]) -> None:
        real = getattr(os, name)

        def recorded(first: Any, *rest: Any) -> Any:
            log(name, path_of(first))
            return real(first, *rest)

        monkeypatch.setattr(os, name, recorded)

    recording("fsync", lambda fd: os.readlink(f"/proc/self/fd/{fd}"))
    recording("rename", str)
    return events


SEALED = ["fsync .open after 0", "rename .open after 0", "fsync folder after 0"]


async def test_a_segment_and_its_name_are_on_disk_before_it_is_sent(
    arrived: Arrived, tmp_path: Path, events: list[str]
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool", fsync="never") as spool:
        await spool.append(trace("one"))
        assert events == []
        await spool.flush()
    assert events == SEALED
    assert arrived.ids() == {"one": 1}


async def test_an_append_returns_after_its_record_and_the_file_s_name_are_on_disk(
    arrived: Arrived, tmp_path: Path, events: list[str]
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("one"))
        assert events == ["fsync .open after 0", "fsync folder after 0"]
        await spool.append(trace("two"))
        assert events[2:] == ["fsync .open after 0"]
        await spool.flush()
    assert events[3:] == SEALED


async def test_an_interval_syncs_once_for_all_that_came_in_it(
    arrived: Arrived, tmp_path: Path, events: list[str]
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool", fsync=0.3, max_delay=60) as spool:
        for number in range(5):
            await spool.append(trace(f"t{number}"))
        assert events == []
        await asyncio.sleep(0.6)
        assert events == ["fsync .open after 0", "fsync folder after 0"]
        await asyncio.sleep(0.4)
        assert len(events) == 2  # nothing new


async def test_appends_under_way_together_share_an_fsync(
    arrived: Arrived, tmp_path: Path, events: list[str]
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool", max_delay=60) as spool:
        await asyncio.gather(*(spool.append(trace(f"t{number}")) for number in range(500)))
        assert len(events) < 50


async def test_a_record_that_could_not_be_synced_is_refused_and_not_stored(
    arrived: Arrived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("one"))
        monkeypatch.setattr(os, "fsync", failing)
        with pytest.raises(SpoolWriteError, match="the disk is gone"):
            await spool.append(trace("two"))
        with pytest.raises(SpoolWriteError, match="the disk is gone"):
            await spool.flush()
        monkeypatch.setattr(os, "fsync", real)
        await spool.append(trace("three"))
        assert await spool.flush()
    assert arrived.in_order() == ["one", "three"]


async def test_a_later_fsync_that_fails_ends_the_appends_and_says_so(
    arrived: Arrived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    async with AsyncTraceSpool(tmp_path / "spool", fsync=0.05, max_delay=60) as spool:
        await spool.append(trace("one"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            await asyncio.sleep(0.3)
        with pytest.raises(SpoolWriteError, match="nothing more is taken"):
            await spool.append(trace("two"))
    assert arrived.ids() == {"one": 1}


@pytest.mark.parametrize("written", [0, 1])
async def test_a_file_that_can_not_be_brought_back_either_is_given_up_and_loses_nothing(
    arrived: Arrived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """The first record of a segment, or a later one, is torn on a disk that fails."""
    write = os.write

    def tearing(fd: int, data: bytes) -> int:
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(".open") or b"torn" not in bytes(data):
            return write(fd, data)
        patch.setattr(os, "write", failing)
        patch.setattr(os, "ftruncate", failing)
        return write(fd, bytes(data)[:20])

    def failing(*_: object) -> int:
        raise OSError(errno.EIO, "the disk is gone")

    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        for number in range(written):
            await spool.append(trace(f"t{number}"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", tearing)
            for _ in range(2):
                with pytest.raises(SpoolWriteError, match="the disk is gone"):
                    await spool.append(trace("torn"))
        await spool.append(trace("later"))
        assert await spool.flush()
    assert arrived.in_order() == [*(f"t{number}" for number in range(written)), "later"]
