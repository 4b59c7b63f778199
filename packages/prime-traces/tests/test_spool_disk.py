"""A spool's directory is bounded, its own alone, and comes to after any crash."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from spools import Arrived, small_disk, trace, until, waiting

from prime_local import FaultRule
from prime_traces import (
    AsyncTraceSpool,
    SpoolError,
    SpoolFullError,
    SpoolLockedError,
    SpoolWriteError,
)
from prime_traces.spool.folder import Reason, SpoolFolder
from prime_traces.spool.framing import Header, framed_size, scan
from prime_traces.spool.segments import OpenSegment, Place

__all__ = ["small_disk"]

HEADER = Header("trace")
REASON = Reason("invalid_trace", "line 2: no")


def lines_on_disk(folder: SpoolFolder) -> list[bytes]:
    return [bytes(line) for each in folder.segments for line in folder.read(each).lines]


def left_open(directory: Path, lines: list[bytes]) -> Path:
    """What a process leaves that was killed after it wrote these lines."""
    directory.mkdir()
    segment = OpenSegment.create(str(directory), Place([1]), HEADER)
    segment.add(lines, sync=True)
    segment.abandon()
    return directory / "0000000001.open"


def test_a_segment_torn_at_any_byte_of_its_last_record_keeps_all_others(tmp_path: Path) -> None:
    lines = [b"one\n", b"two\n", b"the last, which is torn\n"]
    directory = tmp_path / "spool"
    path = left_open(directory, lines)
    data = path.read_bytes()
    whole = len(data) - framed_size(lines[-1])
    for size in range(whole, len(data) + 1):
        path.write_bytes(data[:size])
        folder = SpoolFolder(str(directory), "")
        expected = lines if size == len(data) else lines[:2]
        assert lines_on_disk(folder) == expected
        [segment] = folder.segments
        assert segment.digest == hashlib.sha256(b"".join(expected)).hexdigest()
        torn = directory / "rejected" / f"{segment.place}.torn"
        cut_off = data[whole:size] if size < len(data) else b""
        assert (torn.read_bytes() if torn.exists() else b"") == cut_off
        folder.close()
        (directory / segment.name).unlink()
        torn.unlink(missing_ok=True)


def test_a_segment_without_a_whole_record_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "spool"
    path = left_open(directory, [b"one\n"])
    data = path.read_bytes()
    end = scan(data).end - framed_size(b"one\n")
    for size in (0, 1, end - 1, end, end + 3):
        path.write_bytes(data[:size])
        folder = SpoolFolder(str(directory), "")
        assert folder.segments == []
        assert waiting(directory) == []
        folder.close()


def crash_in_cut(directory: Path, syscalls: int) -> bool:
    """Cuts a refused segment in a child that dies at its n-th fsync, unlink or rename."""
    child = os.fork()
    if not child:
        left = syscalls

        def dying(call: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(9)
                return call(*args, **options)

            return counted

        try:
            folder = SpoolFolder(str(directory), "")
            [segment] = folder.segments
            content = folder.read(segment)
            header, lines = content.header, content.lines
            for name in ("fsync", "unlink", "rename", "write"):
                setattr(os, name, dying(getattr(os, name)))
            folder.cut(segment, header, [lines[:1], lines[2:]], lines[1:2], REASON)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_a_crash_while_a_refused_segment_is_cut_leaves_the_one_or_the_others(
    tmp_path: Path,
) -> None:
    lines = [b"a\n", b"bad\n", b"c\n", b"d\n"]
    outcomes = []
    for syscalls in range(100):
        directory = tmp_path / f"spool{syscalls}"
        left_open(directory, lines)
        SpoolFolder(str(directory), "").close()
        crashed = crash_in_cut(directory, syscalls)
        folder = SpoolFolder(str(directory), "")
        rejected = [path.read_bytes() for path in (directory / "rejected").glob("*.jsonl")]
        found = (lines_on_disk(folder), rejected)
        assert found in ((lines, []), ([b"a\n", b"c\n", b"d\n"], [b"bad\n"]))
        sizes = sum(path.stat().st_size for path in directory.rglob("*.*"))
        assert folder.used == sizes
        outcomes.append(len(found[1]))
        folder.close()
        if not crashed:
            break
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1}
    assert len(outcomes) > 10


async def test_the_directory_has_a_limit_and_room_again_after_an_upload(
    arrived: Arrived, tmp_path: Path
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    spool = AsyncTraceSpool(tmp_path / "spool", max_bytes=20_000, max_delay=0)
    async with spool:
        taken = await fill(spool, 500, "limit of 20,000")
        assert taken > 20
        assert spool.stats.disk_bytes <= 20_000
        files = (path for path in (tmp_path / "spool").rglob("*.*") if path.is_file())
        assert spool.stats.disk_bytes == sum(path.stat().st_size for path in files)
        with pytest.raises(SpoolFullError, match=r"for 0\.1 s"):
            await spool.append(trace("never", "x" * 500), wait=0.1)
        patient = asyncio.create_task(spool.append(trace("patient", "x" * 500), wait=20))
        await asyncio.sleep(0.1)
        assert not patient.done()
        arrived.platform.clear_faults()
        await patient
        assert await spool.flush()
        with pytest.raises(SpoolFullError):  # at once: it will never fit
            await spool.append(trace("huge", "x" * 30_000), wait=20)
    assert arrived.ids() == {"patient": 1, **{f"t{n}": 1 for n in range(taken)}}


async def fill(spool: AsyncTraceSpool, size: int, why: str) -> int:
    """Appends until there is no room; gives how many records there was room for."""
    for number in range(1000):
        try:
            await spool.append(trace(f"t{number}", "x" * size))
        except SpoolFullError as full:
            reason = str(full)
            break
    assert why in reason
    return number


def run_on_small_disk(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    return subprocess.run(
        [sys.executable, "-c", program, str(directory)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


FILL_FILE = """
import asyncio, sys, time
from prime_traces import AsyncTraceSpool, SpoolFullError

