"""Programs that tests run as processes of their own, to see them end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUPPORT = Path(__file__).parent
PATIENCE = 30.0


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str


def start(
    source: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Starts a Python program that can import this folder's modules.

    Use `line` to wait for what it prints, and `end` to close its input and see it end.
    """
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(source), *arguments],
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str], timeout: float = PATIENCE) -> Ended:
    """Waits for a program's end; it is killed when that does not come."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the program did not end:\n{out}\n{err}") from None
    return Ended(process.returncode, out.strip(), err.strip())


def run(
    source: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    timeout: float = PATIENCE,
) -> Ended:
    """Runs a program to its end."""
    return end(start(source, *arguments, env=env), timeout)
