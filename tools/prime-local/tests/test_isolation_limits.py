"""What a sandbox may take, and that nothing of it is left at its end."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import PlatformProcess

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient

PROCESSES = 1024
HOG = "python -c 'kept = [bytearray(64 << 20) for _ in range(160)]'"


@pytest.fixture(params=["full"])
def platform(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode
) -> Iterator[PlatformProcess]:
    server = platform_of_mode(request.param)
    yield server
    server.reset()


@pytest.fixture
async def client(platform: PlatformProcess, helpers: Any) -> AsyncIterator[RawClient]:
    async with helpers.client_of(platform) as client:
        yield client


both = pytest.mark.parametrize("platform", ["full", "bwrap"], indirect=True)


def processes_with(mark: str) -> list[int]:
    """Find processes of the whole machine by a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def delete(client: RawClient, box: dict[str, Any]) -> None:
    assert (await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")).status == 200


async def test_ten_gib_of_memory_end_the_sandbox_as_out_of_memory(client: RawClient) -> None:
    box, other = await client.running(memory_gb=0.25), await client.running()
    result = await client.run(box, f"echo before; {HOG}; echo after")
    assert result.error_code == "not_found"
    assert result.stdout.startswith("before\n")
    found = await client.get(box)
    assert (found["status"], found["errorType"]) == ("ERROR", "OOM_KILLED")
    context = await client.call("GET", f"/api/v1/sandbox/{box['id']}/error-context")
    assert context.body["errorType"] == "OOM_KILLED"
    assert (await client.run(other, "echo alive")).stdout == "alive\n"


async def test_memory_kill_of_a_background_process_is_noticed(client: RawClient) -> None:
    box = await client.running(memory_gb=0.25)
    await client.run(box, f"({HOG}; sleep 60) >/dev/null 2>&1 &")
    assert (await client.until(box, "ERROR"))["errorType"] == "OOM_KILLED"


async def test_memory_kill_of_the_start_command_is_told_as_such(client: RawClient) -> None:
    start = {"executable": "/bin/bash", "args": ["-c", f"exec {HOG}"]}
    box = await client.create(memory_gb=0.25, start_command=start)
    assert (await client.until(box, "ERROR", "TERMINATED"))["errorType"] == "OOM_KILLED"


async def test_files_in_memory_count_as_memory(client: RawClient) -> None:
    box = await client.running(memory_gb=0.25)
    await client.run(box, "head -c 1G /dev/zero > /dev/shm/file")
    assert (await client.until(box, "ERROR"))["errorType"] == "OOM_KILLED"


async def test_lack_of_memory_ends_commands_before_what_keeps_the_sandbox(
    client: RawClient,
) -> None:
    box = await client.running()
    result = await client.run(box, "cat /proc/self/oom_score_adj /proc/1/oom_score_adj")
    own, first = map(int, result.stdout.split())
    assert own == 1000 > first


async def test_large_file_on_disk_takes_no_memory(client: RawClient) -> None:
    box = await client.running(memory_gb=0.25)
    for place in ("/tmp", "/root", "/workspace", "/var/tmp"):
        script = (
            f"head -c 300M /dev/zero > {place}/file && stat -c %s {place}/file && rm {place}/file"
        )
        result = await client.run(box, script)
        assert (result.stdout, result.stderr) == ("314572800\n", "")


@both
async def test_sparse_tebibyte_is_refused_and_takes_no_disk(client: RawClient) -> None:
    box = await client.running(disk_size_gb=5)
    before = shutil.disk_usage("/var/tmp").free
    result = await client.run(box, "truncate -s 1T huge; truncate -s 5G fits; ls")
    assert "File too large" in result.stderr
    assert "fits" in result.stdout.split()
    result = await client.run(box, "dd if=/dev/zero of=grown bs=1M count=2 seek=5119")
    assert result.exit_code != 0
    assert before - shutil.disk_usage("/var/tmp").free < 2**30


async def test_fork_bomb_stays_within_its_limit(client: RawClient) -> None:
    box, other = await client.running(), await client.running()
    mark = f"bomb-{uuid.uuid4().hex}"
    bomb = f"exec -a {mark} bash -c 'bomb() {{ bomb | bomb & }}; bomb; sleep 60'"
    running = asyncio.create_task(client.run(box, bomb, timeout_ms=60_000))
    most = 0
    for _ in range(20):
        await asyncio.sleep(0.1)
        most = max(most, len(processes_with(mark)))
    assert 500 < most <= PROCESSES
    assert (await client.run(other, "echo alive")).stdout == "alive\n"
    await delete(client, box)
    assert processes_with(mark) == []
    assert (await running).error_code == "not_found"


@both
async def test_delete_ends_whatever_hides_from_it(client: RawClient) -> None:
    mark = f"hidden-{uuid.uuid4().hex}"
    box = await client.running()
    await client.run(box, _hiding(mark))
    await until(lambda: len(processes_with(mark)) == 4)
    await delete(client, box)
    assert processes_with(mark) == []


async def test_deadline_ends_whatever_hides_from_it_and_no_other_command(
    client: RawClient,
) -> None:
    mark, kept = f"hidden-{uuid.uuid4().hex}", f"kept-{uuid.uuid4().hex}"
    box = await client.running()
    await client.run(box, f"(exec -a {kept} sleep 60) >/dev/null 2>&1 &")
    result = await client.run(box, f"{_hiding(mark)}\nsleep 60", timeout_ms=1500)
    assert result.error_code == "deadline_exceeded"
    assert processes_with(mark) == []
    assert len(processes_with(kept)) == 1


def _hiding(mark: str) -> str:
    """Return a script that leaves processes its parent cannot find, or that ignore signals."""
    sleeper = f"trap '' TERM HUP INT; exec -a {mark} sleep 60"
    return f"""
exec >/dev/null 2>&1
setsid bash -c "{sleeper}" &
(setsid bash -c "{sleeper}" &)
env -i setsid bash -c "{sleeper}" &
(env -i PATH=$PATH setsid bash -c 'setsid bash -c "{sleeper}" & exit' &)
while [ $(cat /proc/*/cmdline | tr '\\0' '\\n' | grep -c ^{mark}) != 4 ]; do :; done
"""


@both
async def test_nothing_of_a_deleted_sandbox_is_left(client: RawClient) -> None:
    mounts = Path("/proc/self/mounts").read_text()  # noqa: ASYNC240 - no file on a disk
    boxes = [await client.running() for _ in range(5)]
    scripts = (client.run(box, "mkdir -p a/b; touch a/b/c; sleep 60 & sleep 0.1") for box in boxes)
    await asyncio.gather(*scripts)
    assert all(_places_of(box) for box in boxes)
    await asyncio.gather(*(delete(client, box) for box in boxes))
    assert [_places_of(box) for box in boxes] == [[]] * 5
    assert Path("/proc/self/mounts").read_text() == mounts  # noqa: ASYNC240


def _places_of(box: dict[str, Any]) -> list[str]:
    """Find a sandbox's folders and control groups, by its id."""
    roots = [*Path("/var/tmp").glob("prime-local-*/sandboxes"), Path("/sys/fs/cgroup")]
    return [
        os.path.join(folder, name)
        for root in roots
        for folder, names, _ in os.walk(root)
        for name in names
        if name == box["id"]
    ]


async def test_folders_without_end_or_permissions_are_deleted(client: RawClient) -> None:
    box = await client.running()
    script = """
import os
for _ in range(1200):
    os.mkdir("folder")
    os.chdir("folder")
os.mkdir("/workspace/closed")
open("/workspace/closed/file", "w").close()
os.chmod("/workspace/closed", 0)
"""
    result = await client.run(box, "python - <<'END'\n" + script + "END")
    assert result.exit_code == 0, result.stderr
    await delete(client, box)
    assert _places_of(box) == []
