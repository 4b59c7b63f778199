"""Copying a folder that programs of a sandbox may be changing meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_COPIES_AT_ONCE = 2
_CHUNK_BYTES = 1024 * 1024
_MOST_ENTRIES = 1_000_000
# Each level of folders holds two descriptors open.
_DEEPEST = 128
_STOP_SECONDS = 2.0
# What is gone, or has become something else, since its folder was listed.
_VANISHED = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)


class CopyError(Exception):
    """A folder cannot be copied; the text says why."""


class Copier:
    """Copies folders in threads of its own, a few at a time, so that commands need not wait."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_COPIES_AT_ONCE, thread_name_prefix="prime-local-copy")
        self._closed = threading.Event()

    async def copy(
        self,
        source: Path | None,
        target: Path,
        most_bytes: int,
        stop: threading.Event | None = None,
    ) -> int:
        """Copy a folder with everything in it; a cancellation ends the copying first.

        Modes, owners, times, symbolic and hard links, holes and extended attributes stay as they
        are. Sockets are left out, and so is what vanishes meanwhile. No link is followed.

        Args:
            source: the folder; None, or one that is not there, counts as empty.
            target: where to; made if need be, and empty.
            most_bytes: how much data it may hold.
            stop: ends the copying when it is set.

        Returns how many bytes of data were copied, holes not counted.

        Raises:
            CopyError: it is too large or too deep, was stopped, or this machine lacks something.
        """
        stop = stop or threading.Event()
        copying = _Copying(most_bytes, (stop, self._closed))
        try:
            running = asyncio.get_running_loop().run_in_executor(
                self._threads, copying.run, source, target
            )
        except RuntimeError as error:
            raise CopyError("the platform has ended") from error
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait({running}, timeout=_STOP_SECONDS)
            raise

    def close(self) -> None:
        """Stop what is being copied."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Copying:
    """One copy: walks by descriptors, so that no exchanged folder leads it astray."""

    def __init__(self, most_bytes: int, stops: tuple[threading.Event, ...]) -> None:
        self._most_bytes = most_bytes
        self._stops = stops
        self._bytes = 0
        self._entries = 0
        self._root = -1
        # Where the first of several hard links to a file went, relative to the target.
        self._links: dict[tuple[int, int], str] = {}

    def run(self, source: Path | None, target: Path) -> int:
        try:
            target.mkdir(parents=True, exist_ok=True)
            if source is None:
                return 0
            with _opened(source, None) as origin, _opened(target, None) as copy:
                if copy is None:
                    raise CopyError(f"{target} is no folder")
                if origin is not None:
                    self._root = copy
                    self._copy_folder(origin, copy, "")
        except OSError as error:
            raise CopyError(f"the files cannot be copied: {error.strerror}") from error
        return self._bytes

    def _copy_folder(self, source: int, target: int, path: str) -> None:
        if path.count("/") > _DEEPEST:
            raise CopyError(f"folders are nested more than {_DEEPEST} deep")
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            self._count()
            try:
                self._copy_entry(source, target, name, f"{path}{name}")
            except OSError as error:
                if error.errno not in _VANISHED:
                    raise
        # Last: writing into the folder would change its times, and its mode may forbid it.
        _copy_attributes(source, target)

    def _copy_entry(self, source: int, target: int, name: str, path: str) -> None:
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            os.mkdir(name, 0o700, dir_fd=target)
            with _opened(name, source) as folder, _opened(name, target) as copy:
                if folder is not None and copy is not None:
                    self._copy_folder(folder, copy, path + "/")
        elif found.st_nlink > 1 and self._link(found, target, name, path):
            return
        elif stat.S_ISREG(found.st_mode):
            self._copy_file(source, target, name)
        elif stat.S_ISLNK(found.st_mode):
            os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            with contextlib.suppress(PermissionError):
                os.chown(name, found.st_uid, found.st_gid, dir_fd=target, follow_symlinks=False)
        elif not stat.S_ISSOCK(found.st_mode):
            # A pipe, or the device by which an overlay says that something is deleted.
            with contextlib.suppress(PermissionError):
                os.mknod(name, found.st_mode, found.st_rdev, dir_fd=target)

    def _link(self, found: os.stat_result, target: int, name: str, path: str) -> bool:
        """Make a hard link to what an earlier one was copied to; False for the first."""
        earlier = self._links.setdefault((found.st_dev, found.st_ino), path)
        if earlier == path:
            return False
        try:
            os.link(earlier, name, src_dir_fd=self._root, dst_dir_fd=target, follow_symlinks=False)
        except OSError:  # where that went is gone, or shut for this account
            return False
        return True

    def _copy_file(self, source: int, target: int, name: str) -> None:
        # What was a file may be a pipe by now, which must not hold this thread up.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        reader = os.open(name, flags, dir_fd=source)
        try:
            found = os.fstat(reader)
            if not stat.S_ISREG(found.st_mode):
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            writer = os.open(name, flags, 0o600, dir_fd=target)
            try:
                self._copy_data(reader, writer, found.st_size)
                _copy_attributes(reader, writer)
            finally:
                os.close(writer)
        finally:
            os.close(reader)

    def _copy_data(self, reader: int, writer: int, size: int) -> None:
        # The size of the beginning bounds it: a program may go on writing for ever.
        os.ftruncate(writer, size)
        for start, end in _data_ranges(reader, size):
            position = start
            while position < end:
                piece = os.pread(reader, min(_CHUNK_BYTES, end - position), position)
                if not piece:
                    break
                self._bytes += len(piece)
                if self._bytes > self._most_bytes:
                    raise CopyError(f"the files take more than {self._most_bytes} bytes")
                written = 0
                while written < len(piece):
                    written += os.pwrite(writer, piece[written:], position + written)
                position += len(piece)
                self._check_stop()

    def _count(self) -> None:
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            raise CopyError(f"there are more than {_MOST_ENTRIES} files")
        self._check_stop()

    def _check_stop(self) -> None:
        if any(stop.is_set() for stop in self._stops):
            raise CopyError("the copying was stopped")


@contextlib.contextmanager
def _opened(folder: str | Path, parent: int | None) -> Iterator[int | None]:
    """Open a folder that is no link; None when it is not there any more."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(folder, flags, dir_fd=parent)
    except OSError as error:
        if error.errno not in _VANISHED:
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _data_ranges(reader: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where a file holds data: what lies between is never written."""
    end = 0
    while end < size:
        try:
            start = os.lseek(reader, end, os.SEEK_DATA)
            end = min(os.lseek(reader, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # there is no more data
                return
            yield end, size
            return
        yield start, end


def _copy_attributes(source: int, target: int) -> None:
    found = os.fstat(source)
    with contextlib.suppress(PermissionError):
        os.fchown(target, found.st_uid, found.st_gid)
    os.fchmod(target, stat.S_IMODE(found.st_mode))
    for name in _extended_attributes(source):
        # Not every file system keeps every kind.
        with contextlib.suppress(OSError):
            os.setxattr(target, name, os.getxattr(source, name))
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _extended_attributes(descriptor: int) -> list[str]:
    # Linux alone has these calls, and not every file system has what they ask for.
    with contextlib.suppress(AttributeError, OSError):
        return os.listxattr(descriptor)
    return []
