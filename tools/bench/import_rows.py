"""CPU of imports, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.plan import Plan
from bench.reports import Row, ratio
from bench.workers import environment, pin

__all__ = ["import_rows"]

ROOT = Path(__file__).resolve().parents[2]
NOTHING = "pass"
TARGET = 2.5


def import_rows(plan: Plan) -> Iterator[Row]:
    """Each package's root, our client, and pydantic for comparison."""
    packages = sorted(path.parent.name for path in ROOT.glob("packages/*/src/*/__init__.py"))
    targets: dict[str, float | None] = {f"import {package}": TARGET for package in packages}
    targets["from prime_sandboxes import AsyncSandboxClient"] = None
    targets["import pydantic"] = None
    seconds: dict[str, list[float]] = {statement: [] for statement in (NOTHING, *targets)}
    for statement in seconds:  # so that all is compiled
        cpu_of(statement, plan.measured)
    for _ in range(plan.size(25, 1)):
        for statement, runs in seconds.items():
            runs.append(cpu_of(statement, plan.measured))
    for statement, target in targets.items():
        times = ratio(seconds[statement], seconds[NOTHING])
        yield Row(statement, times, "x bare interpreter", target)


def cpu_of(statement: str, core: int | None) -> float:
    """CPU seconds of an interpreter that runs a statement."""
    process = subprocess.Popen([sys.executable, "-c", statement], env=environment())
    pin(process.pid, core)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{statement!r} failed in an interpreter of its own")
    return used.ru_utime + used.ru_stime
