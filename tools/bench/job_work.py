"""Running many background jobs in one process: `python -m bench.job_work URL`."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import sys
import time
from collections.abc import Iterator

from bench.platform_work import lags
from bench.sides import connect
from bench.workers import Answer, Stopwatch, answer_questions


@contextlib.contextmanager
def pauses() -> Iterator[list[float]]:
    """Collects how long each run of the garbage collector takes."""
    took: list[float] = []
    started = 0.0

    def note(phase: str, info: dict[str, int]) -> None:
        nonlocal started
        now = time.perf_counter()
        if phase == "start":
            started = now
        else:
            took.append(now - started)

    gc.callbacks.append(note)
    try:
        yield took
    finally:
        gc.callbacks.remove(note)


async def run_jobs(url: str, count: int, sandboxes: int) -> Answer:
    """Runs jobs in some sandboxes, all at once, and waits for every end."""
    with pauses() as collected:
        async with connect(url) as client, lags() as late:
            watch = Stopwatch()
            done = await asyncio.gather(
                *(
                    client.run_background_job(f"sbx_{number % sandboxes}", "true", timeout=None)
                    for number in range(count)
                )
            )
            took = watch.read()
    return {
        **took,
        "failed": sum(job.exit_code != 0 or job.stdout != "output\n" for job in done),
        "p99_ms": statistics.quantiles(late, n=100)[98] * 1000,
        "max_ms": max(late) * 1000,
        "collector_max_ms": max(collected, default=0.0) * 1000,
    }


def main(url: str) -> None:
    answer_questions(lambda **question: asyncio.run(run_jobs(url, **question)))


if __name__ == "__main__":
    main(*sys.argv[1:])
