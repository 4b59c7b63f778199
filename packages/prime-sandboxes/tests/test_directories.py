"""Whole folders, in and out of sandboxes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    DownloadTimeoutError,
    SandboxFileNotFoundError,
    SandboxNotRunningError,
    UnsafeArchiveError,
    UploadTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

MIB = 1024 * 1024


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "script").write_bytes(b"#!/bin/sh\n")
    (root / "script").chmod(0o750)
    (root / "deep" / "large").write_bytes(os.urandom(3 * MIB + 1))
    (root / "deep" / "er" / "é 'quoted'").write_bytes(b"x")
    (root / "link").symlink_to("deep/large")
    return root


def seen(root: Path) -> dict[str, tuple[int, object]]:
    """What is in a folder: modes, and content or target."""
    found: dict[str, tuple[int, object]] = {}
    for path in sorted(root.rglob("*")):
        content: object = os.readlink(path) if path.is_symlink() else None
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


async def in_sandbox(client: AsyncSandboxClient, box_id: str, command: str) -> str:
    result = await client.execute_command(box_id, command)
    assert result.exit_code == 0, result
    return result.stdout


@pytest.mark.parametrize("name", ["data", "new/er/data", 'it\'s "quoted" $HOME', "-C"])
async def test_a_folder_goes_in_and_comes_back_the_same(
    either: AsyncSandboxClient, running: Running, tree: Path, tmp_path: Path, name: str
) -> None:
    box = await running(either)
    there = f"{box.disk_mount_path}/{name}"
    await either.upload_directory(box.id, there, tree)
    await either.download_directory(box.id, f"{there}/", str(tmp_path / "made" / "back"))
    assert seen(tmp_path / "made" / "back") == seen(tree)
    left = await in_sandbox(either, box.id, "find . -name '.*.tar'; find . -name '.upload*'")
    assert left == ""


async def test_an_upload_replaces_files_and_leaves_others(
    client: AsyncSandboxClient, running: Running, tree: Path
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; echo old > data/script; echo mine > data/other")
    await client.upload_directory(box.id, "data", tree)
    assert await in_sandbox(client, box.id, "cat data/script data/other") == "#!/bin/sh\nmine\n"


async def test_a_missing_local_folder_is_noticed_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, tree: Path, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        await client.upload_directory("sbx_1", "data", tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError):
        await client.upload_directory("sbx_1", "data", tree / "script")
    with pytest.raises(FileExistsError):
        await client.download_directory("sbx_1", "data", tree)
    with pytest.raises(ValueError, match="path"):
        await client.upload_directory("sbx_1", "", tree)
    assert not platform.ledger()["requests"]


async def test_a_missing_folder_in_the_sandbox_leaves_nothing(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    with pytest.raises(SandboxFileNotFoundError, match="'nope' is no folder"):
        await client.download_directory(box.id, "nope", tmp_path / "x")
    assert os.listdir(tmp_path) == ["home"]


async def test_an_image_without_tar_is_told(
    client: AsyncSandboxClient, running: Running, tree: Path, tmp_path: Path
) -> None:
    box = await running(client, environment_vars={"PATH": "/nowhere"})
    with pytest.raises(APIError, match="has no tar"):
        await client.download_directory(box.id, box.disk_mount_path, tmp_path / "x")
    with pytest.raises(APIError, match="has no tar"):
        await client.upload_directory(box.id, "data", tree)


async def test_a_pipe_in_the_folder_is_refused(
    client: AsyncSandboxClient, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; mkfifo data/pipe")
    with pytest.raises(UnsafeArchiveError, match="pipe"):
        await client.download_directory(box.id, "data", tmp_path / "x")
    assert os.listdir(tmp_path) == ["home"]


async def test_a_failed_upload_leaves_no_archive(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tree: Path
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; mkdir data/script data/script/full")
    with pytest.raises(APIError, match="tar failed in the sandbox with exit code 2"):
        await client.upload_directory(box.id, "data", tree)
    platform.add_faults(FaultRule("command_session_start", nth=1, reset="before_commit"))
    with pytest.raises(APIError):
        await client.upload_directory(box.id, "other", tree)
    assert await in_sandbox(client, box.id, "find . -name '.*.tar'") == ""


async def test_a_cancelled_upload_leaves_no_archive(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tree: Path
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule("upload_file", delay_after=0.5))
    task = asyncio.create_task(client.upload_directory(box.id, "data", tree))
    while "upload_file" not in platform.ledger()["requests"]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert ".tar" in await in_sandbox(client, box.id, "ls -A data")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await in_sandbox(client, box.id, "ls -A data") == ""


async def test_a_cancelled_download_leaves_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; head -c 2000000 /dev/zero > data/x")
    platform.add_faults(FaultRule("command_session_start", after_envelopes=10, stall=20))
    task = asyncio.create_task(client.download_directory(box.id, "data", tmp_path / "x"))
    while not any(name.endswith(".part") for name in os.listdir(tmp_path)):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert os.listdir(tmp_path) == ["home"]


@pytest.mark.parametrize("fault", [{"truncate": 100}, {"omit": "end_event"}, {"bad_chunk": 5}])
async def test_a_download_that_breaks_off_leaves_nothing(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    fault: dict[str, int],
) -> None:
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; head -c 2000000 /dev/zero > data/x")
    rule = FaultRule("command_session_start", after_envelopes=10, **fault)  # type: ignore[arg-type]
    platform.add_faults(rule)
    with pytest.raises(APIError):
        await client.download_directory(box.id, "data", tmp_path / "x")
    assert os.listdir(tmp_path) == ["home"]


async def test_limits_have_the_errors_of_transfers(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tree: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_sandboxes.files.IDLE_LIMIT", 0.4)
    box = await running(client)
    await in_sandbox(client, box.id, "mkdir data; head -c 2000000 /dev/zero > data/x")
    platform.add_faults(FaultRule("command_session_start", nth=1, after_envelopes=9, stall=20))
    with pytest.raises(DownloadTimeoutError, match="stood still"):
        await client.download_directory(box.id, "data", tmp_path / "x")
    platform.add_faults(FaultRule("upload_file", delay_before=3))
    with pytest.raises(UploadTimeoutError, match=r"did not end within 0\.3 s"):
        await client.upload_directory(box.id, "other", tree, timeout=0.3)


async def test_an_ended_sandbox_is_named(
    client: AsyncSandboxClient, running: Running, tree: Path, tmp_path: Path
) -> None:
    box = await running(client)
    async with AsyncSandboxClient() as elsewhere:
        await elsewhere.delete(box.id)
    with pytest.raises(SandboxNotRunningError):
        await client.download_directory(box.id, "data", tmp_path / "x")
    with pytest.raises(SandboxNotRunningError):
        await client.upload_directory(box.id, "data", tree)


async def test_progress_is_told_both_ways(
    client: AsyncSandboxClient, running: Running, tree: Path, tmp_path: Path
) -> None:
    box = await running(client)
    up: list[tuple[int, int | None]] = []
    down: list[tuple[int, int | None]] = []
    await client.upload_directory(box.id, "data", tree, progress=lambda *now: up.append(now))
    await client.download_directory(
        box.id, "data", tmp_path / "x", progress=lambda *now: down.append(now)
    )
    assert up[-1][0] == up[-1][1]
    assert up[-1][0] > 3 * MIB
    assert down[-1][0] > 3 * MIB
    assert down[-1][1] is None
