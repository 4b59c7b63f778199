"""Writing to what a process reads, as fast as it reads that."""

from __future__ import annotations

import asyncio
import os
from io import FileIO


async def write_all(file: FileIO, data: bytes, exited: asyncio.Future[int]) -> None:
    """Write to a process's pipe or terminal; to be called by one writer at a time.

    Args:
        file: the outer end.
        data: what to write.
        exited: done once the process has ended.

    Raises:
        BrokenPipeError: the process has ended or closed its end.
    """
    descriptor = file.fileno()
    os.set_blocking(descriptor, False)
    left = memoryview(data)
    while left:
        if exited.done():
            raise BrokenPipeError
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            await _writable(descriptor, exited)


async def _writable(descriptor: int, exited: asyncio.Future[int]) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[int] = loop.create_future()

    def on_ready() -> None:
        loop.remove_writer(descriptor)
        ready.set_result(descriptor)

    loop.add_writer(descriptor, on_ready)
    try:
        await asyncio.wait({ready, exited}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_writer(descriptor)
