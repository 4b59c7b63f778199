"""The files that records wait in: one that is open and grows, and sealed ones."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prime_traces.spool.framing import Header, Scan, framed_size, header_frame, record_frames, scan

__all__ = [
    "DISK_FULL",
    "Content",
    "OpenSegment",
    "Place",
    "Segment",
    "lines_digest",
    "read_sealed",
    "sync_folder",
    "write_file",
    "write_sealed",
]

_SEALED = re.compile(r"(\d{10}(?:-\d+)*)\.(\d+)\.([0-9a-f]{64})\.sealed")
DISK_FULL = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


class Place(tuple[int, ...]):
    """Where a segment stands in the order of all: (12,) before its parts (12, 1) and (12, 2)."""

    @classmethod
    def parse(cls, name: str) -> Place:
        return cls(int(part) for part in name.split("-"))

    def part(self, number: int) -> Place:
        return Place((*self, number))

    @property
    def wholes(self) -> list[Place]:
        """Those that it is a part of."""
        return [Place(self[:length]) for length in range(1, len(self))]

    def __str__(self) -> str:
        return "-".join([f"{self[0]:010d}", *map(str, self[1:])])


@dataclass(frozen=True, order=True)
class Segment:
    """A sealed segment: one upload.

    Attributes:
        place: in the order of all segments.
        count: its records.
        digest: SHA-256 of its lines, in hex.
        size: bytes of its file.
    """

    place: Place
    count: int
    digest: str
    size: int

    @property
    def name(self) -> str:
        return f"{self.place}.{self.count}.{self.digest}.sealed"

    @classmethod
    def parse(cls, name: str, size: int) -> Segment | None:
        """The segment of a file's name, None for another file."""
        found = _SEALED.fullmatch(name)
        return found and cls(Place.parse(found[1]), int(found[2]), found[3], size)


class _Mark(NamedTuple):
    """A state of an open segment that it can go back to."""

    end: int
    records: int
    body: int
    digest: hashlib._Hash


