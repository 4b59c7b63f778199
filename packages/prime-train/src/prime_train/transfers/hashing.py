"""Checksums of files: of the whole and of each part, in one reading."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.local_files import close_in_thread, open_regular
from prime_core.sync import in_thread
from prime_train.errors import SourceChangedError
from prime_train.transfers.planning import LocalFile

__all__ = [
    "Digests",
    "base64_of",
    "check_unchanged",
    "digest",
    "goes_in_parts",
    "is_md5",
    "is_small",
    "multipart_etag",
    "part_size",
    "read_small",
]

MIB = 1024 * 1024
PART = 64 * MIB
SMALL = 256 * 1024
MOST_PARTS = 10_000
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Digests:
    """MD5 of a file, and of each of its parts."""

    whole: bytes
    parts: Sequence[bytes]


def part_size(size: int) -> int:
    """Bytes of each part but the last: 64 MiB, or more where there would be too many."""
    return PART * max(1, -(-size // (PART * MOST_PARTS)))


def is_small(size: int) -> bool:
    """Whether a file of this size is moved as bytes, in as few threads as can be."""
    return size <= SMALL


def goes_in_parts(size: int) -> bool:
    """Whether a file of this size is moved in parts."""
    return size >= PART


def base64_of(md5: bytes) -> str:
    """An MD5 as headers and metadata have it."""
    return base64.b64encode(md5).decode()


def is_md5(etag: str) -> bool:
    """Whether an etag is the MD5 of what was stored, in hexadecimal digits."""
    return _MD5.fullmatch(etag) is not None


def multipart_etag(parts: Sequence[bytes]) -> str:
    """The etag of an object that was stored in these parts."""
    return f"{hashlib.md5(b''.join(parts), usedforsecurity=False).hexdigest()}-{len(parts)}"


class _Reading:
    """Reads a file in a thread until it is told to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False

    def digest(self, path: str, size: int, part: int) -> Digests:
        with self._lock, open_regular(path) as file:
            whole = hashlib.md5(usedforsecurity=False)
            parts: list[bytes] = []
            buffer = memoryview(bytearray(min(MIB, max(size, 1))))
            single = size <= part
            current = whole if single else hashlib.md5(usedforsecurity=False)
            done = 0
            while done < size and not self._stopped:
                room = min(len(buffer), size - done, part - done % part)
                got = file.readinto(buffer[:room])
                if not got:
                    raise SourceChangedError(f"{path!r} became shorter while it was read")
                if not single:
                    whole.update(buffer[:got])
                current.update(buffer[:got])
                done += got
                if not single and (done % part == 0 or done == size):
                    parts.append(current.digest())
                    current = hashlib.md5(usedforsecurity=False)
            return Digests(whole.digest(), [whole.digest()] if single else parts)

    def stop(self) -> None:
        self._stopped = True
        with self._lock:
            pass


async def digest(path: str, size: int, part: int) -> Digests:
    """Reads a file for its checksums, in a thread that ends with the caller's wait.

    Args:
        path: of the file.
        size: bytes to read.
        part: bytes of each part but the last.
    """
    reading = _Reading()
    try:
        return await in_thread(reading.digest)(path, size, part)
    except asyncio.CancelledError:
        await close_in_thread(reading.stop)
        raise


def read_small(file: LocalFile) -> tuple[Digests, bytes]:
    """Reads a small file. Runs in a thread.

    Raises:
        SourceChangedError: it is not what it was when the transfer began.
    """
    with open_regular(file.path) as opened:
        content = opened.read(file.size + 1)
    check_unchanged(file)
    md5 = hashlib.md5(content, usedforsecurity=False).digest()
    return Digests(md5, [md5]), content


def check_unchanged(file: LocalFile) -> None:
    """Runs in a thread.

    Raises:
        SourceChangedError: the file is not what it was when the transfer began.
    """
    try:
        found = os.lstat(file.path)
    except FileNotFoundError:
        raise SourceChangedError(f"{file.path!r} went away while it was put") from None
    if (found.st_size, found.st_mtime_ns) != (file.size, file.mtime_ns):
        raise SourceChangedError(f"{file.path!r} changed while it was put")
