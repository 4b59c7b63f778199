"""A program under test: dispatches a training run and is interrupted meanwhile.

Usage: run_program.py {async|sync}

It prints ``working`` before the create.
"""

from __future__ import annotations

import asyncio
import sys

from prime_train import AsyncTrainClient, TrainClient, load_config

CONFIG = load_config(
    {
        "model": {"name": "Qwen/Qwen3-0.6B"},
        "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]}},
        "inference": {},
    }
)


async def run_async() -> None:
    async with AsyncTrainClient() as client:
        print("working", flush=True)
        await client.runs.create(CONFIG)
    raise AssertionError("the create was not interrupted")


def run_sync() -> None:
    with TrainClient() as client:
        print("working", flush=True)
        client.runs.create(CONFIG)
    raise AssertionError("the create was not interrupted")


if __name__ == "__main__":
    if sys.argv[1] == "async":
        asyncio.run(run_async())
    else:
        run_sync()
