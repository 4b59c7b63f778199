"""Where an upload's batches come from: records or lines, plain or async, and files.

All that takes long happens in threads, one hop for a batch or for about a MiB of records.
"""

from __future__ import annotations

import collections
import os
import threading
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from prime_core.local_files import close_in_thread
from prime_core.sync import in_thread
from prime_traces.batches import BatchCutter, CutBatch, read_jsonl_lines, split_lines
from prime_traces.record_checks import check_line
from prime_traces.records import TraceRecord, encode_record

__all__ = ["BatchSource", "JsonlFile", "batch_source", "line_maker", "record_maker"]

T = TypeVar("T")

# Items of an async source are made into lines so many bytes at a time.
CHUNK = 1024 * 1024
MOST_ITEMS = 128

# Makes the lines of an item; the number is that of the first.
Maker = Callable[[T, int], Iterable[bytes]]


class JsonlFile(Iterable[bytes]):
    """The lines of a file, which is open while they are read and no longer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        return read_jsonl_lines(self._path)


class BatchSource(Protocol):
    """Batches, one after the other, each made when it is asked for."""

    async def next(self) -> CutBatch | None:
        """The next batch, or None behind the last."""

    async def aclose(self) -> None:
        """Lets go of what the batches are made of; waits, bounded, for a thread at work."""


def record_maker(line_format: str) -> Maker[TraceRecord]:
    """Makes a record a line."""
    return lambda record, number: (
        encode_record(record, line_format=line_format, line_number=number),
    )


def line_maker(line_format: str) -> Maker[bytes]:
    """Takes lines as they are, once they are checked."""

    def lines_of(chunk: bytes, number: int) -> Iterator[bytes]:
        for offset, line in enumerate(split_lines((chunk,))):
            if isinstance(line, bytes) and line and not line.isspace():
                check_line(line, line_format=line_format, line_number=number + offset)
            yield line

    return lines_of


def batch_source(
    items: Iterable[T] | AsyncIterable[T], make: Maker[T], cutter: BatchCutter
) -> BatchSource:
    """The batches of what a caller hands over; an async iterable is closed with them."""
    if isinstance(items, AsyncIterable):
        return _AsyncSource(items, make, cutter)
    return _PlainSource(items, make, cutter)


class _PlainSource(Generic[T]):
    """Batches of a plain iterable, which is read in threads, one at a time."""

    def __init__(self, items: Iterable[T], make: Maker[T], cutter: BatchCutter) -> None:
        self._closed = False
        self._lock = threading.Lock()
        self._batches = self._cut(items, make, cutter)

    async def next(self) -> CutBatch | None:
        return await in_thread(self._pull)()

    def _cut(
        self, items: Iterable[T], make: Maker[T], cutter: BatchCutter
    ) -> Generator[CutBatch, None, None]:
        for item in items:
            if self._closed:
                return
            yield from _added(item, make, cutter)
        if (last := cutter.close()) is not None:
            yield last.seal()

    def _pull(self) -> CutBatch | None:
        with self._lock:
            return None if self._closed else next(self._batches, None)

    async def aclose(self) -> None:
        self._closed = True
        await close_in_thread(self._drop)

    def _drop(self) -> None:
        with self._lock:
            self._batches.close()  # and with it a file that is read


class _AsyncSource(Generic[T]):
    """Batches of an async iterable, whose items are collected before a thread takes them."""

    def __init__(self, items: AsyncIterable[T], make: Maker[T], cutter: BatchCutter) -> None:
        self._items = items.__aiter__()
        self._make = make
        self._cutter = cutter
        self._ready: collections.deque[CutBatch] = collections.deque()
        self._failure: BaseException | None = None
        self._ended = False
        self._at_once = 1

    async def next(self) -> CutBatch | None:
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return None
            chunk = await self._collect()
            await in_thread(self._cut)(chunk)
        return self._ready.popleft()

    async def _collect(self) -> list[T]:
        chunk: list[T] = []
        size = 0
        try:
            while len(chunk) < self._at_once and size < CHUNK:
                item = await self._items.__anext__()
                chunk.append(item)
                size += len(item) if isinstance(item, bytes) else 0
        except StopAsyncIteration:
            self._ended = True
        except Exception as error:  # raised once what came before it has been cut
            self._failure = error
        return chunk

    def _cut(self, chunk: list[T]) -> None:
        largest = 1
        try:
            for item in chunk:
                before = self._cutter.taken
                self._ready.extend(_added(item, self._make, self._cutter))
                largest = max(largest, self._cutter.taken - before)
            if self._ended and (last := self._cutter.close()) is not None:
                self._ready.append(last.seal())
        except Exception as error:
            self._failure = error
        self._at_once = min(2 * self._at_once, MOST_ITEMS, CHUNK // largest + 1)

    async def aclose(self) -> None:
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()


def _added(item: T, make: Maker[T], cutter: BatchCutter) -> Iterator[CutBatch]:
    """Adds an item's lines to the batches, and gives those that are full."""
    for line in make(item, cutter.line_number + 1):
        if (full := cutter.add(line)) is not None:
            yield full.seal()
