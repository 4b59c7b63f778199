"""Transfers of one file, in one process: `python -m bench.volume_work URL API_KEY`."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable
from pathlib import Path

from bench.workers import Answer, Stopwatch, answer_questions, memory_kib
from prime_core import AsyncAPIClient, Config
from prime_train import AsyncTrainClient

SMALL = 1024**2


async def transfer(size: int, folder: Path) -> Answer:
    """Puts a file and gets it, and says what each took; what the first calls load is no growth."""
    config = Config(api_key=sys.argv[2], base_url=sys.argv[1])
    async with AsyncTrainClient(client=AsyncAPIClient(config=config)) as client:
        await client.volumes.create("bench", "1Ti")
        taken: Answer = {}
        for bytes_ in (SMALL, size):
            file = folder / "file"
            file.touch()
            os.truncate(file, bytes_)
            taken["put"] = await measured(client.volumes.put(file, "bench", "file"))
            file.unlink()
            taken["get"] = await measured(client.volumes.get("bench", "file", file))
            file.unlink()
    return taken


async def measured(work: Awaitable[object]) -> Answer:
    before = memory_kib()[1]
    watch = Stopwatch()
    await work
    return {**watch.read(), "kib": max(memory_kib()[1] - before, 1)}


def handler(size: int) -> Answer:
    with tempfile.TemporaryDirectory(prefix="prime-bench-") as folder:
        os.environ["HOME"] = folder  # for the journals
        return asyncio.run(transfer(size, Path(folder)))


answer_questions(handler)
