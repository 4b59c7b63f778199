"""Uploads of traces, against a server that forgets them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.plan import Plan
from bench.reports import Row
from bench.workers import Answer, Worker

__all__ = ["trace_rows"]

MIB = 1024 * 1024
# The vendor's client is given less: it takes long.
VENDORS_SHARE = 4
INSTALL_SECONDS = 300


def trace_rows(plan: Plan) -> Iterator[Row]:
    """1 GiB of records from the first to the last receipt."""
    total = plan.size(1024 * MIB, 32 * MIB)
    with tempfile.TemporaryDirectory() as folder, Worker("trace_stub", core=plan.servers) as stub:
        python = str(vendors_python(Path(folder)))
        url = stub.ask()["url"]
        speeds: dict[str, float] = {}
        for extra in ("plain", "fast"):
            client, parts = (upload(plan, side, url, extra, total) for side in ("ours", "parts"))
            speeds[extra] = speed(client)
            details = {
                "MB/s": speed(client),
                "MB/s of the parts": speed(parts),
                "CPU against the parts": client["cpu"] / parts["cpu"],
                "loop lag, p99 in ms": client["p99_ms"],
                "max in ms": client["max_ms"],
            }
            pace = speed(parts) / speed(client)
            yield Row(f"traces, {extra}: wall", pace, "x JSON, digest and gzip", 1.25, details)
            growth = client["growth_kib"] / 1024
            sizes = {"MiB": total / MIB, "batches": client["batches"]}
            yield Row(f"traces, {extra}: memory growth", growth, "MiB", 200, sizes)
        vendor = speed(upload(plan, "vendor", url, "", total // VENDORS_SHARE, python))
    details = {"MB/s": vendor, "plain": vendor / speeds["plain"]}
    pace = vendor / speeds["fast"]
    yield Row("traces, fast: wall against the vendor", pace, "x", 0.2, details)


def upload(
    plan: Plan, side: str, url: str, extra: str, total: int, python: str = sys.executable
) -> Answer:
    """Uploads so many bytes by one side, with the extra `fast` or without it."""
    with Worker("trace_work", side, url, extra, core=plan.measured, python=python) as worker:
        return worker.ask(total=total)


def speed(answer: Answer) -> float:
    """MB a second, of uncompressed lines."""
    megabytes: float = answer["bytes"] / 1e6
    return megabytes / float(answer["wall"])


def vendors_python(folder: Path) -> Path:
    """An interpreter whose environment holds the vendor's client and nothing of ours."""
    uv = os.environ.get("UV") or shutil.which("uv")
    command = [uv] if uv else [sys.executable, "-m", "uv"]
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment["UV_SYSTEM_CERTS"] = "1"
    python = folder / "environment" / "bin" / "python"
    requirements = Path(__file__).with_name("vendor-requirements.txt")
    for words in (
        ["venv", "--python", sys.executable, str(folder / "environment")],
        ["pip", "install", "--python", str(python), "-r", str(requirements)],
    ):
        subprocess.run(
            [*command, words[0], *words[1:], "--quiet"],
            cwd=folder,  # outside the workspace, whose pins are not the vendor's
            env=environment,
            timeout=INSTALL_SECONDS,
            check=True,
        )
    return python
