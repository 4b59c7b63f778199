"""The bar of a transfer: drawn where somebody can see it, and nowhere else."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from prime_local import PlatformProcess

pytestmark = pytest.mark.timeout(60)

PROGRAM = """
import sys
from prime_sandboxes import APIClient, CreateSandboxRequest, SandboxClient

with SandboxClient(APIClient()) as client:
    box = client.create(CreateSandboxRequest(name="box", docker_image="python:3.11-slim"))
    try:
        client.wait_for_creation(box.id)
        client.upload_bytes(box.id, "there", bytes(3_000_000), "sent.bin", progress=True)
        client.download_file(box.id, "there", sys.argv[1] + "/back.bin", progress=True)
    finally:
        client.delete(box.id)
"""


def run(platform: PlatformProcess, folder: Path, stderr: int) -> bytes | None:
    pytest.importorskip("rich")
    platform.reset()
    environment = {**os.environ, "HOME": str(folder), **platform.env, "TERM": "xterm"}
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        environment.pop(name, None)
    words = [sys.executable, "-c", PROGRAM, str(folder)]
    program = subprocess.run(
        words, env=environment, stdout=subprocess.PIPE, stderr=stderr, check=True, timeout=50
    )
    assert program.stdout == b""
    assert (folder / "back.bin").stat().st_size == 3_000_000
    said: bytes | None = program.stderr
    return said


def drain(terminal: int, shown: bytearray) -> None:
    """Takes what a terminal shows; one that nobody reads holds its program up."""
    with contextlib.suppress(OSError):  # the other end is closed
        while data := os.read(terminal, 4096):
            shown.extend(data)


def test_a_terminal_shows_a_bar(prime_platform_server: PlatformProcess, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    shown = bytearray()
    reading = threading.Thread(target=drain, args=(ours, shown), daemon=True)
    reading.start()
    try:
        run(prime_platform_server, tmp_path, theirs)
    finally:
        os.close(theirs)
        reading.join(10)
        os.close(ours)
    for text in (b"sent.bin", b"there", b"3.0/3.0 MB"):
        assert text in shown


def test_a_file_shows_none(prime_platform_server: PlatformProcess, tmp_path: Path) -> None:
    assert run(prime_platform_server, tmp_path, subprocess.PIPE) == b""
