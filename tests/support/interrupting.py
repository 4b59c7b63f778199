"""Programs under test that are interrupted at their work."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from prime_local.subprocess_server import PlatformProcess

__all__ = ["PATIENCE", "interrupt"]

# How long after the interruption nothing may live any more, and the process may last.
PATIENCE = 15.0
# How long the program may take to get there, on a busy machine.
START = 40.0


def interrupt(
    program: Path,
    arguments: Sequence[str],
    environment: dict[str, str],
    signals: Sequence[int] = (),
    *,
    announced: bool = True,
    until: str | None = None,
    platform: PlatformProcess | None = None,
    pause: float = 0.15,
) -> tuple[int, str]:
    """Interrupts a program once it works; its exit code and what it wrote to stderr.

    Args:
        program: a Python file.
        arguments: its arguments.
        environment: its environment.
        signals: what it is sent.
        announced: whether it prints ``working`` before.
        until: an operation that must have been asked for before the interruption.
        platform: knows whether it was.
        pause: seconds after each signal.
    """
    process = subprocess.Popen(
        [sys.executable, str(program), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        if announced:
            assert process.stdout.readline() == "working\n"
        deadline = time.monotonic() + START
        while until and platform and not platform.ledger()["requests"].get(until):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for number in signals:
            process.send_signal(number)
            time.sleep(pause)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        ended = process.poll() is not None
    finally:
        process.kill()
        _, stderr = process.communicate()
    assert ended, f"still there after {PATIENCE} s: {stderr}"
    return process.returncode, stderr
