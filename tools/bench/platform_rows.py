"""Work on the local platform: throttled creates, waiters, a fleet."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Plan
from bench.reports import Row
from bench.workers import Answer, Worker, pin
from prime_local import PlatformProcess

__all__ = ["fleet_rows", "throttled_rows", "waiter_rows"]

CREATES_PER_SECOND = 192 / 10  # documented
# Seconds on the platform's clock, which is advanced once all wait.
START_DELAY = 1000.0


def throttled_rows(plan: Plan) -> Iterator[Row]:
    """Creates at the enforced burst."""
    count = plan.size(1000, 30)
    result = on_platform(plan, "throttled", (), count=count)
    details = {
        "creates": count,
        "requests": result["requests"],
        "429s": result["refused"],
        "seconds": result["wall"],
    }
    pace = result["wall"] * CREATES_PER_SECOND / count
    yield Row("throttled creates: wall", pace, "x the documented pace", 1.12, details)


def waiter_rows(plan: Plan) -> Iterator[Row]:
    """Many waiters for sandboxes that take their time."""
    count = plan.size(10_000, 500)
    result = on_platform(
        plan, "waiters", unlimited(), count=count, seconds=plan.size(20, 1), start_delay=START_DELAY
    )
    details = {
        "waiters": count,
        "status calls a second": result["calls_per_second"],
        "share of a core": result["cpu_share"],
    }
    yield Row("waiters: loop lag, p99", result["p99_ms"], "ms", 20, details)
    phases = {
        "in the first second": result["first_max_ms"],
        "while waiting": result["waiting_max_ms"],
        "when all start": result["end_max_ms"],
    }
    yield Row("waiters: loop lag, max", result["max_ms"], "ms", 20, phases)


def fleet_rows(plan: Plan) -> Iterator[Row]:
    """A fleet from its first create to its last confirmed delete."""
    count = plan.size(2000, 50)
    result = on_platform(plan, "fleet", unlimited(), count=count, start_delay=START_DELAY)
    yield Row(
        "fleet: requests a sandbox, without commands",
        result["requests_each"],
        "requests",
        4,
        {"sandboxes": count, "failed": result["failed"], "left alive": result["live"]},
    )
    yield Row("fleet: memory a sandbox while waiting", result["kib_each"], "KiB", 20)
    yield Row("fleet: wall", result["wall"], "s", None, {"created after": result["created_after"]})


def unlimited() -> tuple[str, ...]:
    return "--no-limits", "--start-delay", str(START_DELAY)


def on_platform(plan: Plan, kind: str, options: tuple[str, ...], **question: float) -> Answer:
    """Asks a worker that has a platform to itself."""
    with PlatformProcess(options, validate_responses=False) as platform:
        pin(platform.pid, plan.servers)
        with Worker(
            "platform_work", kind, platform.url, platform.api_key, core=plan.measured
        ) as worker:
            return worker.ask(**question)
