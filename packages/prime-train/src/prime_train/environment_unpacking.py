"""Source archives of environments, unpacked with a bound on what comes out of them."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from prime_core.archives import UnpackedFolder
from prime_core.errors import APIResponseError, UnsafeArchiveError
from prime_core.sync import in_thread

__all__ = ["unpack_source"]

# An archive has 250 MB at most; what is more than this is no source.
_MOST_BYTES = 4 * 1024**3
_CHUNK = 64 * 1024
_GZIP = b"\x1f\x8b"


async def unpack_source(archive: Path, folder: str | os.PathLike[str]) -> None:
    """Unpacks an archive, gzip or plain, into a new or empty folder.

    Raises:
        UnsafeArchiveError: it would write outside of the folder, or is a bomb.
        APIResponseError: it is no whole archive.
        OSError: a file can't be written.
    """
    chunks = _expanded(archive)
    read: Callable[[], bytes] = lambda: next(chunks, b"")  # noqa: E731
    async with UnpackedFolder(folder) as target:
        pull = in_thread(read)
        while chunk := await pull():
            await target.feed(chunk)


def _expanded(archive: Path) -> Iterator[bytes]:
    done = 0
    with open(archive, "rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            while chunk := file.read(_CHUNK):
                yield chunk
            return
        inflate = zlib.decompressobj(wbits=31)
        try:
            while not inflate.eof and (chunk := inflate.unconsumed_tail or file.read(_CHUNK)):
                out = inflate.decompress(chunk, 16 * _CHUNK)
                done += len(out)
                if done > _MOST_BYTES:
                    raise UnsafeArchiveError("The source is larger than 4 GiB.")
                if out:
                    yield out
        except zlib.error as error:
            raise APIResponseError(f"The archive of the source is garbled: {error}") from None
        if not inflate.eof:
            raise APIResponseError("The archive of the source is not whole.")
