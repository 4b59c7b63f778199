"""JSONL lines cut into the batches that are uploaded: the same lines give the same batches."""

from __future__ import annotations

import collections
import hashlib
import io
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from prime_core.sync import in_thread
from prime_traces.errors import TraceTooLargeError

__all__ = [
    "DEFAULT_TARGET_BATCH_BYTES",
    "MAX_BATCH_BYTES",
    "MAX_BATCH_LINES",
    "MAX_LINE_BYTES",
    "Batch",
    "BatchCutter",
    "CutBatch",
    "Lines",
    "OpenBatch",
    "aiter_batches",
    "iter_batches",
    "read_jsonl_lines",
    "split_lines",
]

Lines: TypeAlias = Iterable[bytes] | AsyncIterable[bytes]

MIB = 1024 * 1024
# What is freed in pieces of this size goes back to the system; with larger ones, each thread's
# part of the C library's heap keeps tens of MiB.
PIECE = MIB // 4
# Documented, both of them uncompressed.
MAX_BATCH_BYTES = 256 * MIB
MAX_LINE_BYTES = 64 * MIB
MAX_BATCH_LINES = 1_000_000
# A gateway before the service takes 32 MiB a request.
DEFAULT_TARGET_BATCH_BYTES = 30 * MIB


@dataclass(frozen=True)
class Batch:
    """Lines that are uploaded as one: all of them are stored, or none.

    Attributes:
        data: the lines as they came, each with its line feed, which the last may lack.
        digest: SHA-256 of ``data`` in lower-case hex; also the id of the upload.
        num_lines: how many there are.
        first_line_number: number of the first, from 1, in the input.
        blanks: blank lines that were left out behind the first: pairs of how many lines of the
            batch stand before them and how many they are.
    """

    data: bytes = field(repr=False)
    digest: str
    num_lines: int
    first_line_number: int
    blanks: tuple[tuple[int, int], ...] = ()

    @property
    def idempotency_key(self) -> str:
        """The key that the batch is uploaded with; it is stored once, however often it is sent."""
        return f"sha256:{self.digest}"

    @property
    def size(self) -> int:
        """Bytes, uncompressed."""
        return len(self.data)

    def line_number(self, line: int) -> int:
        """The number in the input of a line of the batch.

        Args:
            line: which of the batch's lines, from 1.
        """
        skipped = sum(count for before, count in self.blanks if before < line)
        return self.first_line_number + line - 1 + skipped


@dataclass
class CutBatch:
    """A batch in pieces, which its upload takes apart: whole ones fragment the memory.

    Attributes:
        pieces: its lines, some to a piece.
        size: bytes of all pieces.

    The others are those of `Batch`.
    """

    pieces: collections.deque[bytes]
    size: int
    digest: str
    num_lines: int
    first_line_number: int
    blanks: tuple[tuple[int, int], ...]

    def whole(self) -> Batch:
        """The same as users see it."""
        data = b"".join(self.pieces)
        return Batch(data, self.digest, self.num_lines, self.first_line_number, self.blanks)

    def without_data(self) -> Batch:
        """What is known of it besides its lines."""
        return Batch(b"", self.digest, self.num_lines, self.first_line_number, self.blanks)


class OpenBatch:
    """A batch that lines are still added to."""

    def __init__(self, first_line_number: int) -> None:
        self._pieces: collections.deque[bytes] = collections.deque()
        self._piece = io.BytesIO()  # its value is taken out without a copy
        self._first = first_line_number
        self._blanks: list[tuple[int, int]] = []
        self._ended = True
        self.size = 0
        self.lines = 0

    def add(self, line: bytes, blanks: int) -> None:
        if blanks and self.lines:
            self._blanks.append((self.lines, blanks))
        if not self._ended:  # two lines, not one
            self.size += self._piece.write(b"\n")
        self._ended = line.endswith(b"\n")
        self.size += self._piece.write(line)
        self.lines += 1
        if self._piece.tell() >= PIECE:
            self._pieces.append(self._piece.getvalue())
            self._piece = io.BytesIO()

    def seal(self) -> CutBatch:
        """Closes it and makes its digest, which takes long."""
        self._pieces.append(self._piece.getvalue())
        digest = hashlib.sha256()
        for piece in self._pieces:
            digest.update(piece)
        blanks = tuple(self._blanks)
        return CutBatch(
            self._pieces, self.size, digest.hexdigest(), self.lines, self._first, blanks
        )


