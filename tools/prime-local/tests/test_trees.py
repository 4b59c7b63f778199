"""Nothing that a sandbox started may outlive it, or a command its deadline."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

# A child in a session of its own, one whose parent is gone, and one with a changed directory.
TREE = """
setsid bash -c 'echo $$ > setsid.pid; exec sleep 60' &
(setsid bash -c 'echo $$ > orphan.pid; exec sleep 60' &)
(cd / && exec sleep 60) & echo $! > moved.pid
echo $$ > main.pid
sleep 60
"""
NAMES = ("setsid", "orphan", "moved", "main")


async def _start_tree(client: RawClient, helpers: Any) -> tuple[dict[str, Any], list[int], Any]:
    box = await client.running(timeout_minutes=1)
    running = asyncio.create_task(client.run(box, TREE))
    folder = Path(box["diskMountPath"])
    pids = [await helpers.read_pid(folder / f"{name}.pid") for name in NAMES]
    assert all(helpers.process_exists(pid) for pid in pids)
    return box, pids, running


async def test_delete_kills_the_whole_tree_before_it_answers(
    client: RawClient, helpers: Any
) -> None:
    box, pids, running = await _start_tree(client, helpers)
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    assert (await running).error_code == "not_found"
    assert not Path(box["diskMountPath"]).parent.exists()


async def test_lifetime_kills_the_whole_tree(open_platform: OpenPlatform, helpers: Any) -> None:
    platform, client = await open_platform()
    box, pids, running = await _start_tree(client, helpers)
    await platform.advance(61)
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    assert (await client.get(box))["status"] == "TIMEOUT"
    await running


async def test_reset_kills_the_whole_tree(open_platform: OpenPlatform, helpers: Any) -> None:
    platform, client = await open_platform()
    _, pids, running = await _start_tree(client, helpers)
    await platform.reset()
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    assert platform.ledger()["sandboxes"]["created"] == 0
    await running


async def test_command_deadline_kills_its_tree_and_no_other_command(
    client: RawClient, helpers: Any
) -> None:
    box = await client.running()
    folder = Path(box["diskMountPath"])
    other = asyncio.create_task(client.run(box, "sleep 2; echo survived"))
    result = await client.run(box, TREE, timeout_ms=1000)
    assert result.error_code == "deadline_exceeded"
    for name in NAMES:
        assert not helpers.process_exists(await helpers.read_pid(folder / f"{name}.pid"))
    assert (await other).stdout == "survived\n"


async def test_sigkill_kills_the_whole_tree(client: RawClient, helpers: Any) -> None:
    box, pids, running = await _start_tree(client, helpers)
    answer = await client.signal(box, session={"pid": pids[-1]}, signal="SIGNAL_SIGKILL")
    assert answer.status == 200
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    assert (await running).exit_code == 137


async def test_background_process_outlives_its_command_until_the_sandbox_ends(
    client: RawClient, helpers: Any
) -> None:
    box = await client.running()
    await client.run(box, "nohup sleep 60 >/dev/null 2>&1 & echo $! > pid")
    pid = await helpers.read_pid(Path(box["diskMountPath"]) / "pid")
    await client.run(box, "true")
    assert helpers.process_exists(pid)
    await client.call("DELETE", "/api/v1/sandbox", {"sandbox_ids": [box["id"]]})
    assert not helpers.process_exists(pid)


async def test_delete_in_the_middle_of_a_start_leaves_nothing(
    client: RawClient, helpers: Any
) -> None:
    for _ in range(10):
        box = await client.running()
        running = [asyncio.create_task(client.run(box, "sleep 60")) for _ in range(3)]
        await asyncio.sleep(0)
        await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
        for result in await asyncio.gather(*running):
            assert "not_found" in (result.error_code, (result.body or {}).get("code"))
        assert not Path(box["diskMountPath"]).parent.exists()


async def test_start_command_and_its_children_die_with_the_sandbox(
    client: RawClient, helpers: Any
) -> None:
    script = "setsid sleep 60 & echo $! > child.pid; echo $$ > main.pid; wait"
    start = {"executable": "/bin/bash", "args": ["-c", script]}
    box = await client.running(start_command=start)
    folder = Path(box["diskMountPath"])
    pids = [await helpers.read_pid(folder / f"{name}.pid") for name in ("main", "child")]
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    assert [pid for pid in pids if helpers.process_exists(pid)] == []
    assert (await client.get(box))["exitCode"] is None
