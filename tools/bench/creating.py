"""What creates cost in one process: `python -m bench.creating SIDE URL [CERTIFICATE]`."""

from __future__ import annotations

import asyncio
import sys

from bench.sides import Side, open_side
from bench.workers import Answer, Stopwatch, answer_questions, memory_kib


async def create_many(side: Side, count: int, in_flight: int) -> Answer:
    """Creates so many sandboxes, so many at a time."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await side.create()

    before, _ = memory_kib()
    watch = Stopwatch()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return {**watch.read(), "peak_kib": memory_kib()[1] - before}


def main(name: str, url: str, certificate: str | None = None) -> None:
    async def measure(count: int, in_flight: int, connections: int, runs: int) -> Answer:
        """Runs with one client: it is fresh in the first, warm in the others."""
        side = open_side(name, url, connections=connections, certificate=certificate)
        try:
            return {"runs": [await create_many(side, count, in_flight) for _ in range(runs)]}
        finally:
            await side.aclose()

    answer_questions(lambda **question: asyncio.run(measure(**question)))


if __name__ == "__main__":
    main(*sys.argv[1:])
