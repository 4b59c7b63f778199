"""A folder as a build context: a gzip tar, packed by a thread into a temporary file.

The upload needs its length beforehand, since upload stores take no chunked bodies, and it must be
possible to send it again; a temporary file gives both in bounded memory.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
import tarfile
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from prime_sandboxes.dockerignore import DockerIgnore

__all__ = ["DOCKERFILE_NAME", "packed_context"]

DOCKERFILE_NAME = ".__prime_dockerfile__"
# The same tree makes the same archive on every machine. ZIP files know no earlier year than 1980,
# and a build that zips what it was given must not fail.
_MODIFIED = 315_619_200  # 1980-01-02
_COMPRESSION = 6
_MODES = 0o7777
_STOP_SECONDS = 5.0


class _Cancelled(Exception):
    """Nobody waits for the archive any more."""


@asynccontextmanager
async def packed_context(context: Path, dockerfile: Path) -> AsyncIterator[tuple[IO[bytes], int]]:
    """Packs a build context; the archive is gone when this is left.

    Args:
        context: the folder.
        dockerfile: its Dockerfile, which may lie elsewhere. A file of that name with
            ``.dockerignore`` at its end goes before the ``.dockerignore`` of the folder.

    Yields:
        The archive, at its start, and its size in bytes.

    Raises:
        FileNotFoundError: there is no such folder or Dockerfile.
        ValueError: a ``.dockerignore`` can't be read.
        OSError: a file can't be read, or there is no room for the archive.
    """
    stop = threading.Event()
    with tempfile.TemporaryFile(prefix="prime-build-") as archive:
        packing = asyncio.get_running_loop().run_in_executor(
            None, _pack, context, dockerfile, archive, stop
        )
        # Its failure is nobody's once this is cancelled.
        packing.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            size = await asyncio.shield(packing)
        except asyncio.CancelledError:
            stop.set()
            # The thread holds the file; it looks at `stop` once a chunk.
            await asyncio.wait({packing}, timeout=_STOP_SECONDS)
            raise
        yield archive, size


def _pack(context: Path, dockerfile: Path, archive: IO[bytes], stop: threading.Event) -> int:
    ignore = _read_ignore(context, dockerfile)
    if not context.is_dir():
        raise FileNotFoundError(f"context is a folder, and {context} is none")
    if not dockerfile.is_file():
        raise FileNotFoundError(f"dockerfile is a file, and {dockerfile} is none")
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, archive, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        _add_file(tar, dockerfile, DOCKERFILE_NAME, stop)
        for path in _walk(context, "", ignore):
            if path != DOCKERFILE_NAME:
                _add(tar, context / path, path, stop)
    size = archive.tell()
    archive.seek(0)
    return size


def _read_ignore(context: Path, dockerfile: Path) -> DockerIgnore:
    own = dockerfile.with_name(f"{dockerfile.name}.dockerignore")
    for path in (own, context / ".dockerignore"):
        if path.is_file():
            try:
                return DockerIgnore(path.read_text(encoding="utf-8-sig").splitlines())
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
    return DockerIgnore()


def _walk(context: Path, folder: str, ignore: DockerIgnore) -> Iterator[str]:
    """Yields what is packed, folders before what is in them, in the order of their names."""
    with os.scandir(context / folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{folder}/{entry.name}" if folder else entry.name
        ignored = ignore.ignores(path)
        if not ignored:
            yield path
        # A link to a folder is a link.
        if entry.is_dir(follow_symlinks=False) and not (ignored and ignore.ignores_all_in(path)):
            yield from _walk(context, path, ignore)


def _add(tar: tarfile.TarFile, source: Path, name: str, stop: threading.Event) -> None:
    found = source.lstat()
    if stat.S_ISREG(found.st_mode):
        _add_file(tar, source, name, stop)
        return
    entry = _entry(name, found)
    if stat.S_ISDIR(found.st_mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(source)
    else:
        return  # sockets, pipes and devices mean nothing elsewhere
    tar.addfile(entry)


def _add_file(tar: tarfile.TarFile, source: Path, name: str, stop: threading.Event) -> None:
    with source.open("rb") as file:
        found = os.fstat(file.fileno())
        entry = _entry(name, found)
        entry.size = found.st_size
        try:
            tar.addfile(entry, _Watched(file, stop))
        except OSError as error:
            raise OSError(f"{source} can't be packed: {error}") from error


def _entry(name: str, found: os.stat_result) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.mtime = stat.S_IMODE(found.st_mode) & _MODES, _MODIFIED
    return entry


class _Watched:
    """A file whose reading ends when nobody waits for it any more."""

    def __init__(self, file: IO[bytes], stop: threading.Event) -> None:
        self._file = file
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        if self._stop.is_set():
            raise _Cancelled
        return self._file.read(size)
