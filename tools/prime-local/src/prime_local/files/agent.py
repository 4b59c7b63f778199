"""Reads or writes one file inside a sandbox; executed there, see `access.program`.

It runs as a command of the sandbox does, with that command's root, rights and limits, so that
a path can reach exactly what a command could. It imports only what loads quickly.

    agent.py read PATH OFFSET LENGTH LIMIT ROOT...
    agent.py write PATH LIMIT ROOT...

What is read comes on stdout after a line `ok START SIZE TOTAL`. What is written is taken from
stdin in pieces, each after four bytes of length; a piece of length 0 makes the file take its
place, an end without one leaves everything as it was. Then stdout says `ok SIZE`. An error is the
line `error ERRNO MESSAGE`.
"""

from __future__ import annotations

import errno
import os
import stat
import sys

_PIECE = 256 * 1024
# A FIFO must not hold the agent up, nor a terminal become its own.
_CAREFUL = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class _Refused(Exception):
    """What was asked cannot be done; `number` is an errno."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def _resolve(path: str, roots: list[str]) -> str:
    """Return the path without symbolic links, if it is allowed."""
    resolved = os.path.realpath(path)
    inside = (resolved == root or resolved.startswith(root + "/") for root in roots)
    if roots and not any(inside):
        raise _Refused(errno.EXDEV, "the path leads out of the sandbox's folders")
    return resolved


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise _Refused(errno.EISDIR, "the path names a directory")
    if not stat.S_ISREG(mode):
        raise _Refused(errno.EINVAL, "the path names no regular file")


def _say(text: str) -> None:
    _write_all(1, text.encode(errors="surrogateescape"))


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_exactly(count: int) -> bytes:
    """Return so many bytes of stdin, fewer at its end."""
    data = b""
    while len(data) < count and (piece := os.read(0, count - len(data))):
        data += piece
    return data


def read(path: str, offset: int, length: int, limit: int, roots: list[str]) -> None:
    """Write a part of a file to stdout.

    Args:
        path: the file.
        offset: where to begin; negative counts from the end.
        length: how many bytes; negative for all.
        limit: more bytes than this are refused; negative for no limit.
        roots: the folders that the file must lie in; none allows every file.
    """
    descriptor = os.open(_resolve(path, roots), os.O_RDONLY | _CAREFUL)
    found = os.fstat(descriptor)
    _check_kind(found.st_mode)
    total = found.st_size
    start = min(offset, total) if offset >= 0 else max(0, total + offset)
    left = total - start if length < 0 else min(length, total - start)
    if 0 <= limit < left:
        raise _Refused(errno.EOVERFLOW, f"{left} bytes are more than {limit}")
    _say(f"ok {start} {left} {total}\n")
    os.lseek(descriptor, start, os.SEEK_SET)
    while left and (piece := os.read(descriptor, min(left, _PIECE))):
        _write_all(1, piece)
        left -= len(piece)


def write(path: str, limit: int, roots: list[str]) -> None:
    """Write a file from stdin; it takes its place once it is whole.

    Args:
        path: the file; missing folders above it are made.
        limit: the size that it may have.
        roots: as in `read`.
    """
    target = _resolve(path, roots)
    if path.endswith("/"):
        raise _Refused(errno.EISDIR, "the path names a directory")
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    mode = 0o644
    try:
        found = os.stat(target)
    except FileNotFoundError:
        pass
    else:
        _check_kind(found.st_mode)
        mode = stat.S_IMODE(found.st_mode)
    part = f"{folder}/.upload-{os.getpid()}-{os.urandom(6).hex()}"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFUL, 0o600)
    try:
        size = _take(descriptor, limit)
        os.fchmod(descriptor, mode)
        os.replace(part, target)
    except BaseException:
        os.unlink(part)
        raise
    _say(f"ok {size}\n")


def _take(descriptor: int, limit: int) -> int:
    """Write what comes on stdin to a file; return its size."""
    size = 0
    while True:
        head = _read_exactly(4)
        left = int.from_bytes(head, "big")
        if len(head) == 4 and left == 0:
            return size
        size += left
        if size > limit:
            raise _Refused(errno.ENOSPC, "no space left in the sandbox")
        while left and (piece := os.read(0, min(left, _PIECE))):
            _write_all(descriptor, piece)
            left -= len(piece)
        if left or len(head) < 4:
            raise _Refused(errno.ECANCELED, "the upload broke off")


def main(words: list[str]) -> None:
    """Do what the words of the command line say."""
    try:
        if words[0] == "read":
            read(words[1], int(words[2]), int(words[3]), int(words[4]), words[5:])
        else:
            write(words[1], int(words[2]), words[3:])
    except _Refused as refused:
        _say(f"error {refused.number} {refused}\n")
    except OSError as error:
        _say(f"error {error.errno or errno.EIO} {error.strerror or error}\n")
    except MemoryError:
        _say(f"error {errno.ENOMEM} out of memory\n")


if __name__ == "__main__":
    main(sys.argv[1:])
