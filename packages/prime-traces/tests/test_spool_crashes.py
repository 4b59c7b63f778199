"""However a process that spools is killed, each confirmed record arrives once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest
from spools import Arrived, waiting

from prime_local import FaultRule
from prime_traces import AsyncTraceSpool

KILLS = 50
WRITER = Path(__file__).parent / "support" / "spool_writer.py"


async def next_line(writer: asyncio.subprocess.Process) -> str:
    assert writer.stdout is not None
    line = await asyncio.wait_for(writer.stdout.readline(), 20)
    assert line, "the writer has ended"
    return line.decode().strip()


async def confirmed_until_killed(writer: asyncio.subprocess.Process, name: str) -> list[str]:
    """Starts a process that spools, and kills it at a random moment."""
    assert writer.stdin is not None
    writer.stdin.write(f"{name}\n".encode())
    moment = random.uniform(0.0, 0.4)
    confirmed = []
    while (line := await next_line(writer)) != "ended":
        if line.startswith("process"):
            process = int(line.split()[1])
            asyncio.get_running_loop().call_later(moment, os.kill, process, signal.SIGKILL)
        else:
            confirmed.append(line)
    return confirmed


@pytest.mark.parametrize("fsync", ["always", "0.05"])
async def test_no_confirmed_record_is_lost_or_doubled_by_kills_and_faults(
    arrived: Arrived, tmp_path: Path, fsync: str
) -> None:
    arrived.platform.add_faults(
        FaultRule(operation="upload_traces", probability=0.05, reset="before_commit", seed=1),
        FaultRule(operation="upload_traces", probability=0.05, reset="after_commit", seed=2),
        # Kills come between the commit and the receipt, too.
        FaultRule(operation="upload_traces", probability=0.2, delay_after=0.1, seed=3),
    )
    directory = tmp_path / "spool"
    writer = await asyncio.create_subprocess_exec(
        sys.executable, WRITER, directory, fsync, stdin=-1, stdout=-1
    )
    confirmed: list[str] = []
    interrupted = 0
    for number in range(KILLS if fsync == "always" else KILLS // 5):
        confirmed += await confirmed_until_killed(writer, f"r{number}")
        interrupted += bool(waiting(directory))
    assert writer.stdin is not None
    writer.stdin.close()
    assert await asyncio.wait_for(writer.wait(), 20) == 0

    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
        assert spool.stats.rejected == 0
    copies = arrived.ids()
    assert set(confirmed) <= set(copies)
    assert set(copies.values()) == {1}
    # The kills came in the middle of it.
    assert interrupted > 5
    assert arrived.uploads() > 5
    assert len(confirmed) > 500
    assert list((directory / "rejected").glob("*.json")) == []
    print(len(confirmed), len(copies), interrupted, arrived.uploads())
