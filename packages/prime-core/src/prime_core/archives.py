"""Folders as tar archives that are made while they are sent, and unpacked while they come."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import stat
import tarfile
from collections.abc import AsyncIterator, Generator, Iterator
from io import FileIO
from types import TracebackType
from typing import IO

from typing_extensions import Self

from prime_core.errors import APIResponseError, UnsafeArchiveError
from prime_core.local_files import CHUNK, LocalFailure, PathLike, close_in_thread
from prime_core.sync import in_thread
from prime_core.uploads import Progress, Upload

__all__ = ["UnpackedFolder", "folder_upload"]


def _members(root: str) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """What a folder holds, a folder before its content: headers and paths.

    Owners are left out, and so is what is no file, folder or symbolic link.
    """
    left = [""]
    while left:
        folder = left.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            info = tarfile.TarInfo(f"{folder}/{entry.name}".lstrip("/"))
            seen = entry.stat(follow_symlinks=False)
            info.mode, info.mtime = stat.S_IMODE(seen.st_mode), int(seen.st_mtime)
            if stat.S_ISDIR(seen.st_mode):
                info.type = tarfile.DIRTYPE
                left.append(info.name)
            elif stat.S_ISLNK(seen.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(entry.path)
            elif stat.S_ISREG(seen.st_mode):
                info.size = seen.st_size
            else:
                continue
            yield info, entry.path


def _header(info: tarfile.TarInfo) -> bytes:
    # A form that every tar understands, also small ones.
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> int:
    return -size % tarfile.BLOCKSIZE


def _measure(root: str) -> int:
    """How long the archive of a folder is."""
    size = 2 * tarfile.BLOCKSIZE
    for info, _ in _members(root):
        size += len(_header(info)) + info.size + _padding(info.size)
    return size + -size % tarfile.RECORDSIZE


def _pack(root: str) -> Generator[bytes, None, None]:
    """The archive of a folder, in chunks."""
    waiting, done = bytearray(), 0
    for info, path in _members(root):
        waiting += _header(info)
        if info.size:
            for chunk in _read(path, info.size):
                waiting += chunk
                if len(waiting) >= CHUNK:
                    done += len(waiting)
                    yield bytes(waiting)
                    waiting.clear()
            waiting += bytes(_padding(info.size))
        if len(waiting) >= CHUNK:
            done += len(waiting)
            yield bytes(waiting)
            waiting.clear()
    waiting += bytes(2 * tarfile.BLOCKSIZE)
    waiting += bytes(-(done + len(waiting)) % tarfile.RECORDSIZE)
    yield bytes(waiting)


def _read(path: str, size: int) -> Iterator[bytes]:
    with FileIO(path) as file:
        while size:
            data = file.read(min(CHUNK, size))
            if not data:
                raise OSError(f"{path!r} became shorter while it was sent")
            size -= len(data)
            yield data


async def folder_upload(path: PathLike) -> Upload:
    """A folder as a request body: a tar archive of what is in it.

    Modes, times and symbolic links are kept, owners are not. Sockets, pipes and devices are
    left out.

    Raises:
        OSError: it can't be read: FileNotFoundError, NotADirectoryError, PermissionError.
    """
    root = os.fspath(path)
    size = await in_thread(_measure)(root)

    async def chunks() -> AsyncIterator[bytes]:
        packing, done = _pack(root), 0
        pack = in_thread(lambda: next(packing, b""))
        try:
            while chunk := await pack():
                done += len(chunk)
                if done > size:
                    break
                yield chunk
        finally:
            # One that a thread still works on is closed when that lets go of it.
            with contextlib.suppress(ValueError):
                await close_in_thread(packing.close)
        if done != size:
            raise OSError(f"{root!r} changed while it was sent")

    return Upload(chunks, size=size, rewindable=True)


class UnpackedFolder:
    """A folder that is unpacked from an archive, and takes its place once it is whole.

    Use it as a context manager around what feeds it. Leaving it by an exception, a cancellation
    too, removes what has been unpacked.

    Args:
        path: the place: nothing, or an empty folder.
        progress: told of the archive's bytes.
    """

    def __init__(self, path: PathLike, progress: Progress | None = None) -> None:
        self._path = path
        self._progress = progress
        self._done = 0
        self._target = ""
        self._part = ""

    async def __aenter__(self) -> Self:
        await in_thread(self._look)()
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._work = asyncio.ensure_future(in_thread(_Unpacking(self._part, theirs).run)())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ours.close()
        try:
            if error is None:
                await self._work
                await in_thread(self._keep)()
        finally:
            # The end of what feeds it ends the unpacking.
            await asyncio.wait([self._work], timeout=5)
            self._work.cancel()
            await close_in_thread(self._discard)
        if isinstance(error, LocalFailure):
            raise error.cause from None

    async def feed(self, data: bytes) -> None:
        """Takes the archive's next bytes, and waits while those before are unpacked.

        Raises:
            LocalFailure: they can't be unpacked, or ``progress`` raised.
        """
        try:
            await asyncio.get_running_loop().sock_sendall(self._ours, data)
        except OSError:
            try:
                await self._work
            except Exception as error:
                raise LocalFailure(error) from error
            raise
        self._done += len(data)
        if self._progress is not None:
            try:
                self._progress(self._done, None)
            except Exception as error:
                raise LocalFailure(error) from error

    def _look(self) -> None:
        self._target = os.path.realpath(self._path)
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(self._target):
                raise FileExistsError(
                    f"{os.fspath(self._path)!r} holds something: name a new or an empty folder"
                )
        self._part = f"{os.path.dirname(self._target)}/.{secrets.token_hex(8)}.part"

    def _keep(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self._target)
        os.rename(self._part, self._target)

    def _discard(self) -> None:
        shutil.rmtree(self._part, ignore_errors=True)


class _Unpacking:
    """Unpacks an archive in a thread.

    Whoever made it may be hostile: no member is placed through a link or outside of the
    folder, none is a device, and none keeps special mode bits.
    """

    def __init__(self, root: str, source: socket.socket) -> None:
        self._root = root
        self._source = source
        self._modes: list[tuple[str, int]] = []

    def run(self) -> None:
        """Unpacks to the end of the source.

        Raises:
            UnsafeArchiveError: a member that may not be placed.
            APIResponseError: it is no archive, or not whole.
            OSError: a file can't be written.
        """
        with self._source, self._source.makefile("rb", CHUNK) as file:
            os.makedirs(self._root)
            try:
                with tarfile.open(fileobj=file, mode="r|") as archive:
                    for member in archive:
                        vars(archive)["members"].clear()  # they would all be kept
                        self._place(archive, member)
            except (tarfile.TarError, EOFError) as error:
                text = f"The archive of the folder is not whole or garbled: {error}"
                raise APIResponseError(text) from None
            while file.read(CHUNK):
                """The padding behind the archive."""
        for path, mode in reversed(self._modes):
            os.chmod(path, mode)

    def _place(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        path = self._make_parents(parts)
        mode = member.mode & 0o777
        if member.isdir():
            if not (os.path.isdir(path) and not os.path.islink(path)):
                os.mkdir(path, 0o700)
            self._modes.append((path, mode))
            return
        if not parts:
            raise UnsafeArchiveError("The archive's own folder is none.")
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        content = archive.extractfile(member) if member.isreg() and not member.issparse() else None
        if content is not None:
            self._write(path, content, mode, member.mtime)
        elif member.issym():
            os.symlink(member.linkname, path)
        elif member.islnk():
            self._link(member.linkname, path)
        else:
            raise UnsafeArchiveError(f"{member.name!r} is no file, folder or link.")

    def _write(self, path: str, content: IO[bytes], mode: int, mtime: float) -> None:
        with open(path, "xb") as file:
            shutil.copyfileobj(content, file, CHUNK)
        os.chmod(path, mode)
        os.utime(path, (mtime, mtime))

    def _link(self, name: str, path: str) -> None:
        source = self._make_parents(_parts(name))
        if os.path.islink(source) or not os.path.isfile(source):
            raise UnsafeArchiveError(f"A hard link leads to {name!r}, which is no file before it.")
        os.link(source, path)

    def _make_parents(self, parts: list[str]) -> str:
        """Makes the folders above a member; returns its path."""
        path = self._root
        for part in parts[:-1]:
            path = f"{path}/{part}"
            try:
                found = os.lstat(path)
            except FileNotFoundError:
                os.mkdir(path, 0o700)
            else:
                if not stat.S_ISDIR(found.st_mode):
                    raise UnsafeArchiveError(f"{'/'.join(parts)!r} leads through a link or file.")
        return "/".join([path, *parts[-1:]])


def _parts(name: str) -> list[str]:
    """The parts of a member's name; none for the folder itself."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise UnsafeArchiveError(f"{name!r} leads out of the folder.")
    if os.sep != "/" and any(os.sep in part or ":" in part for part in parts):
        raise UnsafeArchiveError(f"{name!r} is no name for a file of this system.")
    return parts
