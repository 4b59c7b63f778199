"""Leaving a fleet by any road leaves nothing running, and the process ends."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from prime_local.subprocess_server import PlatformProcess

PROGRAM = Path(__file__).parent / "programs" / "fleet_program.py"
# How long after the interruption nothing may live any more, and the process may last.
PATIENCE = 15.0

Start = Callable[[str, str], "subprocess.Popen[str]"]


@pytest.fixture
def start(program_environment: dict[str, str]) -> Start:
    def start(style: str, how: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), style, how],
            env=program_environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def finish(
    process: subprocess.Popen[str], platform: PlatformProcess, signals: Sequence[int]
) -> tuple[int, str]:
    """Interrupts the program once it works; its exit code and what it wrote to stderr."""
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        began = time.monotonic()
        for number in signals:
            process.send_signal(number)
            time.sleep(0.15)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        ended = process.poll() is not None
    finally:
        process.kill()
        _, stderr = process.communicate()
    assert ended, f"still there after {PATIENCE} s: {stderr}"
    while platform.ledger()["sandboxes"]["live"] and time.monotonic() - began < PATIENCE:
        time.sleep(0.1)
    ledger = platform.ledger()
    assert ledger["sandboxes"]["created"] >= 20
    assert ledger["sandboxes"]["live"] == 0, stderr
    assert set(ledger["creates_per_key"].values()) == {1}
    return process.returncode, stderr


@pytest.mark.parametrize("style", ["async", "sync"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_ctrl_c_leaves_nothing_running(
    platform_process: PlatformProcess, start: Start, style: str, times: int
) -> None:
    code, stderr = finish(start(style, "wait"), platform_process, [signal.SIGINT] * times)
    assert code in (-signal.SIGINT, 128 + signal.SIGINT, 1)
    assert "KeyboardInterrupt" in stderr
    # The third may cut asyncio.run itself short, which then says so of the program's own task.
    forgotten = set(re.findall(r"future: <Task .*?name='([^']+)'", stderr))
    assert forgotten <= ({"Task-1"} if times == 3 else set())
    assert "left behind" not in stderr


@pytest.mark.parametrize("style", ["async", "sync"])
def test_sigterm_leaves_nothing_running_and_still_ends_the_process(
    platform_process: PlatformProcess, start: Start, style: str
) -> None:
    code, stderr = finish(start(style, "wait"), platform_process, [signal.SIGTERM])
    assert code in (-signal.SIGTERM, 128 + signal.SIGTERM), stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("style", ["async", "sync"])
def test_an_exception_in_the_body_leaves_nothing_running(
    platform_process: PlatformProcess, start: Start, style: str
) -> None:
    code, stderr = finish(start(style, "body"), platform_process, [])
    assert code == 1
    assert "ValueError: the body failed" in stderr


@pytest.mark.parametrize("style", ["async", "sync"])
def test_system_exit_in_the_function_ends_the_fleet_with_its_code(
    platform_process: PlatformProcess, start: Start, style: str
) -> None:
    code, stderr = finish(start(style, "exit"), platform_process, [])
    assert code == 7, stderr
    assert "Traceback" not in stderr
