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
from prime_sandboxes import AsyncSandboxClient, CreateSandboxRequest

def peak():  # in MiB; getrusage's begins with what the parent had
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

async def main(folder):
    grown = {}
    async with AsyncSandboxClient() as client:
        box = await client.create(CreateSandboxRequest(name="box", docker_image="python:3.11-slim"))
        await client.wait_for_creation(box.id)
        for name in ("small", "large"):  # what the first calls load is no growth
            steps = [
                client.upload_file(box.id, name, f"{folder}/{name}"),
                client.download_file(box.id, name, f"{folder}/{name}-back"),
                client.upload_directory(box.id, f"{name}s", f"{folder}/{name}s"),
                client.download_directory(box.id, f"{name}s", f"{folder}/{name}s-back"),
            ]
            for step in steps:
                before = peak()
                what = step.__name__
                await step
                grown[what] = peak() - before
    print(json.dumps(grown))

asyncio.run(main(sys.argv[1]))
"""


def make(path: Path, mebibytes: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, mebibytes * 1024 * 1024)


def test_a_quarter_of_a_gibibyte_grows_the_process_by_less_than_16_mib(tmp_path: Path) -> None:
    make(tmp_path / "small", 2)
    make(tmp_path / "large", 256)
    make(tmp_path / "smalls" / "file", 2)
    make(tmp_path / "larges" / "file", 64)
    with PlatformProcess(["--no-limits"]) as platform:
        program = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env={**os.environ, "HOME": str(tmp_path), **platform.env},
            stdout=subprocess.PIPE,
            check=True,
            timeout=100,
        )
    assert os.path.getsize(tmp_path / "large-back") == 256 * 1024 * 1024
    assert os.path.getsize(tmp_path / "larges-back" / "file") == 64 * 1024 * 1024
    grown = json.loads(program.stdout)
    assert len(grown) == 4
    assert max(grown.values()) < 16, grown