def trace(n):
    return {"id": f"t{n}", "timing": {"start": time.time()}, "text": "x" * 700}

async def main():
    spool = AsyncTraceSpool(sys.argv[1], max_delay=60)
    done = await asyncio.gather(*(spool.append(trace(n)) for n in range(9)))
    try:
        for n in range(9, 100):
            await spool.append(trace(n))
    except SpoolFullError as error:
        print(error, file=sys.stderr)
    print(n)
    await spool.append(trace(n))  # in the next segment
    await spool.aclose(timeout=0)

asyncio.run(main())
"""


async def test_a_write_that_hits_a_limit_is_refused_and_takes_nothing_with_it(
    arrived: Arrived, tmp_path: Path
) -> None:
    directory = tmp_path / "spool"
    done = await asyncio.to_thread(run_on_small_disk, FILL_FILE, directory)
    assert "File too large" in done.stderr
    count = int(done.stdout)
    assert 20 < count < 30
    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
    assert arrived.ids() == {f"t{n}": 1 for n in range(count + 1)}


async def test_a_full_disk_refuses_records_and_loses_none(
    arrived: Arrived, small_disk: Path
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    async with AsyncTraceSpool(small_disk / "spool", segment_bytes=50_000) as spool:
        taken = await fill(spool, 3000, "No space left")
        assert taken > 30
        together = await asyncio.gather(
            *(spool.append(trace(f"u{n}", "x" * 9000)) for n in range(3)), return_exceptions=True
        )
        assert all(isinstance(error, SpoolFullError) for error in together)
        patient = asyncio.create_task(spool.append(trace("patient", "x" * 3000), wait=30))
        await asyncio.sleep(0.2)
        arrived.platform.clear_faults()
        await patient
        assert await spool.flush()
    assert arrived.ids() == {"patient": 1, **{f"t{n}": 1 for n in range(taken)}}


async def test_a_directory_that_can_not_be_used_is_a_typed_error(
    arrived: Arrived, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    spool = AsyncTraceSpool(tmp_path / "file" / "spool")
    with pytest.raises(SpoolWriteError, match="can't be used"):
        await spool.append(trace("one"))
    await spool.aclose()


async def test_two_spools_do_not_use_one_directory(arrived: Arrived, tmp_path: Path) -> None:
    directory = tmp_path / "spool"
    second = AsyncTraceSpool(directory)
    async with AsyncTraceSpool(directory) as first:
        await first.append(trace("one"))
        with pytest.raises(SpoolLockedError, match=str(os.getpid())):
            await second.append(trace("two"))
    async with second:  # now it can
        await second.append(trace("two"))
    assert arrived.in_order() == ["one", "two"]


async def test_the_lock_ends_with_the_process_that_held_it(
    arrived: Arrived, tmp_path: Path
) -> None:
    program = (
        "import sys, time; from prime_traces.spool.folder import SpoolFolder;"
        "folder = SpoolFolder(sys.argv[1], ''); print('open', flush=True); time.sleep(60)"
    )
    directory = tmp_path / "spool"
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, directory, stdout=-1
    )
    assert holder.stdout is not None
    assert await asyncio.wait_for(holder.stdout.readline(), 20) == b"open\n"
    spool = AsyncTraceSpool(directory)
    with pytest.raises(SpoolLockedError, match=str(holder.pid)):
        await spool.append(trace("one"))
    holder.send_signal(signal.SIGKILL)
    await holder.wait()
    async with spool:
        await spool.append(trace("one"))
    assert arrived.ids() == {"one": 1}


async def append_in_child(spool: AsyncTraceSpool) -> str:
    try:
        await spool.append(trace("from the child"))
    except SpoolError as error:
        return str(error)
    return "no error"


async def test_a_forked_child_can_not_use_the_spool_and_does_not_hold_its_lock(
    arrived: Arrived, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    go_on = context.Event()

    def child() -> None:
        theirs.send(asyncio.run(append_in_child(spool)))
        go_on.wait(20)

    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("one"))
        process = context.Process(target=child)
        process.start()
        assert await asyncio.to_thread(ours.poll, 20)
        assert f"belongs to process {os.getpid()}" in ours.recv()
        await spool.append(trace("two"))
    async with AsyncTraceSpool(tmp_path / "spool") as spool:  # while the child lives
        await spool.append(trace("three"))
    go_on.set()
    await asyncio.to_thread(process.join, 20)
    assert process.exitcode == 0
    assert arrived.in_order() == ["one", "two", "three"]


async def test_what_its_owner_does_in_the_directory_does_not_stop_a_spool(
    arrived: Arrived, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "spool"
    (directory / "rejected").mkdir(parents=True)
    for name in ("my.open", "notes.sealed", "rejected/corrected.jsonl", "rejected/1.json"):
        (directory / name).write_text("mine")
    ballast = directory / "rejected" / "ballast"
    ballast.write_bytes(bytes(9_000))
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=403))
    async with AsyncTraceSpool(directory, max_bytes=10_000, segment_bytes=1) as spool:
        await spool.append(trace("removed"))
        with pytest.raises(SpoolFullError):
            await spool.append(trace("kept", "x" * 1000))
        ballast.unlink()
        await spool.append(trace("kept", "x" * 1000), wait=10)
        await until(spool, "paused")
        (directory / waiting(directory)[0]).unlink()
        arrived.platform.clear_faults()
        with pytest.raises(SpoolWriteError, match="removed 1 records"):
            await spool.flush()
        assert await spool.flush()
        assert (spool.stats.lost, spool.stats.pending) == (1, 0)
    assert arrived.ids() == {"kept": 1}
    assert "Somebody removed 1 records" in caplog.text
    assert "notes.sealed is no file of a spool's" in caplog.text
    assert (directory / "my.open").read_text() == "mine"
