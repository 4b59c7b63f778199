"""Choosing an isolation mode, and what is left when a platform dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform, PlatformProcess
from prime_local.sandboxes.isolation.leases import lease_folder

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient

SANDBOXES = 100
PRIME_LOCAL = [sys.executable, "-m", "prime_local"]


@contextmanager
def served(*words: str, **options: Any) -> Iterator[dict[str, Any]]:
    """Serve, and yield the ready line with the log so far under `log`."""
    command = [*words, *PRIME_LOCAL, "serve"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, **options)
        assert process.stdout is not None
        platform = process.pid
        try:
            ready = json.loads(process.stdout.readline())
            # A wrapper would not pass the signal on.
            platform = ready["pid"]
            log.seek(0)
            yield {**ready, "log": log.read().decode()}
        finally:
            os.kill(platform, signal.SIGTERM)
            process.wait(10)
            process.stdout.close()


def processes_with(mark: str) -> list[int]:
    """Find processes of the whole machine by a word in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and any(
                mark.encode() in (entry / name).read_bytes() for name in ("cmdline", "environ")
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@dataclass(frozen=True)
class Belongings:
    """What the platform of some sandbox has on this machine: its paths, and its folder."""

    paths: list[Path]
    folder: str

    @classmethod
    def around(cls, box: dict[str, Any]) -> Belongings:
        leases = lease_folder()
        assert leases is not None
        for lease in leases.iterdir():
            text = lease.read_text()
            if text and Path(json.loads(text)["folder"], "sandboxes", box["id"]).exists():
                folder, groups = json.loads(text)["folder"], json.loads(text)["groups"]
                return cls([lease, Path(folder), *map(Path, groups)], folder)
        raise AssertionError("no lease tells of this sandbox")

    async def gone(self) -> None:
        """Wait until nothing is left; a platform of another test may be the one that cleans up."""
        deadline = time.monotonic() + 30
        while left := self.left():
            assert time.monotonic() < deadline, left
            await asyncio.sleep(0.05)

    def left(self) -> list[object]:
        mounts = Path("/proc/self/mounts").read_text()
        return [path for path in self.paths if path.exists()] + [self.folder] * (
            self.folder in mounts
        )


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_auto_takes_full_where_it_works(platform_of_mode: PlatformOfMode) -> None:
    platform_of_mode("full")
    with served() as ready:
        assert ready["isolation"] == "full"
        assert "SIMULATION" in ready["log"]
        assert "NOTHING isolates" not in ready["log"]


def test_auto_without_root_takes_bwrap(platform_of_mode: PlatformOfMode, tmp_path: Path) -> None:
    platform_of_mode("bwrap")
    user = ["--unshare-user", "--uid", "1000", "--gid", "1000", "--die-with-parent"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    with served("bwrap", "--dev-bind", "/", "/", *user, "--", env=environment) as ready:
        assert ready["isolation"] == "bwrap"
        assert "isolation full does not work here: it needs root" in ready["log"]


def test_auto_without_bubblewrap_takes_process_and_says_that_nothing_isolates() -> None:
    with served(env={**os.environ, "PATH": "/nowhere"}) as ready:
        assert ready["isolation"] == "process"
        assert "bubblewrap is not installed" in ready["log"]
        assert "NOTHING isolates" in ready["log"]


@pytest.mark.parametrize("mode", ["full", "bwrap"])
def test_mode_that_does_not_work_is_a_plain_error(mode: str) -> None:
    done = subprocess.run(
        [*PRIME_LOCAL, "serve", "--isolation", mode],
        env={**os.environ, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot start: isolation {mode} does not work here: " in done.stderr
    assert "Traceback" not in done.stderr


def test_program_named_bwrap_that_isolates_nothing_is_not_trusted(tmp_path: Path) -> None:
    liar = tmp_path / "bwrap"
    liar.write_text('#!/bin/bash\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n')
    liar.chmod(0o755)
    with served(env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}) as ready:
        assert ready["isolation"] == "process"


@pytest.mark.parametrize("mode", ["full", "bwrap"])
async def test_embedded_platform_leaves_nothing(
    mode: Any, platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform_of_mode(mode)
    async with LocalPlatform(limits=False, isolation=mode) as platform:
        assert platform.isolation == mode
        async with helpers.client_of(platform) as client:
            boxes = await asyncio.gather(*(client.running() for _ in range(10)))
            await asyncio.gather(*(client.run(box, "sleep 60 & echo x > file") for box in boxes))
        belongings = Belongings.around(boxes[0])
        assert belongings.left() == belongings.paths
    assert belongings.left() == []
    assert [pid for box in boxes for pid in processes_with(box["id"])] == []


@pytest.mark.parametrize(
    ("mode", "launcher_too"),
    [("full", False), ("full", True), ("bwrap", False), ("bwrap", True), ("process", False)],
)
async def test_next_start_cleans_up_after_a_killed_platform(
    mode: Any, launcher_too: bool, platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    bystander = platform_of_mode(mode)
    mark = f"mark-{uuid.uuid4().hex}"
    script = f"setsid env -i sleep 60 & exec -a {mark} sleep 60"
    if mode == "process":
        script = f"setsid sleep 60 & exec -a {mark} sleep 60"
    start: dict[str, object] = {"executable": "/bin/bash", "args": ["-c", script]}
    dead = PlatformProcess(["--no-limits"], isolation=mode)
    with dead:
        async with helpers.client_of(dead) as client, helpers.client_of(bystander) as other:
            kept = await other.running()
            boxes = await _running(client, start)
            belongings = Belongings.around(boxes[0])
            assert len(belongings.paths) == (5 if mode == "full" else 2)
            victims = [dead.pid, *(children(dead.pid) if launcher_too else [])]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            await helpers.until_gone(dead.pid)
            with PlatformProcess(isolation=mode):
                await belongings.gone()
                assert processes_with(mark) == []
                assert [box["id"] for box in boxes if processes_with(box["id"])] == []
            assert (await other.run(kept, "echo alive")).stdout == "alive\n"
    bystander.reset()


async def _running(client: RawClient, start: dict[str, object]) -> list[dict[str, Any]]:
    boxes = await asyncio.gather(*(client.create(start_command=start) for _ in range(SANDBOXES)))
    await asyncio.gather(*(client.until(box, "RUNNING") for box in boxes))
    mark = str(start["args"]).rpartition("-a ")[2].split()[0]
    deadline = time.monotonic() + 20
    while len([pid for pid in processes_with(mark) if _is_sleep(pid)]) < SANDBOXES:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    return boxes


def _is_sleep(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    except OSError:
        return False


async def test_sandbox_that_ends_by_itself_is_told_as_an_error(
    platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform = platform_of_mode("full")
    async with helpers.client_of(platform) as client:
        box = await client.running()
        running = asyncio.create_task(client.run(box, "echo begun; sleep 60"))
        await asyncio.sleep(0.3)
        first = next(pid for pid in processes_with(box["id"]) if b"--norc" in _words(pid))
        os.kill(first, signal.SIGKILL)
        result = await running
        assert result.error_code == "not_found" or result.exit_code == 137
        found = await client.until(box, "ERROR")
        assert found["errorType"] == "SANDBOX_LOST"
    platform.reset()


def _words(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def test_platform_outlives_its_launcher_and_says_what_ended(
    platform_of_mode: PlatformOfMode, helpers: Any
) -> None:
    platform_of_mode("full")
    with PlatformProcess(["--no-limits"], isolation="full") as platform:
        async with helpers.client_of(platform) as client:
            box = await client.running()
            for pid in children(platform.pid):
                os.kill(pid, signal.SIGKILL)
            assert (await client.until(box, "ERROR"))["errorType"] == "SANDBOX_LOST"
            late = await client.create()
            assert (await client.until(late, "ERROR"))["errorType"] == "START_FAILED"
