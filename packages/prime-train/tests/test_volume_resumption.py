"""Transfers that are killed, cancelled or interrupted: what they leave, and how they go on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
from sample_files import MIB, tree, write
from transfer_counts import requests, until

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIConnectionError,
    AsyncTrainClient,
    SourceChangedError,
    VolumeBusyError,
    VolumePut,
)

PROGRAM = Path(__file__).parent / "programs" / "transfer_program.py"
START = 40.0

pytestmark = [pytest.mark.usefixtures("small_parts"), pytest.mark.timeout(90)]


@contextlib.asynccontextmanager
async def program(*arguments: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the program; what is left of it is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        *map(str, arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def journals(home: Path) -> list[str]:
    return sorted(os.listdir(home / ".prime" / "transfers"))


async def killed_put(platform: LocalPlatform, source: Path, volume: str, target: str) -> None:
    """A put that is killed when four of its parts are stored and others hang."""
    platform.add_faults(FaultRule(operation="UploadPart", nth=range(5, 50), delay_before=60))
    async with program("async", "put", source, volume, target) as process:
        await until(platform, "UploadPart", 8)
        process.send_signal(signal.SIGKILL)
        await process.wait()
    platform.clear_faults()


async def test_a_put_that_was_killed_goes_on_where_it_was(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path, home: Path
) -> None:
    write(tmp_path / "weights", 48 * MIB)  # ten parts
    await killed_put(platform, tmp_path / "weights", volume, "w")
    # It still holds the volume, and only the same call takes that over.
    before = requests(platform, "UploadPart")
    put = await client.volumes.put(tmp_path / "weights", volume, "w")
    assert put == VolumePut(1, 0, 48 * MIB, 0, resumed_bytes=20 * MIB)
    assert requests(platform, "UploadPart") - before == 6
    assert requests(platform, "CreateMultipartUpload") == 1
    await client.volumes.get(volume, "w", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "weights").read_bytes()
    assert await journals(home) == []
    # Whole and unchanged, it is sent again by another call: nothing was left to go on with.
    again = await client.volumes.put(tmp_path / "weights", volume, "w")
    assert again.resumed_bytes == 0


async def test_files_that_are_stored_already_are_not_sent_again(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for number in range(20):
        write(data / f"f{number:02}", 300_000 + number)
    platform.add_faults(FaultRule(operation="PutObject", nth=range(11, 99), delay_before=60))
    async with program("sync", "put", data, volume, "d/") as process:
        await until(platform, "PutObject", 18)
        await asyncio.sleep(0.2)  # the last answers are noted
        process.send_signal(signal.SIGKILL)
        await process.wait()
    platform.clear_faults()
    write(data / "f00", 300_000, seed=1)  # changed: sent anew
    before = requests(platform, "PutObject")
    put = await client.volumes.put(data, volume, "d/")
    assert requests(platform, "PutObject") - before == 20 - 9
    assert put.resumed_bytes == sum(300_000 + number for number in range(1, 10))
    await client.volumes.get(volume, "d/data/", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(data)


async def test_a_source_that_has_changed_is_sent_anew(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "weights", 48 * MIB)
    await killed_put(platform, tmp_path / "weights", volume, "w")
    with (tmp_path / "weights").open("r+b") as file:
        file.seek(47 * MIB)
        file.write(b"another end")
    before = requests(platform, "UploadPart")
    put = await client.volumes.put(tmp_path / "weights", volume, "w")
    assert put.resumed_bytes == 0
    assert requests(platform, "UploadPart") - before == 10
    assert requests(platform, "AbortMultipartUpload") == 1
    await client.volumes.get(volume, "w", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "weights").read_bytes()


async def test_a_get_that_was_killed_goes_on_where_it_was(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path, home: Path
) -> None:
    data = tmp_path / "data"
    write(data / "large", 48 * MIB)
    write(data / "before", 1_000_000)
    await client.volumes.put(data, volume, "d/")
    platform.add_faults(FaultRule(operation="GetObject", nth=range(6, 50), delay_before=60))
    async with program("async", "get", "d/data/", volume, tmp_path / "back") as process:
        await until(platform, "GetObject", 9)
        await asyncio.sleep(0.2)  # what has come is noted
        process.send_signal(signal.SIGKILL)
        await process.wait()
    platform.clear_faults()
    assert not (tmp_path / "back" / "large").exists()
    before = requests(platform, "GetObject")
    got = await client.volumes.get(volume, "d/data/", tmp_path / "back")
    assert requests(platform, "GetObject") - before == 11 - 5
    assert got.resumed_bytes == 1_000_000 + 20 * MIB
    assert tree(tmp_path / "back") == tree(data)
    assert await journals(home) == []


async def test_a_get_begins_anew_when_the_file_is_another(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w", 23 * MIB)
    await client.volumes.put(tmp_path / "w", volume, "w")
    rule = FaultRule(operation="GetObject", nth=range(3, 50), status=403)
    platform.add_faults(rule)
    with pytest.raises(Exception, match="HTTP 403"):
        await client.volumes.get(volume, "w", tmp_path / "back")
    platform.clear_faults()
    (left,) = [tmp_path / name for name in os.listdir(tmp_path) if name.endswith(".part")]
    write(tmp_path / "w", 23 * MIB, seed=1)
    await client.volumes.put(tmp_path / "w", volume, "w")
    got = await client.volumes.get(volume, "w", tmp_path / "back")
    assert got.resumed_bytes == 0
    assert (tmp_path / "back").read_bytes() == (tmp_path / "w").read_bytes()
    assert not left.exists()


async def test_what_a_dead_upload_holds_lapses(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "weights", 48 * MIB)
    write(tmp_path / "other", 5)
    await killed_put(platform, tmp_path / "weights", volume, "w")
    with pytest.raises(VolumeBusyError, match="in progress until") as refused:
        await client.volumes.put(tmp_path / "other", volume, "o")
    assert refused.value.until is not None
    left = (refused.value.until - datetime.now(timezone.utc)).total_seconds()
    assert 0 < left <= 15 * 60
    await platform.advance(15 * 60)
    await client.volumes.put(tmp_path / "other", volume, "o")
    # Its parts are there still; what it held is taken anew.
    put = await client.volumes.put(tmp_path / "weights", volume, "w")
    assert put.resumed_bytes == 20 * MIB


async def test_a_cancelled_put_lets_the_volume_go(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "weights", 23 * MIB)
    platform.add_faults(FaultRule(operation="UploadPart", nth=range(3, 50), delay_before=60))
    putting = asyncio.ensure_future(client.volumes.put(tmp_path / "weights", volume, "w"))
    await until(platform, "UploadPart", 4)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert requests(platform, "release_volume_transfer") == 1
    platform.clear_faults()
    write(tmp_path / "other", 5)
    await client.volumes.put(tmp_path / "other", volume, "o")


@pytest.mark.parametrize("when", ["asked", "answered"])
async def test_a_put_that_is_cancelled_while_it_asks_lets_the_volume_go(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path, when: str
) -> None:
    write(tmp_path / "f", 5)
    before, after = (0.3, 0.0) if when == "asked" else (0.0, 0.3)
    platform.add_faults(
        FaultRule(operation="route_volume_transfer", nth=2, delay_before=before, delay_after=after)
    )
    putting = asyncio.ensure_future(client.volumes.put(tmp_path / "f", volume, "f"))
    await until(platform, "route_volume_transfer", 2)
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    await until(platform, "release_volume_transfer", 1)
    await client.volumes.put(tmp_path / "f", volume, "f")


async def test_a_put_that_fails_lets_the_volume_go_and_starts_nothing_more(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for number in range(100):
        write(data / f"f{number:03}", 5)
    platform.add_faults(FaultRule(operation="PutObject", nth=5, status=403))
    with pytest.raises(Exception, match="HTTP 403"):
        await client.volumes.put(data, volume, "d/")
    assert requests(platform, "PutObject") < 5 + 2 * 8
    assert requests(platform, "release_volume_transfer") == 1
    put = await client.volumes.put(data, volume, "d/")
    assert put.resumed_bytes >= 5


@pytest.mark.parametrize("style", ["async", "sync"])
@pytest.mark.parametrize("signals", [1, 3])
async def test_control_c_lets_the_volume_go(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    style: str,
    signals: int,
) -> None:
    write(tmp_path / "weights", 23 * MIB)
    platform.add_faults(
        FaultRule(operation="UploadPart", nth=range(3, 50), delay_before=60),
        FaultRule(operation="release_volume_transfer", nth=1, delay_before=0.6),
    )
    async with program(style, "put", tmp_path / "weights", volume, "w") as process:
        await until(platform, "UploadPart", 4)
        for _ in range(signals):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.15)
        await asyncio.wait_for(process.wait(), START)
        assert process.returncode != 0
    assert requests(platform, "release_volume_transfer") == 1
    platform.clear_faults()
    write(tmp_path / "other", 5)
    await client.volumes.put(tmp_path / "other", volume, "o")


async def test_a_file_that_changes_while_it_is_put_is_told(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "weights", 23 * MIB)

    def change(done: int, total: int | None) -> None:
        if done:
            os.utime(tmp_path / "weights", ns=(0, 10**18))

    with pytest.raises(SourceChangedError, match="weights' changed while it was put"):
        await client.volumes.put(tmp_path / "weights", volume, "w", progress=change)
    assert requests(platform, "CompleteMultipartUpload") == 0
    assert requests(platform, "release_volume_transfer") == 1


async def test_what_the_callers_own_progress_raises_ends_the_transfer(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "weights", 23 * MIB)

    def fail(done: int, total: int | None) -> None:
        if done:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await client.volumes.put(tmp_path / "weights", volume, "w", progress=fail)
    await client.volumes.put(tmp_path / "weights", volume, "w")
    before = requests(platform, "GetObject")
    with pytest.raises(ZeroDivisionError):
        await client.volumes.get(volume, "w", tmp_path / "back", progress=fail)
    assert requests(platform, "GetObject") - before <= 4


async def test_a_release_that_is_lost_does_not_fail_the_put(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_train.transfers.leases.RELEASE_PATIENCE", 0.2)
    write(tmp_path / "f", 5)
    platform.add_faults(
        FaultRule(operation="release_volume_transfer", nth=[1, 2, 3], reset="before_commit")
    )
    put = await client.volumes.put(tmp_path / "f", volume, "f")
    assert put.files == 1
    await until(platform, "release_volume_transfer", 4)  # the reaper goes on


async def test_an_outage_of_the_store_leaves_what_can_be_gone_on_with(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_train.transfers.store.ATTEMPTS", 2)
    write(tmp_path / "weights", 48 * MIB)
    platform.add_faults(FaultRule(operation="UploadPart", nth=range(5, 99), reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await client.volumes.put(tmp_path / "weights", volume, "w")
    platform.clear_faults()
    put = await client.volumes.put(tmp_path / "weights", volume, "w")
    assert put.resumed_bytes >= 10 * MIB