class OpenSegment:
    """The segment that is being filled; made by `create`, or by `left` after a crash.

    Attributes:
        place: in the order of all segments.
        closed: nothing can be added any more; `seal` can be tried again.
        since: monotonic time of the first record, None before that.
    """

    def __init__(self, folder: str, place: Place, fd: int, seed: int, mark: _Mark) -> None:
        self.place = place
        self.closed = False
        self.since: float | None = None
        self._folder = folder
        self._path = _open_path(folder, place)
        self._fd = fd
        self._seed = seed
        self._mark = mark
        self._named = False
        self._sealed: Segment | None = None

    @classmethod
    def create(cls, folder: str, place: Place, header: Header) -> OpenSegment:
        """Makes an empty one in a spool's directory.

        Raises:
            OSError: it can't be made; then nothing of it is left.
        """
        data, seed = header_frame(header)
        path = _open_path(folder, place)
        fd = os.open(path, _NEW, 0o600)
        try:
            _write_all(fd, data)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise
        return cls(folder, place, fd, seed, _Mark(len(data), 0, 0, hashlib.sha256()))

    @classmethod
    def left(cls, folder: str, place: Place, found: Scan) -> OpenSegment:
        """The one that a crash left, without its torn end, to be sealed."""
        fd = os.open(_open_path(folder, place), os.O_RDWR)
        body = sum(map(len, found.lines))
        count = len(found.lines) + len(found.damaged)
        mark = _Mark(found.end, count, body, _digest(found.lines))
        return cls(folder, place, fd, found.seed, mark)

    @property
    def size(self) -> int:
        """Bytes of its file."""
        return self._mark.end

    @property
    def count(self) -> int:
        """Its records."""
        return self._mark.records

    @property
    def body(self) -> int:
        """Bytes of its records' lines."""
        return self._mark.body

    def add(self, lines: Sequence[bytes], *, sync: bool) -> None:
        """Adds records: all of them or, when that fails, none.

        Args:
            lines: each with its line feed.
            sync: whether they are to survive a power cut from here on.

        Raises:
            OSError: they could not be written.
        """
        before = self._mark
        data = record_frames(lines, before.end, self._seed)
        digest = before.digest.copy()
        for line in lines:
            digest.update(line)
        try:
            _write_all(self._fd, data)
            if not os.fstat(self._fd).st_nlink:
                self.closed = True
                raise FileNotFoundError(errno.ENOENT, "somebody removed the segment's file")
            self._mark = _Mark(
                before.end + len(data),
                before.records + len(lines),
                before.body + len(data) - sum(framed_size(b"") for _ in lines),
                digest,
            )
            if sync:
                self.sync()
        except OSError:
            self._go_back(before)
            raise
        if self.since is None:
            self.since = time.monotonic()

    def _go_back(self, mark: _Mark) -> None:
        self._mark = mark
        try:
            os.ftruncate(self._fd, mark.end)
            os.lseek(self._fd, mark.end, os.SEEK_SET)
        except OSError:
            self.closed = True  # and `seal` tries it again

    def sync(self) -> None:
        """Makes sure that what it holds survives a power cut."""
        os.fsync(self._fd)
        if not self._named:
            sync_folder(self._folder)
            self._named = True

    def seal(self) -> Segment:
        """Ends it: what it holds, and its name with the digest, are on disk from here on.

        Raises:
            OSError: that could not be made sure of; it can be tried again.
        """
        self.closed = True
        mark = self._mark
        if self._fd >= 0:
            os.ftruncate(self._fd, mark.end)
            os.fsync(self._fd)
            self.abandon()  # before the renaming, which Windows refuses for an open file
        segment = Segment(self.place, mark.records, mark.digest.hexdigest(), mark.end)
        if self._sealed is None:
            os.rename(self._path, os.path.join(self._folder, segment.name))
            self._sealed = segment
        sync_folder(self._folder)
        return segment

    def abandon(self) -> None:
        """Closes its file and leaves it as it is."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> None:
        """Removes it, which holds no record."""
        self.abandon()
        os.unlink(self._path)


def _open_path(folder: str, place: Place) -> str:
    return os.path.join(folder, f"{place}.open")


def _digest(lines: Iterable[bytes | memoryview]) -> hashlib._Hash:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    return digest


def lines_digest(lines: Iterable[bytes | memoryview]) -> str:
    """SHA-256 of records, in hex: the key that they are uploaded under."""
    return _digest(lines).hexdigest()


def write_sealed(
    folder: str, place: Place, header: Header, lines: Sequence[bytes | memoryview]
) -> Segment:
    """Writes a segment that is full from the start; its name is not on disk for sure yet."""
    begin, seed = header_frame(header)
    data = begin + record_frames(lines, len(begin), seed)
    segment = Segment(place, len(lines), lines_digest(lines), len(data))
    write_file(os.path.join(folder, segment.name), data)
    return segment


@dataclass(frozen=True)
class Content:
    """What is in a sealed segment.

    Attributes:
        header: None when the disk has changed it.
        lines: the records that are what was written.
        damaged: what is left of the others.
        whole: nothing is missing or changed.
    """

    header: Header | None
    lines: list[memoryview]
    damaged: list[memoryview]
    whole: bool


def read_sealed(folder: str, segment: Segment) -> Content:
    """A sealed segment's header and its records.

    Raises:
        OSError: it can't be read.
    """
    with open(os.path.join(folder, segment.name), "rb") as file:
        data = file.read()
    found = scan(data)
    damaged = found.damaged
    if found.end < len(data):
        damaged = [*damaged, memoryview(data)[found.end :]]
    whole = found.header is not None and not damaged
    whole = whole and lines_digest(found.lines) == segment.digest
    return Content(found.header, found.lines, damaged, whole)


def write_file(path: str, data: bytes) -> None:
    """Writes a file whose content is on disk when this returns; its name may not be yet.

    Raises:
        OSError: it can't be written; then nothing of it is left.
    """
    fd = os.open(path, _NEW, 0o600)
    try:
        try:
            _write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        os.unlink(path)
        raise


def sync_folder(path: str) -> None:
    """Makes sure that a folder's names survive a power cut; on Windows they do by themselves."""
    if os.name != "nt":
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(fd, view[done:])
