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
        costs: dict[str, float] = {}
        for extra in ("plain", "fast"):
            client, parts = (upload(plan, side, url, extra, total) for side in ("ours", "parts"))
            costs[extra] = cost(client)
            details = {
                "MB/s": client["bytes"] / 1e6 / client["wall"],
                "MB/s of the parts": parts["bytes"] / 1e6 / parts["wall"],
                "loop lag, p99 in ms": client["p99_ms"],
                "max in ms": client["max_ms"],
            }
            times = cost(client) / cost(parts)
            yield Row(f"traces, {extra}: CPU", times, "x JSON, digest and gzip", 1.25, details)
            growth = client["growth_kib"] / 1024
            sizes = {"MiB": total / MIB, "batches": client["batches"]}
            yield Row(f"traces, {extra}: memory growth", growth, "MiB", 200, sizes)
        vendor = upload(plan, "vendor", url, "", total // VENDORS_SHARE, python)
    details = {
        "MB/s of the vendor's": vendor["bytes"] / 1e6 / vendor["wall"],
        "plain": costs["plain"] / cost(vendor),
    }
    times = costs["fast"] / cost(vendor)
    yield Row("traces, fast: CPU, vendor", times, "x the vendor's client", 0.2, details)


def upload(
    plan: Plan, side: str, url: str, extra: str, total: int, python: str = sys.executable
) -> Answer:
    """Uploads so many bytes by one side, with the extra `fast` or without it."""
    with Worker("trace_work", side, url, extra, core=plan.measured, python=python) as worker:
        return worker.ask(total=total)


def cost(answer: Answer) -> float:
    """CPU seconds of a byte; all sides are bound by their one core."""
    return float(answer["cpu"]) / float(answer["bytes"])


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
