"""Puts or gets, so that a test may interrupt it.

usage: transfer_program.py async|sync put|get FROM VOLUME TO
"""

from __future__ import annotations

import asyncio
import sys

import prime_train.transfers.hashing
from prime_train import AsyncTrainClient, TrainClient


def main() -> None:
    prime_train.transfers.hashing.PART = 5 * 1024 * 1024
    style, direction, source, volume, target = sys.argv[1:]
    if style == "async":
        asyncio.run(run(direction, source, volume, target))
        return
    with TrainClient() as client:
        if direction == "put":
            client.volumes.put(source, volume, target)
        else:
            client.volumes.get(volume, source, target)


async def run(direction: str, source: str, volume: str, target: str) -> None:
    async with AsyncTrainClient() as client:
        if direction == "put":
            await client.volumes.put(source, volume, target)
        else:
            await client.volumes.get(volume, source, target)


main()
