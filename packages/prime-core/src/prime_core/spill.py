"""A temporary file that takes what would not fit into memory, and gives it back in order."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from typing import IO

__all__ = ["SpillFile"]


class SpillFile:
    """Bytes in an unnamed file; all access to it happens on threads.

    Args:
        folder: where the file is made, once it is needed.

    Attributes:
        size: bytes that were appended and not read yet.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()
        self._reading = asyncio.Lock()
        self._start = 0
        self._end = 0

    @property
    def size(self) -> int:
        return self._end - self._start

    async def append(self, data: bytes) -> None:
        """Adds bytes at the end.

        Raises:
            OSError: the file can't be made or written.
        """
        await asyncio.to_thread(self._append, data)

    async def read(self, most: int) -> bytes:
        """Takes bytes from the start; a cancelled read takes none."""
        async with self._reading:
            data = await asyncio.to_thread(self._read, self._start, min(most, self.size))
            self._start += len(data)
            return data

    async def close(self) -> None:
        """Deletes the file."""
        await asyncio.to_thread(self._close)

    def _append(self, data: bytes) -> None:
        with self._lock:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115  # closed by `close`
                    dir=self._folder, buffering=0
                )
            if self._start == self._end:
                # All was read: the disk's space is given back.
                self._file.truncate(0)
                self._start = self._end = 0
            self._file.seek(self._end)
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            self._end += len(data)

    def _read(self, start: int, size: int) -> bytes:
        with self._lock:
            if self._file is None:
                return b""
            self._file.seek(start)
            return self._file.read(size)

    def _close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._start = self._end = 0
