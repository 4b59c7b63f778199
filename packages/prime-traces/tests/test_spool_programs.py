"""Spools in programs of their own: Ctrl-C and exits."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from spools import Arrived, waiting

from prime_local import FaultRule
from prime_traces import AsyncTraceSpool

PROGRAM = Path(__file__).parent / "support" / "spool_program.py"


async def start(way: str, directory: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, PROGRAM, way, directory, stdout=-1, stderr=-1
    )


async def read(program: asyncio.subprocess.Process, count: int) -> list[str]:
    assert program.stdout is not None
    lines = [await asyncio.wait_for(program.stdout.readline(), 20) for _ in range(count)]
    return [line.decode().strip() for line in lines]


@pytest.mark.parametrize("way", ["async", "sync"])
async def test_ctrl_c_uploads_what_is_there_and_ends(
    arrived: Arrived, tmp_path: Path, way: str
) -> None:
    program = await start(way, tmp_path / "spool")
    confirmed = await read(program, 20)
    program.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(program.communicate(), 20)
    confirmed += [line for line in out.decode().splitlines() if line]
    assert err.decode().strip().endswith("KeyboardInterrupt")
    assert waiting(tmp_path / "spool") == []
    copies = arrived.ids()
    assert set(confirmed) <= set(copies)
    assert set(copies.values()) == {1}


@pytest.mark.parametrize("way", ["async", "sync"])
async def test_a_second_ctrl_c_ends_at_once_and_leaves_the_rest_to_the_next_spool(
    arrived: Arrived, tmp_path: Path, way: str
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", delay_before=30, times=1))
    program = await start(way, tmp_path / "spool")
    confirmed = await read(program, 20)
    program.send_signal(signal.SIGINT)
    await arrived.requested()
    program.send_signal(signal.SIGINT)
    out, _ = await asyncio.wait_for(program.communicate(), 8)
    confirmed += [line for line in out.decode().splitlines() if line]
    assert len(waiting(tmp_path / "spool")) == 1
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        assert await spool.flush()
    copies = arrived.ids()
    assert set(confirmed) <= set(copies)
    assert set(copies.values()) == {1}


@pytest.mark.parametrize("busy", [False, True])
async def test_a_program_that_forgets_to_close_ends_says_what_is_left_and_loses_nothing(
    arrived: Arrived, tmp_path: Path, busy: bool
) -> None:
    if busy:
        arrived.platform.add_faults(FaultRule(operation="upload_traces", delay_before=3, times=1))
    program = await start("forget", tmp_path / "spool")
    out, err = await asyncio.wait_for(program.communicate(), 20)
    assert program.returncode == 0
    said = [line for line in err.decode().splitlines() if "records stay in" not in line]
    assert said == []
    assert bool(err) == bool(waiting(tmp_path / "spool"))
    assert err or not busy
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        assert await spool.flush()
    assert arrived.ids() == dict.fromkeys(out.decode().split(), 1)
