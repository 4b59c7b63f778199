"""A program that spools; the arguments say in which manner, and where.

Prints the id of each record that `append` has confirmed.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time

from prime_traces import AsyncTraceSpool, TraceSpool

Record = dict[str, object]


def record(number: int) -> Record:
    return {"id": f"t{number}", "timing": {"start": time.time()}}


async def run_async(directory: str) -> None:
    async with AsyncTraceSpool(directory, max_delay=60) as spool:
        for number in itertools.count():
            await spool.append(record(number))
            print(f"t{number}", flush=True)


def run_sync(directory: str) -> None:
    with TraceSpool(directory, max_delay=60) as spool:
        for number in itertools.count():
            spool.append(record(number))
            print(f"t{number}", flush=True)


def forget(directory: str) -> None:
    """Ends without closing the spool, while it uploads."""
    spool = TraceSpool(directory, max_delay=0)
    for number in range(5):
        spool.append(record(number))
        print(f"t{number}", flush=True)


if __name__ == "__main__":
    way, directory = sys.argv[1:]
    if way == "async":
        asyncio.run(run_async(directory))
    else:
        {"sync": run_sync, "forget": forget}[way](directory)
