"""Checkpoints: real files, their states, and what survives whom."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform, PlatformOfMode, RawClient

pytestmark = pytest.mark.timeout(60)

Json = dict[str, Any]
# Writes a file that takes seconds to copy in pieces of a few bytes.
LARGE = "head -c 64M /dev/zero | tr '\\0' x > large"
CHUNK = "prime_local.sandboxes.copying._CHUNK_BYTES"


async def save(client: RawClient, sandbox: Json) -> Json:
    answer = await client.call("POST", f"/api/v1/sandbox/{sandbox['id']}/checkpoints")
    assert answer.status == 200, answer.body
    saved: Json = answer.body
    return saved


async def read(client: RawClient, checkpoint: Json) -> Json | None:
    answer = await client.call("GET", f"/api/v1/sandbox/checkpoints/{checkpoint['id']}")
    assert answer.status in (200, 404)
    found: Json = answer.body
    return found if answer.status == 200 else None


async def delete(client: RawClient, checkpoint: Json) -> tuple[int, Json]:
    answer = await client.call("DELETE", f"/api/v1/sandbox/checkpoints/{checkpoint['id']}")
    return answer.status, answer.body


async def durable(client: RawClient, checkpoint: Json) -> Json:
    """Wait for a checkpoint whose time does not depend on the clock."""
    found: Json | None = checkpoint
    for _ in range(500):
        if found is None or found["state"] != "PENDING":
            break
        await asyncio.sleep(0.01)
        found = await read(client, checkpoint)
    assert found is not None
    assert found["state"] == "DURABLE", found
    return found


async def restore(client: RawClient, checkpoint: Json, **fields: object) -> Json:
    body = {"name": "restored", "checkpoint_id": checkpoint["id"], **fields}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 201, answer.body
    restored: Json = answer.body
    await client.until(restored, "RUNNING")
    return restored


@pytest.fixture(params=["full", "bwrap", "process"])
async def anywhere(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode, helpers: Any
) -> AsyncIterator[RawClient]:
    """A client of a platform in each isolation mode."""
    platform = platform_of_mode(request.param)
    async with helpers.client_of(platform) as client:
        yield client
    platform.reset()


async def test_a_restored_sandbox_has_every_file_of_the_checkpoint(anywhere: RawClient) -> None:
    source = await anywhere.running()
    script = """
        set -e
        mkdir -m 700 folder
        echo hello > folder/note
        ln folder/note same
        ln -s folder/note link
        truncate -s 1G hole
        echo home > ~/home
        echo temporary > "$TMPDIR"/temporary
        chmod 4711 same
    """
    assert (await anywhere.run(source, script)).exit_code == 0
    checkpoint = await save(anywhere, source)
    assert checkpoint["occupied_bytes"] == len("hello\nhome\ntemporary\n")
    await anywhere.run(source, "echo late > folder/note; rm same")
    restored = await restore(anywhere, await durable(anywhere, checkpoint))
    script = """
        stat -c '%A %h %s' folder folder/note hole
        [ folder/note -ef same ] && cat link ~/home "$TMPDIR"/temporary
        du hole | cut -f 1
    """
    result = await anywhere.run(restored, script)
    assert result.stdout.splitlines()[1:] == [
        "-rws--x--x 2 6",
        "-rw-r--r-- 1 1073741824",
        "hello",
        "home",
        "temporary",
        "0",
    ]
    assert result.stdout.startswith("drwx------ ")
    await anywhere.run(restored, "echo other > folder/note")
    assert (await anywhere.run(source, "cat folder/note")).stdout == "late\n"


async def test_a_restore_leaves_the_checkpoint_as_it_is(anywhere: RawClient) -> None:
    source = await anywhere.running()
    await anywhere.run(source, "echo hello > note")
    checkpoint = await durable(anywhere, await save(anywhere, source))
    for _ in range(2):
        restored = await restore(anywhere, checkpoint)
        result = await anywhere.run(restored, "cat note; echo changed > note; rm -f other")
        assert result.stdout == "hello\n"


async def test_isolation_full_keeps_what_was_changed_and_deleted_anywhere(
    platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform = platform_of_mode("full")
    async with helpers.client_of(platform) as client:
        source = await client.running()
        script = "echo changed > /etc/profile; rm /etc/passwd; rm -r /etc/alternatives; mkdir /new"
        assert (await client.run(source, script)).exit_code == 0
        restored = await restore(client, await durable(client, await save(client, source)))
        script = "cat /etc/profile; ls -d /etc/passwd /etc/alternatives /new 2>/dev/null"
        assert (await client.run(restored, script)).stdout == "changed\n/new\n"
    platform.reset()


async def test_a_checkpoint_becomes_durable_on_the_clock(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(checkpoint_time=60)
    source = await client.running(disk_size_gb=3, team_id="team-a")
    checkpoint = await save(client, source)
    assert checkpoint["state"] == "PENDING"
    assert (checkpoint["parent_id"], checkpoint["depth"]) == (None, 1)
    assert (checkpoint["team_id"], checkpoint["disk_size_bytes"]) == ("team-a", 3 << 30)
    assert checkpoint["stored_bytes"] is None
    assert await delete(client, checkpoint) == (409, {"detail": "Checkpoint is pending"})
    body = {"name": "early", "checkpoint_id": checkpoint["id"]}
    assert (await client.call("POST", "/api/v1/sandbox", body)).status == 409
    await platform.advance(59)
    assert (await read(client, checkpoint) or {})["state"] == "PENDING"
    await platform.advance(1)
    found = await read(client, checkpoint)
    assert found is not None
    assert (found["state"], found["stored_bytes"]) == ("DURABLE", found["occupied_bytes"])


@pytest.mark.parametrize("end", ["delete", "lifetime"])
async def test_a_checkpoint_fails_when_its_sandbox_ends_first(
    open_platform: OpenPlatform, tmp_path: Path, end: str
) -> None:
    platform, client = await open_platform(checkpoint_time=3600, data_dir=tmp_path)
    source = await client.running(timeout_minutes=5)
    checkpoint = await save(client, source)
    assert _kept(tmp_path) == {checkpoint["id"]}
    if end == "delete":
        await client.call("DELETE", f"/api/v1/sandbox/{source['id']}")
    else:
        await platform.advance(300)
    found = await read(client, checkpoint)
    assert found is not None
    assert (found["state"], found["occupied_bytes"]) == ("FAILED", 0)
    assert "ended before" in found["error"]
    await _until_kept(tmp_path, set())
    await platform.advance(3600)
    assert (await read(client, checkpoint) or {})["state"] == "FAILED"
    assert (await delete(client, checkpoint))[0] == 200
    assert await read(client, checkpoint) is None


async def test_the_copying_stops_when_the_sandbox_ends(
    open_platform: OpenPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = await open_platform(data_dir=tmp_path)
    source = await client.running()
    await client.run(source, LARGE)
    monkeypatch.setattr(CHUNK, 64)
    saving = asyncio.ensure_future(save(client, source))
    await _until(lambda: _kept(tmp_path))
    began = time.monotonic()
    await client.call("DELETE", f"/api/v1/sandbox/{source['id']}")
    checkpoint = await saving
    assert time.monotonic() - began < 2
    assert (await read(client, checkpoint) or {})["state"] == "FAILED"
    await _until_kept(tmp_path, set())


async def test_a_fault_rule_fails_a_checkpoint(open_platform: OpenPlatform) -> None:
    rule = FaultRule("create_checkpoint", nth=2, fails="the disk broke")
    _, client = await open_platform(faults=[rule])
    source = await client.running()
    await durable(client, await save(client, source))
    failing = await save(client, source)
    assert failing["state"] == "PENDING"
    found = await read(client, failing)
    assert found is not None
    assert (found["state"], found["error"]) == ("FAILED", "the disk broke")


async def test_more_files_than_the_disk_holds_are_a_failure(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    source = await client.running(disk_size_gb=2)
    await client.run(source, "mkdir -p " + "/".join("d" * 140))
    await save(client, source)
    answer = await client.call("GET", f"/api/v1/sandbox/{source['id']}/checkpoints")
    (found,) = answer.body["checkpoints"]
    assert found["state"] == "FAILED"
    assert "deep" in found["error"]


async def test_descendants_keep_what_they_need(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    source = await client.running()
    await client.run(source, "echo hello > note")
    first = await durable(client, await save(client, source))
    child = await restore(client, first)
    second = await durable(client, await save(client, child))
    assert (second["parent_id"], second["depth"]) == (first["id"], 2)
    assert (await delete(client, first))[0] == 409
    await client.call("DELETE", f"/api/v1/sandbox/{child['id']}")
    assert (await delete(client, first))[0] == 200
    grandchild = await restore(client, second)
    assert (await client.run(grandchild, "cat note")).stdout == "hello\n"


async def test_a_deleted_checkpoint_is_deleting_for_a_time(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(removal_time=60)
    checkpoint = await durable(client, await save(client, await client.running()))
    for _ in range(2):
        assert (await delete(client, checkpoint))[0] == 200
    assert (await read(client, checkpoint) or {})["state"] == "DELETING"
    body = {"name": "late", "checkpoint_id": checkpoint["id"]}
    assert (await client.call("POST", "/api/v1/sandbox", body)).status == 409
    await platform.advance(60)
    for _ in range(500):
        if await read(client, checkpoint) is None:
            break
        await asyncio.sleep(0.01)
    assert await read(client, checkpoint) is None


async def test_a_restore_takes_image_and_disk_from_the_checkpoint(
    open_platform: OpenPlatform,
) -> None:
    _, client = await open_platform()
    source = await client.running(docker_image="debian:12", disk_size_gb=9)
    checkpoint = await durable(client, await save(client, source))
    restored = await restore(client, checkpoint, memory_gb=2)
    assert (restored["dockerImage"], restored["diskSizeGB"]) == ("debian:12", 9)
    for extra in ({"disk_size_gb": 9}, {"docker_image": "debian:12"}):
        body = {"name": "wrong", "checkpoint_id": checkpoint["id"], **extra}
        assert (await client.call("POST", "/api/v1/sandbox", body)).status == 422


async def test_a_sandbox_that_ends_while_it_is_filled_leaves_nothing(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = await open_platform()
    source = await client.running()
    await client.run(source, LARGE)
    checkpoint = await durable(client, await save(client, source))
    monkeypatch.setattr(CHUNK, 64)
    body = {"name": "restored", "checkpoint_id": checkpoint["id"]}
    restored = (await client.call("POST", "/api/v1/sandbox", body)).body
    folders = Path(source["diskMountPath"]).parent.parent
    await _until(lambda: (folders / restored["id"]).exists())
    assert (await client.get(restored))["status"] == "PROVISIONING"
    began = time.monotonic()
    await client.call("DELETE", f"/api/v1/sandbox/{restored['id']}")
    assert time.monotonic() - began < 2
    assert (await client.get(restored))["status"] == "TERMINATED"
    assert {folder.name for folder in folders.iterdir()} == {source["id"]}


async def test_checkpoints_survive_a_restart_with_their_files(tmp_path: Path, helpers: Any) -> None:
    async with (
        LocalPlatform(data_dir=tmp_path, checkpoint_time=60) as platform,
        helpers.client_of(platform) as client,
    ):
        source = await client.running()
        await client.run(source, "echo hello > note")
        saved = await save(client, source)
        await platform.advance(60)
        finished = await read(client, saved)
        assert finished is not None
        unfinished = await save(client, source)
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        assert await read(client, finished) == finished
        assert (await read(client, unfinished) or {})["state"] == "FAILED"
        assert _kept(tmp_path) == {finished["id"]}
        restored = await restore(client, finished)
        assert (await client.run(restored, "cat note")).stdout == "hello\n"
        assert (await delete(client, unfinished))[0] == 200
        await client.call("DELETE", f"/api/v1/sandbox/{restored['id']}")
        assert (await delete(client, finished))[0] == 200
    async with (
        LocalPlatform(data_dir=tmp_path) as platform,
        helpers.client_of(platform) as client,
    ):
        assert await read(client, finished) is None
    assert _kept(tmp_path) == set()


async def test_what_a_crash_cut_off_has_failed(tmp_path: Path, helpers: Any) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        source = await client.running()
        saved = [await durable(client, await save(client, source)) for _ in range(3)]
    # A crash leaves the last state that was written, and files that nobody knows of.
    _set_state(tmp_path, saved[0], "UNFINISHED")
    _set_state(tmp_path, saved[1], "DELETING")
    (tmp_path / "checkpoints" / "ckpt_stray").mkdir()
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        found = await read(client, saved[0])
        assert found is not None
        assert found["state"] == "FAILED"
        assert await read(client, saved[1]) is None
        assert await read(client, saved[2]) == saved[2]
        assert _kept(tmp_path) == {saved[2]["id"]}


async def test_a_checkpoint_is_restored_in_its_own_isolation_mode_only(
    tmp_path: Path, platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform_of_mode("bwrap")  # skips where it does not work
    async with (
        LocalPlatform(data_dir=tmp_path, isolation="bwrap") as platform,
        helpers.client_of(platform) as client,
    ):
        saved = await durable(client, await save(client, await client.running()))
    async with (
        LocalPlatform(data_dir=tmp_path, isolation="process") as platform,
        helpers.client_of(platform) as client,
    ):
        body = {"name": "restored", "checkpoint_id": saved["id"]}
        answer = await client.call("POST", "/api/v1/sandbox", body)
        assert answer.status == 501
        assert "isolation bwrap" in answer.body["detail"]


async def test_a_reset_forgets_checkpoints_and_their_files(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    platform, client = await open_platform(data_dir=tmp_path, removal_time=60)
    source = await client.running()
    gone, kept = [await durable(client, await save(client, source)) for _ in range(2)]
    await delete(client, gone)
    await platform.reset()
    assert await read(client, kept) is None
    assert _kept(tmp_path) == set()
    await platform.advance(60)


def _kept(data_dir: Path) -> set[str]:
    """The ids of the checkpoints whose files are there."""
    folder = data_dir / "checkpoints"
    return {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()


async def _until_kept(data_dir: Path, wanted: set[str]) -> None:
    await _until(lambda: _kept(data_dir) == wanted)


async def _until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def _set_state(data_dir: Path, checkpoint: Json, state: str) -> None:
    with closing(sqlite3.connect(data_dir / "platform.sqlite3")) as connection, connection:
        connection.execute(
            "UPDATE objects SET record = json_set(record, '$.state', ?) WHERE id = ?",
            (state, checkpoint["id"]),
        )
