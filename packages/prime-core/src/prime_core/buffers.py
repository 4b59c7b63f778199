"""A bounded buffer between a stream that must go on and readers who may not come."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Protocol

from prime_core.deadlines import timeout_at
from prime_core.spill import SpillFile

__all__ = ["ByteBuffer", "ByteReader", "Gap"]

logger = logging.getLogger("prime_core")

MOST_AT_ONCE = 256 * 1024
# A reader that takes nothing for so long has been left lying about.
READER_PATIENCE = 60.0
# Whoever has just begun a stream gets so long to begin to read it, too.
FIRST_READER_PATIENCE = 0.5


@dataclass(frozen=True)
class Gap:
    """A place in a stream where bytes are missing.

    Attributes:
        position: how many bytes are handed out before it.
        lost: how many are missing; None where nobody knows, or whether any are.
    """

    position: int
    lost: int | None


class Lent(Protocol):
    """Bytes that were taken and not handed out."""

    def give_back(self) -> bytes: ...


class ByteBuffer:
    """The bytes that have arrived and were not taken yet.

    While somebody reads, a full buffer holds its writer up. While nobody does, its oldest
    bytes make room for new ones, and a `Gap` says so; the first time a reader has half a second
    to come. With a file, nothing is held up or lost.
    It lives on one event loop; readers may be dropped anywhere.

    Args:
        limit: bytes kept in memory, at least 1.
        folder: where a temporary file takes what exceeds the limit; None for no file.
    """

    def __init__(self, limit: int, folder: str | None = None) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._file = None if folder is None else SpillFile(folder)
        self._taken = 0
        self._gaps: list[Gap] = []
        self._ended = False
        self._failure: BaseException | None = None
        self._arrived = asyncio.Event()
        self._moved = asyncio.Event()
        self._readers: set[weakref.ref[ByteReader]] = set()
        self._blocked = 0
        self._last_take = 0.0
        self._unread = True  # whether a first reader may be on its way
        self._lent: Lent | None = None

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Where bytes are missing, in order."""
        return tuple(self._gaps)

    def reader(self) -> ByteReader:
        """A reader from here on; while one lives, the writer waits for it."""
        reader = ByteReader(self)
        self._readers.add(weakref.ref(reader, self._forget_soon))
        self._last_take = self._loop.time()
        self._unread = False
        self._moved.set()
        return reader

    def put_nowait(self, data: bytes) -> bool:
        """Adds bytes if there is room for them in memory, and returns whether there was."""
        if self._ended:
            return True
        full = self._size and self._size + len(data) > self._limit
        if full or (self._file is not None and self._file.size):
            return False
        self._pieces.append(data)
        self._size += len(data)
        self._arrived.set()
        return True

    async def put(self, data: bytes) -> None:
        """Adds bytes, as soon as there is room for them; to be called by one writer."""
        while not self.put_nowait(data):
            if self._file is not None:
                await self._spill(self._file, data)
                return
            if not await self._reader_moves():
                self._drop(len(data))

    def mark_gap(self, lost: int | None = None) -> None:
        """Notes that bytes are missing behind those that have arrived."""
        spilled = 0 if self._file is None else self._file.size
        self._note(Gap(self._taken + self._size + spilled, lost))

    def end(self, failure: BaseException | None = None) -> None:
        """Nothing more will arrive; a failure is raised to whoever has taken the rest."""
        if not self._ended:
            self._ended, self._failure = True, failure
            self._arrived.set()
            self._moved.set()

    async def discard(self) -> None:
        """Ends it and lets go of what was not taken."""
        self.end()
        self._lent = None
        self._pieces.clear()
        self._size = 0
        if self._file is not None:
            file, self._file = self._file, None
            await file.close()

    async def take(self) -> tuple[bytes, bool]:
        """Waits for bytes; none at the end.

        Returns:
            At most 256 KiB of what has arrived, and whether a gap lies right before it.

        Raises:
            BaseException: the failure that ended it.
        """
        self._take_back()
        self._blocked += 1
        try:
            while True:
                self._arrived.clear()
                piece, behind_gap = self._pop()
                if not piece and self._file is not None and self._file.size:
                    piece = await self._file.read(self._most_now())
                if piece:
                    self._taken += len(piece)
                    self._moved.set()
                    return piece, behind_gap
                if self._ended:
                    if self._failure is not None:
                        raise self._failure
                    return b"", False
                await self._arrived.wait()
        finally:
            self._blocked -= 1
            self._last_take = self._loop.time()

    def lend(self, lent: Lent) -> None:
        """Notes that somebody holds bytes which he may not hand out."""
        self._lent = lent

    def withdraw(self, lent: Lent) -> None:
        """Leaves them to him after all."""
        if self._lent is lent:
            self._lent = None

    def _take_back(self) -> None:
        lent, self._lent = self._lent, None
        data = b"" if lent is None else lent.give_back()
        if data:
            self._pieces.appendleft(data)
            self._size += len(data)
            self._taken -= len(data)

    def _pop(self) -> tuple[bytes, bool]:
        behind_gap = any(gap.position == self._taken for gap in self._gaps)
        most = self._most_now()
        found: list[bytes] = []
        while self._pieces and most > 0:
            piece = self._pieces.popleft()
            if len(piece) > most:
                self._pieces.appendleft(piece[most:])
                piece = piece[:most]
            found.append(piece)
            most -= len(piece)
            self._size -= len(piece)
        return (found[0] if len(found) == 1 else b"".join(found)), behind_gap

    def _most_now(self) -> int:
        """How many bytes may be taken together: not across a gap."""
        ahead = (gap.position - self._taken for gap in self._gaps if gap.position > self._taken)
        return min(MOST_AT_ONCE, next(ahead, MOST_AT_ONCE))

    async def _spill(self, file: SpillFile, data: bytes) -> None:
        try:
            await file.append(data)
        except OSError as error:
            logger.warning("Output that nobody reads can't be kept in a file: %s", error)
            self._note(Gap(self._taken + self._size + file.size, len(data)))
        self._arrived.set()

    async def _reader_moves(self) -> bool:
        """Waits until a reader has come or taken something; False when there is none."""
        until = self._last_take + READER_PATIENCE
        if self._unread:
            self._unread = False
            until = self._loop.time() + FIRST_READER_PATIENCE
        elif not self._readers or (not self._blocked and self._loop.time() >= until):
            return False
        self._moved.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            async with timeout_at(until):
                await self._moved.wait()
        return True

    def _drop(self, size: int) -> None:
        """Lets the oldest bytes go, to make room for so many new ones."""
        lost = 0
        while self._pieces and self._size + size > self._limit:
            piece = self._pieces.popleft()
            self._size -= len(piece)
            lost += len(piece)
        later = [gap for gap in self._gaps if gap.position > self._taken]
        self._gaps = [gap for gap in self._gaps if gap.position <= self._taken]
        self._note(Gap(self._taken, lost))
        for gap in later:
            self._note(Gap(max(self._taken, gap.position - lost), gap.lost))

    def _note(self, gap: Gap) -> None:
        if self._gaps and self._gaps[-1].position == gap.position:
            before = self._gaps.pop().lost
            known = before is not None and gap.lost is not None
            gap = replace(gap, lost=(before or 0) + (gap.lost or 0) if known else None)
        self._gaps.append(gap)

    def _forget_soon(self, reader: weakref.ref[ByteReader]) -> None:
        # Readers of sync clients are dropped on other threads.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._forget, reader)

    def _forget(self, reader: weakref.ref[ByteReader]) -> None:
        self._readers.discard(reader)
        self._moved.set()


class ByteReader(AsyncIterator[bytes]):
    """Takes the bytes of a buffer, in pieces of at most 256 KiB.

    Attributes:
        behind_gap: whether bytes are missing right before the piece that it gave last.
    """

    def __init__(self, buffer: ByteBuffer) -> None:
        self._buffer = buffer
        self._closed = False
        self.behind_gap = False

    async def __anext__(self) -> bytes:
        if not self._closed:
            piece, self.behind_gap = await self._buffer.take()
            if piece:
                return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stops reading: the writer does not wait for it any more."""
        if not self._closed:
            self._closed = True
            for reference in list(self._buffer._readers):
                if reference() is self:
                    self._buffer._forget(reference)
