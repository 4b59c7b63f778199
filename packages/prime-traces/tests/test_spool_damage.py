"""What a damaged or full disk does to a spool's records: as little as can be."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pytest
from spools import Arrived, small_disk, trace, until, waiting

from prime_local import FaultRule
from prime_traces import AsyncTraceSpool, SpoolWriteError
from prime_traces.spool.framing import Header
from prime_traces.spool.segments import OpenSegment, Place

__all__ = ["small_disk"]


def line(identity: str) -> bytes:
    return json.dumps(trace(identity)).encode() + b"\n"


def flip(path: Path, text: bytes) -> bytes:
    """Flips a bit in this text of a file; gives what is there now."""
    data = path.read_bytes()
    assert data.count(text) == 1
    changed = bytes([text[0] ^ 1]) + text[1:]
    path.write_bytes(data.replace(text, changed))
    return changed


async def left_sealed(arrived: Arrived, directory: Path, identities: list[str]) -> Path:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    spool = AsyncTraceSpool(directory, max_delay=60)
    for identity in identities:
        await spool.append(trace(identity))
    await spool.aclose(timeout=0)
    arrived.platform.clear_faults()
    [name] = waiting(directory)
    return directory / name


def left_open(directory: Path, identities: list[str]) -> Path:
    directory.mkdir()
    segment = OpenSegment.create(str(directory), Place([1]), Header("trace"))
    segment.add([line(identity) for identity in identities], sync=True)
    segment.abandon()
    return directory / "0000000001.open"


@pytest.mark.parametrize("kind", ["open", "sealed"])
@pytest.mark.parametrize("hit", [0, 3, 9])
async def test_a_flipped_bit_sets_one_record_aside_and_all_others_arrive(
    arrived: Arrived, tmp_path: Path, kind: str, hit: int
) -> None:
    directory = tmp_path / "spool"
    identities = [f"record-{number}-" for number in range(10)]
    if kind == "open":
        path = left_open(directory, identities)
    else:
        path = await left_sealed(arrived, directory, identities)
    changed = flip(path, identities[hit].encode())
    async with AsyncTraceSpool(directory) as spool:
        assert spool.stats.pending == 10
        assert await spool.flush()
        stats = spool.stats
    assert arrived.in_order() == identities[:hit] + identities[hit + 1 :]
    assert (stats.pending, stats.uploaded, stats.rejected) == (0, 9, 1)
    assert waiting(directory) == []
    [lines] = (directory / "rejected").glob("*.jsonl")
    assert json.loads(lines.read_bytes())["id"] == changed.decode()
    why = json.loads(lines.with_suffix(".json").read_bytes())
    assert (why["code"], why["line_format"]) == ("damaged_on_disk", "trace")
    assert "1 of 10 records" in why["message"]


async def test_records_whose_header_is_damaged_are_set_aside_as_lines(
    arrived: Arrived, tmp_path: Path
) -> None:
    directory = tmp_path / "spool"
    path = left_open(directory, ["one", "two"])
    flip(path, b"line_format")
    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
        assert spool.stats.rejected == 2
    assert arrived.requests == 0
    [lines] = (directory / "rejected").glob("*.jsonl")
    assert [json.loads(each)["id"] for each in lines.open()] == ["one", "two"]
    assert json.loads(lines.with_suffix(".json").read_bytes())["line_format"] is None


async def test_a_sealed_segment_that_lost_its_end_says_how_many_records_are_gone(
    arrived: Arrived, tmp_path: Path
) -> None:
    directory = tmp_path / "spool"
    path = await left_sealed(arrived, directory, ["one", "two", "three"])
    os.truncate(path, path.read_bytes().index(b'"two"') - 14)
    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
        assert spool.stats.rejected == 2
    assert arrived.in_order() == ["one"]
    [why] = (directory / "rejected").glob("*.json")
    assert "2 of 3 records" in json.loads(why.read_bytes())["message"]


def fill_up(disk: Path) -> Path:
    """Takes the last byte of a disk."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return ballast


async def test_a_refused_record_on_a_full_disk_holds_up_no_other(
    arrived: Arrived, small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = small_disk / "spool"
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    async with AsyncTraceSpool(directory, segment_bytes=20_000, max_delay=60) as spool:
        for number in range(40):
            old = {"timing": {"start": 5.0}} if number in (3, 7) else {}
            await spool.append(trace(f"t{number}", "x" * 1500, **old))
        ballast = fill_up(small_disk)
        arrived.platform.clear_faults()
        await spool.flush(timeout=5)
        expected = {f"t{number}": 1 for number in range(40) if number not in (3, 7)}
        assert arrived.ids() == expected
        ballast.unlink()
        assert await spool.flush()
        stats = spool.stats
    assert (stats.pending, stats.uploaded, stats.rejected) == (0, 38, 2)
    [lines] = (directory / "rejected").glob("*.jsonl")
    assert [json.loads(each)["id"] for each in lines.open()] == ["t3", "t7"]
    assert arrived.ids() == expected


async def test_where_not_even_the_refused_record_has_room_that_is_said(
    arrived: Arrived, small_disk: Path
) -> None:
    directory = small_disk / "spool"
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    spool = AsyncTraceSpool(directory, max_delay=60)
    for number in range(40):
        old = {"timing": {"start": 5.0}} if number == 3 else {}
        await spool.append(trace(f"t{number}", "x" * 1500, **old))
    ballast = fill_up(small_disk)
    arrived.platform.clear_faults()
    assert not await spool.flush(timeout=3)
    expected = {f"t{number}": 1 for number in range(40) if number != 3}
    assert arrived.ids() == expected
    await until(spool, "retrying")
    assert "no room to set 1 refused records aside" in str(spool.stats.error)
    assert (spool.stats.pending, spool.stats.uploaded) == (1, 39)
    # The next spool sends the same groups under the same keys.
    assert (await spool.aclose(timeout=0)).pending == 1
    ballast.unlink()
    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
        assert spool.stats.rejected == 1
    assert arrived.ids() == expected


async def test_records_that_go_with_the_directory_are_told(
    arrived: Arrived, tmp_path: Path
) -> None:
    directory = tmp_path / "spool"
    async with AsyncTraceSpool(directory, segment_bytes=1, max_delay=60) as spool:
        arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
        for number in range(5):
            await spool.append(trace(f"t{number}"))
        shutil.rmtree(directory)
        with pytest.raises(SpoolWriteError, match="No such file"):
            await spool.append(trace("after"))
        arrived.platform.clear_faults()
        with pytest.raises(SpoolWriteError, match="removed"):
            await spool.flush()
        stats = spool.stats
    assert stats.lost + stats.uploaded == stats.appended == 5
    assert stats.lost >= 4
    assert stats.pending == 0


async def test_nothing_is_appended_to_a_file_that_is_gone(arrived: Arrived, tmp_path: Path) -> None:
    directory = tmp_path / "spool"
    async with AsyncTraceSpool(directory, max_delay=60) as spool:
        await spool.append(trace("before"))
        shutil.rmtree(directory)
        with pytest.raises(SpoolWriteError, match="removed the segment's file"):
            await spool.append(trace("after"))
        with pytest.raises(SpoolWriteError, match="removed 1 records"):
            await spool.flush()
    assert (spool.stats.appended, spool.stats.lost) == (1, 1)
