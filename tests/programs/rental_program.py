"""A program under test: rents a pod on a disk of its own, and is interrupted or ends itself.

Usage: rental_program.py {async|sync} {wait|body|exit|create|thread}

It prints ``working`` in the block, where it waits, raises an exception (``body``) or ends the
program (``exit``). ``create`` prints it before the creates, which are not waited for in a block;
``thread`` does so on a daemon thread.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time

from prime_compute import AsyncComputeClient, ComputeClient, DiskRequest, PodRequest

PLACE = "CANADA-1"
CLOUD = "n3-H100x1"
EXIT_CODE = 7


def begin(how: str) -> float:
    """Says that the block has begun; seconds to stay in it."""
    print("working", flush=True)
    if how == "body":
        raise ValueError("the body failed")
    if how == "exit":
        raise SystemExit(EXIT_CODE)
    return 60


async def run_async(how: str) -> None:
    async with AsyncComputeClient() as client:
        gpus = await client.availability.list_gpus(cloud_id=CLOUD, data_center_id=PLACE)
        disks = await client.availability.list_disks(data_center_id=PLACE)
        if how == "create":
            print("working", flush=True)
            await client.pods.create(PodRequest.from_offer(gpus.items[0]))
            raise AssertionError("the create was not interrupted")
        async with client.disks.session(DiskRequest.from_offer(disks.items[0], size=10)) as disk:
            request = PodRequest.from_offer(gpus.items[0], disks=[disk.id])
            async with client.pods.session(request):
                await asyncio.sleep(begin(how))


def run_sync(how: str) -> None:
    with ComputeClient() as client:
        gpus = client.availability.list_gpus(cloud_id=CLOUD, data_center_id=PLACE)
        disks = client.availability.list_disks(data_center_id=PLACE)
        if how == "create":
            print("working", flush=True)
            client.pods.create(PodRequest.from_offer(gpus.items[0]))
            raise AssertionError("the create was not interrupted")
        with client.disks.session(DiskRequest.from_offer(disks.items[0], size=10)) as disk:
            request = PodRequest.from_offer(gpus.items[0], disks=[disk.id])
            with client.pods.session(request):
                time.sleep(begin(how))


if __name__ == "__main__":
    style, how = sys.argv[1:]
    if how == "thread":
        threading.Thread(target=run_sync, args=("create",), daemon=True).start()
        time.sleep(60)
    elif style == "async":
        asyncio.run(run_async(how))
    else:
        run_sync(how)
