"""Files of this machine, read and written in threads so that the event loop never waits."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import stat
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable
from io import FileIO
from types import TracebackType
from typing import TypeVar

from typing_extensions import Self

from prime_core.sync import in_thread
from prime_core.uploads import Progress, Upload

__all__ = [
    "LocalFailure",
    "PartialFile",
    "close_in_thread",
    "file_upload",
    "locally",
    "open_regular",
    "slice_upload",
]

T = TypeVar("T")
PathLike = str | os.PathLike[str]
AnyPath = PathLike | bytes | os.PathLike[bytes]

# A thread is started for each chunk, which costs 0.1 ms: at 1 MiB a tenth of the reading.
CHUNK = 1024 * 1024
# Of slices, many of which are sent at once: each holds two chunks at most.
SLICE_CHUNK = 256 * 1024
# How long a cancellation waits for a thread that is in a file system's hands.
CLOSE_PATIENCE = 5.0


class LocalFailure(Exception):
    """Something of the caller's own failed while an answer was read, not the network.

    Attributes:
        cause: what was raised.
    """

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def close_in_thread(close: Callable[[], object]) -> None:
    """Lets go of something that a thread may be working with, waiting for it 5 s at most.

    It is let go of in any case, also when this is cancelled.
    """
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(in_thread(close)(), CLOSE_PATIENCE)


def open_regular(path: PathLike) -> FileIO:
    """Opens a file to read it, and nothing that is in its place by now: a pipe would be waited for.

    Runs in a thread.

    Raises:
        OSError: it can't be read, or is no regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, "This is no regular file", os.fspath(path))
        return FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


class _Reading:
    """A file that is read by one thread at a time; closing waits for a read under way."""

    def __init__(
        self, path: PathLike, size: int | None, offset: int = 0, chunk: int = CHUNK
    ) -> None:
        self._path = path
        self._left = size
        self._offset = offset
        self._chunk = chunk
        self._file: FileIO | None = None
        self._closed = False
        self._lock = threading.Lock()

    def read(self) -> bytes:
        """The next chunk, empty at the end."""
        with self._lock:
            if self._closed:
                return b""
            if self._file is None:
                self._file = open_regular(self._path)
                if self._offset:
                    self._file.seek(self._offset)
            size = self._chunk if self._left is None else min(self._chunk, self._left)
            data = self._file.read(size) or b""
            if self._left is not None:
                self._left -= len(data)
            if self._left and not data:
                raise OSError(f"{os.fspath(self._path)!r} became shorter while it was sent")
            if self._left == 0:
                self._close()
            return data

    @property
    def is_over(self) -> bool:
        """Whether all of it has been read, and the file is closed."""
        return self._closed

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        self._closed = True
        if self._file is not None:
            self._file.close()


async def file_upload(path: PathLike) -> Upload:
    """A file as a request body; what is appended to it later is not sent.

    Raises:
        OSError: it can't be read: FileNotFoundError, IsADirectoryError, PermissionError.
        ValueError: it is no regular file, whose size is known.
    """

    def look() -> int | None:
        found = os.stat(path)  # before it is opened: a pipe would wait for its other end
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise ValueError(f"{os.fspath(path)!r} is no regular file: open it, and pass that")
        FileIO(path).close()
        return found.st_size or None  # files of the kernel's say 0 whatever they hold

    size = await in_thread(look)()
    return Upload(lambda: _chunks(_Reading(path, size)), size=size, rewindable=True)


def slice_upload(path: PathLike, offset: int, size: int) -> Upload:
    """So many bytes of a file, from an offset on, as a request body.

    One of several that are sent at once; the file is opened when it is sent.
    """
    return Upload(
        lambda: _chunks(_Reading(path, size, offset, SLICE_CHUNK)), size=size, rewindable=True
    )


async def _chunks(reading: _Reading) -> AsyncIterator[bytes]:
    read = in_thread(reading.read)
    try:
        # No read past the end, nor a thread to close it: an answer that is faster than they are
        # finds a request that is still being sent, and its connection is not used again.
        while not reading.is_over and (chunk := await read()):
            yield chunk
    finally:
        if not reading.is_over:
            await close_in_thread(reading.close)


