"""What can be uploaded: files, bytes, open files, and chunks that are made meanwhile."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import IO, TypeAlias, cast

from prime_core.local_files import CHUNK, close_in_thread, file_upload
from prime_core.sync import from_iterable, in_thread
from prime_core.uploads import Upload, closing

__all__ = ["Content", "bytes_upload", "upload_of"]

Content: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]"
    " | Iterable[bytes] | AsyncIterable[bytes]"
)


async def upload_of(content: Content) -> Upload:
    """A request body of what a caller passes.

    Args:
        content: the path of a file, bytes, an open binary file, or an iterable of bytes, async
            or not. A path, bytes, an open file that can seek and an iterable that can be
            iterated anew are sent again where the request is repeated; the rest is sent once.
            Open files are read from where they stand, in threads, and not closed; those
            that can seek stand there again afterwards.

    Raises:
        OSError: a file can't be read, such as FileNotFoundError.
        TypeError: none of these.
    """
    if isinstance(content, (str, os.PathLike)):
        return await file_upload(content)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes_upload(bytes(content))
    if isinstance(content, io.TextIOBase):
        raise TypeError("a file is uploaded in binary: open it with 'rb'")
    if hasattr(content, "read"):
        return await _open_file_upload(cast("IO[bytes]", content))
    if isinstance(content, AsyncIterable):
        source = content.__aiter__()
        return Upload(lambda: _checked(source), size=None, rewindable=False)
    if isinstance(content, Iterable):
        once = isinstance(content, Iterator)
        chunks = content
        return Upload(lambda: _checked(from_iterable(chunks)), size=None, rewindable=not once)
    raise TypeError(
        f"a path, bytes, a binary file or chunks of bytes can be uploaded, not "
        f"{type(content).__name__}"
    )


def bytes_upload(*pieces: bytes) -> Upload:
    """A request body of bytes, in one or several pieces, which may be sent again."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return Upload(chunks, size=sum(map(len, pieces)), rewindable=True)


async def _open_file_upload(file: IO[bytes]) -> Upload:
    def measure() -> tuple[int, int] | None:
        try:
            start = file.tell()
            end = file.seek(0, os.SEEK_END)
            file.seek(start)
        except (OSError, AttributeError):  # a pipe, say, or a file of the kernel's
            return None
        return start, max(0, end - start)

    place = await in_thread(measure)()
    size = None if place is None else place[1]

    lock = threading.Lock()  # an attempt that was given up may still be reading

    def read(offset: int, count: int) -> bytes:
        with lock:
            if place is not None:
                file.seek(place[0] + offset)
            return file.read(count)

    async def chunks() -> AsyncIterator[bytes]:
        done = 0
        try:
            while size is None or done < size:
                most = CHUNK if size is None else min(CHUNK, size - done)
                chunk = await in_thread(read)(done, most)
                if not chunk and size is not None:
                    raise OSError("the file became shorter while it was sent")
                if not chunk:
                    return
                yield _bytes(chunk)
                done += len(chunk)
        finally:
            if place is not None:  # so that the same call sends the same again
                await close_in_thread(lambda: read(0, 0))

    return Upload(chunks, size=size, rewindable=place is not None)


async def _checked(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks of a source, which is closed with them."""
    async with closing(source):
        async for chunk in source:
            yield _bytes(chunk)


def _bytes(chunk: object) -> bytes:
    if isinstance(chunk, (bytes, bytearray, memoryview)):
        return bytes(chunk)
    raise TypeError(f"a chunk of an upload is bytes, not {type(chunk).__name__}")
