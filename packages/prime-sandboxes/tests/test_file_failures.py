"""What is repeated when an upload or a download fails, and what ends it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    APIResponseError,
    AsyncSandboxClient,
    DownloadTimeoutError,
    SandboxFileNotFoundError,
    SandboxNotRunningError,
    ServerError,
    UnauthorizedError,
    UploadTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

MIB = 1024 * 1024


@pytest.fixture
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_sandboxes.files.IDLE_LIMIT", 0.4)


def leftovers(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".part"))


async def in_sandbox(client: AsyncSandboxClient, box_id: str, command: str) -> str:
    result = await client.execute_command(box_id, command)
    assert result.exit_code == 0, result
    return result.stdout


@pytest.mark.parametrize("fault", ["before_commit", "after_commit"])
async def test_an_upload_that_can_be_repeated_survives_a_broken_connection(
    either: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    fault: str,
) -> None:
    box = await running(either)
    (tmp_path / "x").write_bytes(b"x" * MIB)
    platform.add_faults(FaultRule("upload_file", nth=1, reset=fault))  # type: ignore[arg-type]
    assert (await either.upload_file(box.id, "x", tmp_path / "x")).size == MIB
    assert platform.ledger()["requests"]["upload_file"] == 2


async def test_an_upload_that_cannot_be_repeated_is_sent_once(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    box = await running(client)
    platform.add_faults(FaultRule("upload_file", nth=1, reset="after_commit"))
    with pytest.raises(APIConnectionError):
        await client.upload_file(box.id, "x", chunks())
    assert platform.ledger()["requests"]["upload_file"] == 1


@pytest.mark.parametrize(
    "fault", [{"truncate": MIB}, {"bad_chunk": 100}, {"reset": "after_commit"}]
)
async def test_a_download_that_breaks_off_begins_anew(
    either: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    fault: dict[str, int],
) -> None:
    box = await running(either)
    data = os.urandom(3 * MIB)
    await either.upload_bytes(box.id, "x", data, "x")
    platform.add_faults(FaultRule("download_file", nth=1, **fault))  # type: ignore[arg-type]
    await either.download_file(box.id, "x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == data
    assert platform.ledger()["requests"]["download_file"] == 2


async def test_a_download_that_always_breaks_off_leaves_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * 3 * MIB, "x")
    platform.add_faults(FaultRule("download_file", truncate=2 * MIB))
    with pytest.raises(APIResponseError, match="cut short"):
        await client.download_file(box.id, "x", tmp_path / "x")
    assert os.listdir(tmp_path) == ["home"]


@pytest.mark.parametrize("status", [204, 206])
async def test_a_download_that_is_not_the_whole_leaves_the_old_file(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    status: int,
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"new", "x")
    body = "ne" if status == 206 else ""
    platform.add_faults(FaultRule("download_file", status=status, body=body))
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(APIResponseError, match=str(status)):
        await client.download_file(box.id, "x", tmp_path / "x")
    with pytest.raises(APIResponseError, match=str(status)):
        await anext(client.iter_file(box.id, "x"))
    assert ((tmp_path / "x").read_bytes(), leftovers(tmp_path)) == (b"old", [])


async def test_an_iteration_that_breaks_off_is_an_error_after_its_first_bytes(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * 3 * MIB, "x")
    platform.add_faults(FaultRule("download_file", truncate=2 * MIB))
    got = 0

    async def take() -> None:
        nonlocal got
        async for piece in client.iter_file(box.id, "x"):
            got += len(piece)

    with pytest.raises(APIResponseError, match="cut short"):
        await take()
    assert 0 < got <= 2 * MIB
    assert platform.ledger()["requests"]["download_file"] == 1


async def test_a_slow_but_moving_download_outlives_the_idle_limit(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    short_idle: None,
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"0123456789", "x")
    platform.add_faults(FaultRule("download_file", trickle=0.1))
    await client.download_file(box.id, "x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"0123456789"


async def test_a_download_that_stands_still_ends_by_the_idle_limit(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    short_idle: None,
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * MIB, "x")
    platform.add_faults(FaultRule("download_file", stall=20))
    with pytest.raises(DownloadTimeoutError, match=r"stood still for 0\.4 s") as caught:
        await client.download_file(box.id, "x", tmp_path / "x")
    assert (caught.value.phase, caught.value.timeout) == ("idle", 0.4)
    assert (caught.value.sandbox_id, caught.value.file_path) == (box.id, "x")
    assert leftovers(tmp_path) == []
    pieces = client.iter_file(box.id, "x")
    with pytest.raises(DownloadTimeoutError):
        _ = [piece async for piece in pieces]


async def test_a_total_limit_is_not_outlasted_by_asking_why(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    for operation in ("download_file", "upload_file", "get_sandbox_error_context"):
        platform.add_faults(FaultRule(operation, delay_before=8))
    path = f"{box.disk_mount_path}/x"
    began = time.monotonic()
    with pytest.raises(DownloadTimeoutError):
        await client.download_file(box.id, path, tmp_path / "x", timeout=0.5)
    with pytest.raises(UploadTimeoutError):
        await client.upload_bytes(box.id, path, b"x", "x", timeout=0.5)
    assert time.monotonic() - began < 4


async def test_a_total_limit_ends_a_transfer_that_moves(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.01)
            yield b"x"

    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * 1000, "x")
    platform.add_faults(FaultRule("download_file", trickle=0.01))
    with pytest.raises(DownloadTimeoutError, match=r"0\.5 s; pass a larger timeout") as down:
        await client.download_file(box.id, "x", tmp_path / "x", timeout=0.5)
    with pytest.raises(UploadTimeoutError, match=r"0\.5 s; pass a larger timeout") as up:
        await client.upload_file(box.id, "y", endless(), timeout=0.5)
    assert (down.value.phase, up.value.phase) == ("total", "total")


async def test_an_upload_that_stands_still_ends_by_the_idle_limit(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    short_idle: None,
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("upload_file", delay_before=5))
    with pytest.raises(UploadTimeoutError, match="stood still") as caught:
        await client.upload_bytes(box.id, "x", b"x" * 30 * MIB, "x")
    assert caught.value.phase == "idle"


async def test_a_slow_caller_is_no_idle_transfer(
    client: AsyncSandboxClient, running: Running, short_idle: None
) -> None:
    async def slow() -> AsyncIterator[bytes]:
        for _ in range(2):
            await asyncio.sleep(0.6)
            yield b"x"

    box = await running(client)
    await client.upload_file(box.id, "slow", slow())
    await client.upload_bytes(box.id, "x", b"x" * 8 * MIB, "x")
    size = 0
    async for piece in client.iter_file(box.id, "x"):
        if size < 2 * MIB:
            await asyncio.sleep(0.1)
        if not size:
            await asyncio.sleep(0.6)
        size += len(piece)
    assert size == 8 * MIB


@pytest.mark.parametrize("status", [400, 401, 413, 500])
async def test_an_early_error_ends_an_upload_whose_source_stands_still(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, status: int
) -> None:
    closed = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.get_running_loop().create_future()
        finally:
            closed.set()

    box = await running(client)
    platform.add_faults(FaultRule("upload_file", status=status))
    began = time.monotonic()
    with pytest.raises(APIError) as caught:
        await client.upload_file(box.id, "x", stuck())
    assert caught.value.status_code == status
    assert time.monotonic() - began < 3
    await asyncio.wait_for(closed.wait(), 1)
    assert platform.ledger()["requests"]["upload_file"] == 1


async def test_a_refused_token_is_replaced_where_the_upload_can_be_repeated(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("upload_file", nth=1, status=401))
    await client.upload_bytes(box.id, "x", b"x" * MIB, "x")
    platform.add_faults(FaultRule("upload_file", status=401))
    with pytest.raises(UnauthorizedError):
        await client.upload_bytes(box.id, "x", b"x", "x")


async def test_a_cancelled_upload_leaves_the_old_file_and_closes_its_source(
    client: AsyncSandboxClient, running: Running
) -> None:
    begun, closed = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1000
                begun.set()
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    box = await running(client)
    await client.upload_bytes(box.id, "x", b"old", "x")
    task = asyncio.create_task(client.upload_file(box.id, "x", endless()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(closed.wait(), 1)
    await asyncio.sleep(0.2)
    assert await in_sandbox(client, box.id, "cat x; ls -A") == "oldx\n"


async def test_a_cancelled_download_leaves_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x" * MIB, "x")
    platform.add_faults(FaultRule("download_file", stall=20))
    task = asyncio.create_task(client.download_file(box.id, "x", tmp_path / "x"))
    while not leftovers(tmp_path):  # noqa: ASYNC110  (it is a file that appears)
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(tmp_path) == ["home"]


async def test_what_the_source_raises_is_raised(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise KeyError("no more")

    box = await running(client)
    with pytest.raises(KeyError, match="no more"):
        await client.upload_file(box.id, "x", broken())
    assert platform.ledger()["requests"].get("upload_file", 0) <= 1
    with pytest.raises(SandboxFileNotFoundError):
        await client.read_file(box.id, "x")


async def test_a_local_disk_that_fails_is_no_network_failure(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await client.upload_bytes(box.id, "x", b"x", "x")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        await client.download_file(box.id, "x", tmp_path / "file" / "below")
    assert platform.ledger()["requests"]["download_file"] == 1


async def test_a_sandbox_that_ends_during_a_transfer_is_named(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000
            begun.set()
            await asyncio.sleep(0.001)

    box = await running(client)
    task = asyncio.create_task(client.upload_file(box.id, "x", endless()))
    await begun.wait()
    await client.delete(box.id)
    with pytest.raises(SandboxNotRunningError):
        await asyncio.wait_for(task, 10)


async def test_no_room_in_the_sandbox_is_an_error(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    body = '{"error": "gateway_error", "message": "no space left", "code": 507}'
    platform.add_faults(FaultRule("upload_file", status=507, body=body))
    with pytest.raises(ServerError, match="no space left"):
        await client.upload_bytes(box.id, "x", b"x", "x")
    assert platform.ledger()["requests"]["upload_file"] == 1