class PartialFile:
    """A file that takes another's place once it is whole.

    Use it as a context manager around the call whose reader is `receive`. Leaving it by an
    exception, a cancellation too, removes what has come and leaves the place as it was.

    Args:
        path: the place. A symbolic link is followed; missing folders are made for it once
            something comes. A file that is there already passes its mode on.
        progress: told of the bytes that have come.

    Raises:
        IsADirectoryError: the place is a folder's; on entering, before anything is fetched.
        ValueError: it is a device's, a pipe's or a socket's, likewise.
    """

    def __init__(self, path: AnyPath, progress: Progress | None = None) -> None:
        self._path = os.fsdecode(path)
        self._progress = progress
        self._target = ""
        self._part = ""
        self._file: FileIO | None = None
        self._over = False
        self._lock = threading.Lock()

    async def __aenter__(self) -> Self:
        await in_thread(self._look)()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await in_thread(self._keep)()
        finally:
            await close_in_thread(self._discard)
        if isinstance(error, LocalFailure):
            raise error.cause from None

    async def receive(self, chunks: AsyncIterable[bytes], size: int | None) -> int:
        """Takes a whole body; what an earlier attempt brought is dropped.

        Args:
            chunks: the bytes.
            size: how many there are, if that is known.

        Returns:
            How many there were.

        Raises:
            LocalFailure: the file can't be written, or ``progress`` raised.
        """
        done = 0
        await locally(self._begin)
        self._tell(done, size)
        waiting = bytearray()
        async for chunk in chunks:
            waiting += chunk
            done += len(chunk)
            if len(waiting) >= CHUNK:
                await locally(self._write, waiting)
                waiting = bytearray()
                self._tell(done, size)
        await locally(self._write, waiting)
        self._tell(done, size)
        return done

    def _tell(self, done: int, size: int | None) -> None:
        if self._progress is not None:
            try:
                self._progress(done, size)
            except Exception as error:
                raise LocalFailure(error) from error

    # What follows runs in threads, one at a time; nothing has an effect once it is over.

    def _look(self) -> None:
        self._target = os.path.realpath(self._path)
        self._mode()
        self._part = f"{os.path.dirname(self._target)}/.{secrets.token_hex(8)}.part"

    def _mode(self) -> int | None:
        """The mode of the file that is there; None if there is none."""
        try:
            mode = os.stat(self._target).st_mode
        except OSError:
            return None  # what is wrong with the place shows when it is written to
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"{self._path!r} is a folder: name the file")
        # A device or a pipe would be gone, and with it whatever else uses it.
        if not stat.S_ISREG(mode):
            raise ValueError(f"{self._path!r} is no regular file, and is not replaced by one")
        return mode

    def _begin(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.seek(0)
                self._file.truncate()
            elif not self._over:
                os.makedirs(os.path.dirname(self._target), exist_ok=True)
                self._file = FileIO(self._part, "xb")

    def _write(self, data: bytearray) -> None:
        with self._lock, memoryview(data) as view:
            done = 0
            while self._file is not None and done < len(view):
                done += self._file.write(view[done:])

    def _keep(self) -> None:
        with self._lock:
            assert self._file is not None  # `receive` has returned
            mode = self._mode()
            if mode is not None:
                with contextlib.suppress(OSError):
                    os.chmod(self._part, stat.S_IMODE(mode))
            self._file.close()
            os.replace(self._part, self._target)
            self._file = None

    def _discard(self) -> None:
        with self._lock:
            self._over = True
            if self._file is not None:
                self._file.close()
                self._file = None
                with contextlib.suppress(OSError):
                    os.unlink(self._part)


async def locally(work: Callable[..., T], *args: object) -> T:
    """Does something with a local file; its failure is told apart from the network's."""
    try:
        return await in_thread(work)(*args)
    except Exception as error:
        raise LocalFailure(error) from error
