"""Transfers of any size take a little memory only, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from prime_local import PlatformProcess

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]

PROGRAM = """
import asyncio, json, sys
from prime_train import AsyncTrainClient

def peak():  # in MiB; getrusage's begins with what the parent had
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

async def main(folder):
    grown = {}
    async with AsyncTrainClient() as client:
        volumes = client.volumes
        await volumes.create("v", "1Ti")
        for name in ("small", "large", "many"):  # what the first calls load is no growth
            before = peak()
            await volumes.put(f"{folder}/{name}/", "v", name)
            await volumes.get("v", f"{name}/", f"{folder}/{name}-back")
            grown[name] = peak() - before
    print(json.dumps(grown))

asyncio.run(main(sys.argv[1]))
"""


def make(path: Path, mebibytes: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, mebibytes * 1024 * 1024)


def test_large_files_and_many_at_once_grow_the_process_by_less_than_32_mib(tmp_path: Path) -> None:
    make(tmp_path / "small" / "file", 2)
    make(tmp_path / "large" / "file", 320)  # five parts, four at once
    for number in range(8):  # eight files at once, one of them in parts
        make(tmp_path / "many" / f"file{number}", 40 if number else 70)
    with PlatformProcess() as platform:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env={**os.environ, **platform.env, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    grown = json.loads(done.stdout)
    assert grown["large"] < 32
    assert grown["many"] < 32
    assert (tmp_path / "large-back" / "file").stat().st_size == 320 * 1024 * 1024
