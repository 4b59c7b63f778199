"""Spools records until it is killed: a new process, by fork, for each name on standard input.

Prints the process's number, then the id of each record that `append` has confirmed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time

from prime_core._async.api_client import AsyncAPIClient
from prime_traces import AsyncTraceSpool

WRITERS = 4


async def spool_for_ever(directory: str, name: str, fsync: str) -> None:
    numbers = itertools.count()
    async with AsyncTraceSpool(
        directory,
        fsync="always" if fsync == "always" else float(fsync),
        segment_bytes=4000,
        max_delay=0.02,
    ) as spool:

        async def write() -> None:
            for number in numbers:
                identity = f"{name}-{number}"
                record = {"id": identity, "timing": {"start": time.time()}, "text": "x" * 300}
                await spool.append(record)
                os.write(1, f"{identity}\n".encode())
                await asyncio.sleep(0.001)

        await asyncio.gather(*(write() for _ in range(WRITERS)))


def main() -> None:
    directory, fsync = sys.argv[1:]
    AsyncAPIClient("imports-what-is-imported-late")
    for line in sys.stdin:
        process = os.fork()
        if not process:
            asyncio.run(spool_for_ever(directory, line.strip(), fsync))
        print(f"process {process}", flush=True)
        os.waitpid(process, 0)
        print("ended", flush=True)


main()
