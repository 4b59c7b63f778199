"""Ctrl-C in a sync program during a download: nothing half-done stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prime_local import FaultRule, PlatformProcess

pytestmark = pytest.mark.timeout(60)

PROGRAM = """
import sys
from prime_sandboxes import APIClient, CreateSandboxRequest, SandboxClient

with SandboxClient(APIClient()) as client:
    box = client.create(CreateSandboxRequest(name="box", docker_image="python:3.11-slim"))
    try:
        client.wait_for_creation(box.id)
        client.upload_bytes(box.id, "x", bytes(3_000_000), "x")
        download = getattr(client, sys.argv[1])
        download(box.id, sys.argv[2], sys.argv[3] + "/target")
    finally:
        client.delete(box.id)
"""


@pytest.mark.parametrize(("method", "path"), [("download_file", "x"), ("download_directory", ".")])
def test_ctrl_c_leaves_neither_a_part_nor_a_sandbox(
    prime_platform_server: PlatformProcess, tmp_path: Path, method: str, path: str
) -> None:
    platform = prime_platform_server
    platform.reset()
    platform.add_faults(
        FaultRule("download_file", stall=30),
        FaultRule("command_session_start", after_envelopes=20, stall=30),
    )
    environment = {**os.environ, "HOME": str(tmp_path), **platform.env}
    folder = tmp_path / "folder"
    folder.mkdir()
    words = [sys.executable, "-c", PROGRAM, method, path, str(folder)]
    program = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while not os.listdir(folder):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=20)
    finally:
        program.kill()
        program.communicate()
    assert b"KeyboardInterrupt" in said
    assert os.listdir(folder) == []
    assert platform.ledger()["sandboxes"]["live"] == 0
    platform.reset()