class BatchCutter:
    """Takes lines one after the other and gives the batches that they fill.

    Args:
        target_bytes: most bytes of a batch, at most 256 MiB; a longer line has its own.
        max_line_bytes: most bytes of a line, without its line feed.
        max_lines: most lines of a batch.

    Raises:
        ValueError: a number out of its range.
    """

    def __init__(
        self,
        *,
        target_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_lines: int = MAX_BATCH_LINES,
    ) -> None:
        if not isinstance(target_bytes, int) or not 0 < target_bytes <= MAX_BATCH_BYTES:
            raise ValueError(
                f"the target is from 1 to {MAX_BATCH_BYTES} bytes a batch, not {target_bytes!r}"
            )
        if max_line_bytes < 1 or max_lines < 1:
            raise ValueError("a batch holds at least one line of at least one byte")
        self._target = target_bytes
        self._max_line = max_line_bytes
        self._max_lines = max_lines
        self._open: OpenBatch | None = None
        self._blanks = 0
        self.line_number = 0  # of the line that was taken last
        self.taken = 0  # bytes of all lines so far

    def add(self, line: bytes) -> OpenBatch | None:
        """Takes a line, with its line feed if it has one, and gives the batch before it.

        Raises:
            TraceTooLargeError: the line is too long; it is not taken.
            TypeError: it is not bytes.
        """
        if not isinstance(line, bytes):
            raise TypeError(f"a line is bytes, not {type(line).__name__}; open files with 'rb'")
        self.line_number += 1
        if not line or line.isspace():
            self._blanks += 1
            return None
        if len(line) > self._max_line:
            size = len(line.rstrip(b"\n"))
            if size > self._max_line:
                self.line_number -= 1
                raise TraceTooLargeError(self.line_number + 1, size, self._max_line)
        full = None
        current = self._open
        if current is not None and (
            current.size + len(line) > self._target or current.lines >= self._max_lines
        ):
            full, current = current, None
        if current is None:
            current = self._open = OpenBatch(self.line_number)
        current.add(line, self._blanks)
        self.taken += len(line)
        self._blanks = 0
        return full

    def close(self) -> OpenBatch | None:
        """Gives what is left, if anything."""
        last, self._open = self._open, None
        return last


def split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as they are; what holds several of them is divided behind each line feed."""
    for chunk in chunks:
        start = 0
        # A line feed at the very end divides nothing.
        while (
            isinstance(chunk, bytes) and (end := chunk.find(b"\n", start, len(chunk) - 1) + 1) > 0
        ):
            yield chunk[start:end]
            start = end
        yield chunk[start:] if start else chunk


def iter_batches(
    lines: Iterable[bytes],
    *,
    target_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_lines: int = MAX_BATCH_LINES,
) -> Iterator[Batch]:
    """Cuts JSONL lines into batches, as they are asked for.

    The same lines under the same limits always give the same batches, so that an upload that is
    begun anew stores nothing twice.

    Follows the documented page "api-reference/traces/ingestion/upload-traces".

    Args:
        lines: bytes, each with its line feed, which the last may lack; they are not changed. Blank
            ones are left out but counted.
        target_bytes: most bytes of a batch, at most 256 MiB; a longer line has its own.
        max_line_bytes: most bytes of a line, without its line feed.
        max_lines: most lines of a batch.

    Raises:
        TraceTooLargeError: a line is too long, once its batch is asked for.
        ValueError: a number out of its range.
    """
    cutter = BatchCutter(
        target_bytes=target_bytes, max_line_bytes=max_line_bytes, max_lines=max_lines
    )

    def batches() -> Iterator[Batch]:
        for line in split_lines(lines):
            if (full := cutter.add(line)) is not None:
                yield full.seal().whole()
        if (last := cutter.close()) is not None:
            yield last.seal().whole()

    return batches()


def aiter_batches(
    lines: Lines,
    *,
    target_bytes: int = DEFAULT_TARGET_BATCH_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_lines: int = MAX_BATCH_LINES,
) -> AsyncIterator[Batch]:
    """As `iter_batches`, for lines that may come from an async source.

    Follows the documented page "api-reference/traces/ingestion/upload-traces".

    Args:
        lines: as for `iter_batches`. A plain iterable is read in a thread; an async one is closed
            with the batches.
        target_bytes: as for `iter_batches`.
        max_line_bytes: as for `iter_batches`.
        max_lines: as for `iter_batches`.

    Raises:
        TraceTooLargeError: as for `iter_batches`.
        ValueError: a number out of its range.
    """
    if not isinstance(lines, AsyncIterable):
        batches = iter_batches(
            lines, target_bytes=target_bytes, max_line_bytes=max_line_bytes, max_lines=max_lines
        )
        return _in_thread(batches)
    cutter = BatchCutter(
        target_bytes=target_bytes, max_line_bytes=max_line_bytes, max_lines=max_lines
    )
    return _cut(lines, cutter)


async def _in_thread(batches: Iterator[Batch]) -> AsyncIterator[Batch]:
    pull = in_thread(lambda: next(batches, None))
    while (batch := await pull()) is not None:
        yield batch


async def _cut(lines: AsyncIterable[bytes], cutter: BatchCutter) -> AsyncIterator[Batch]:
    source = lines.__aiter__()
    whole = in_thread(lambda batch: batch.seal().whole())
    try:
        async for chunk in source:
            for line in split_lines([chunk]):
                if (full := cutter.add(line)) is not None:
                    yield await whole(full)
        if (last := cutter.close()) is not None:
            yield await whole(last)
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


def read_jsonl_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file, as they are, one at a time.

    Args:
        path: the file. A line is what a line feed ends, whatever else it holds.

    Raises:
        OSError: it can't be read.
        TraceTooLargeError: a line is longer than the service takes; it was not kept in memory.
    """
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                size = len(line)
                while rest := file.readline(MIB):
                    size += len(rest.rstrip(b"\n"))
                    if rest.endswith(b"\n"):
                        break
                raise TraceTooLargeError(number, size, MAX_LINE_BYTES)
            yield line
