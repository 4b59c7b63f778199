"""One large file, put to a volume and got from it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Plan
from bench.reports import Row
from bench.workers import Worker, pin
from prime_local import PlatformProcess

__all__ = ["volume_rows"]

MIB = 1024**2


def volume_rows(plan: Plan) -> Iterator[Row]:
    """A file of 5 GiB, which is sparse here and on the platform."""
    size = plan.size(5 * 1024, 128)
    with PlatformProcess(validate_responses=False) as platform:
        pin(platform.pid, plan.servers)
        with Worker("volume_work", platform.url, platform.api_key, core=plan.measured) as worker:
            result = worker.ask(size=size * MIB)
    for way in ("put", "get"):
        taken = result[way]
        details = {
            "MiB": size,
            "seconds": taken["wall"],
            "CPU seconds a GiB": taken["cpu"] * 1024 / size,
        }
        yield Row(f"volume, {way}: memory growth", taken["kib"] / 1024, "MiB", 64, details)
