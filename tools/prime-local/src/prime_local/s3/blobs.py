"""Bytes of objects in files: each written once, sparse where it is zeros, and read in pieces."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from prime_local.tasks import TaskSet

PIECE_BYTES = 1024 * 1024
_ZEROS = bytes(PIECE_BYTES)
# How one file of an object is told: its name and its size.
Segment = tuple[str, int]


class BlobWriter:
    """Writes a file; used in a thread.

    Args:
        path: the file, which is made.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.size = 0
        self._file = path.open("xb")

    def write(self, piece: bytes) -> None:
        """Add at most 1 MiB; zeros alone leave a hole.

        Raises:
            OSError: the disk is full.
        """
        if piece != _ZEROS[: len(piece)]:
            self._file.seek(self.size)
            self._file.write(piece)
        self.size += len(piece)

    def close(self) -> None:
        with self._file:
            self._file.truncate(self.size)


class Blobs:
    """The files of a folder.

    Args:
        folder: theirs alone; it is made when first needed.
        tasks: delete them.
    """

    def __init__(self, folder: Path, tasks: TaskSet) -> None:
        self._folder = folder
        self._tasks = tasks
        self._readers: Counter[str] = Counter()
        self._doomed: set[str] = set()

    def begin(self) -> BlobWriter:
        """Make a file; blocks."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return BlobWriter(self._folder / uuid.uuid4().hex)

    def copy(self, name: str) -> str:
        """Give the bytes of a file to another one, which lives on its own; returns its name."""
        other = uuid.uuid4().hex
        os.link(self._folder / name, self._folder / other)
        return other

    async def read(
        self, segments: Sequence[Segment], start: int, length: int
    ) -> AsyncGenerator[bytes, None]:
        """Yield a range of the bytes that some files hold one after another.

        They stay readable to the end, though they be discarded meanwhile.
        """
        with self._held({name for name, _ in segments}):
            for name, offset, size in _cut(segments, start, length):
                with (self._folder / name).open("rb", buffering=0) as file:
                    end = offset + size
                    while offset < end:
                        wanted = min(PIECE_BYTES, end - offset)
                        piece = await asyncio.to_thread(os.pread, file.fileno(), wanted, offset)
                        offset += len(piece)
                        yield piece

    def discard(self, names: Collection[str]) -> None:
        """Delete files soon, once nobody reads them any more."""
        held = {name for name in names if name in self._readers}
        self._doomed |= held
        if free := set(names) - held:
            self._tasks.start(asyncio.to_thread(self._unlink, free))

    async def keep_only(self, names: Collection[str]) -> None:
        """Delete what an earlier platform left without knowing it."""
        if self._folder.is_dir():
            strays = {entry.name for entry in self._folder.iterdir()} - set(names)
            await asyncio.to_thread(self._unlink, strays)

    def _unlink(self, names: Iterable[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _held(self, names: Collection[str]) -> Iterator[None]:
        self._readers.update(names)
        try:
            yield
        finally:
            self._readers.subtract(names)
            free = [name for name in names if not self._readers[name]]
            for name in free:
                del self._readers[name]
            self.discard(self._doomed.intersection(free))
            self._doomed.difference_update(free)


def _cut(segments: Sequence[Segment], start: int, length: int) -> Iterator[tuple[str, int, int]]:
    """Yield the part of each file that a range covers: its name, offset and size."""
    end, first = start + length, 0
    for name, size in segments:
        offset = max(start - first, 0)
        until = min(end - first, size)
        if offset < until:
            yield name, offset, until - offset
        first += size
