"""Background jobs in many sandboxes at once, against a stub server."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Plan
from bench.reports import Row
from bench.workers import Worker

__all__ = ["job_rows"]

SECONDS = 25.0  # of a job, on average


def job_rows(plan: Plan) -> Iterator[Row]:
    """From the first launch to the last output."""
    count, sandboxes = plan.size(10_000, 200), plan.size(1000, 20)
    seconds = plan.size(round(SECONDS), 1)
    with Worker("job_stub", str(seconds), core=plan.servers) as stub:
        url = stub.ask()["url"]
        with Worker("job_work", url, core=plan.measured) as worker:
            result = worker.ask(count=count, sandboxes=sandboxes)
        asked = stub.ask()
    details = {
        "jobs": count,
        "sandboxes": sandboxes,
        "failed": result["failed"],
        "status calls": asked["looks"],
        "a second": asked["looks"] / result["wall"],
        "commands": asked["commands"],
        "seconds": result["wall"],
        "share of a core": result["cpu"] / result["wall"],
    }
    yield Row("jobs: status calls a job", asked["looks"] / count, "calls", 0.15, details)
    # No target: the longest are the start of all jobs at once, and the garbage collector.
    lags = {"max": result["max_ms"], "the collector's longest run": result["collector_max_ms"]}
    yield Row("jobs: loop lag, p99", result["p99_ms"], "ms", None, lags)
