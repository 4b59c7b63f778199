"""Reads the multipart body of an upload, piece by piece, off the event loop where it takes time."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from aiohttp import BodyPartReader, http_exceptions, web

from prime_local.traces.validation import (
    MAX_LINE_BYTES,
    MAX_METADATA_BYTES,
    MAX_UPLOAD_BYTES,
    Metadata,
    Rejected,
    check_metadata,
)

_PIECE_BYTES = 1024 * 1024
_MEMORY_BYTES = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Spool:
    """The uncompressed bytes of an upload: small ones in memory, others in a nameless file.

    Args:
        folder: where the file goes.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(  # noqa: SIM115 - closed by `close`
            _MEMORY_BYTES, dir=str(folder)
        )
        self._hash = hashlib.sha256()
        self._size = 0
        self._gzip: zlib._Decompress | None = None
        self._is_gzip = False

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def begin(self, encoding: str | None) -> None:
        """Name the encoding of what follows.

        Raises:
            Rejected: `malformed_encoding`.
        """
        if encoding not in (None, "identity", "gzip"):
            raise Rejected("malformed_encoding", "Content-Encoding must be gzip or absent")
        self._is_gzip = encoding == "gzip"

    def feed(self, data: bytes) -> None:
        """Add bytes as they were sent.

        Raises:
            Rejected: `malformed_encoding` or `upload_too_large`.
        """
        if not self._is_gzip:
            self._add(data)
            return
        more = bool(data)
        while more:
            if self._gzip is None or self._gzip.eof:
                self._gzip = zlib.decompressobj(_GZIP)
            try:
                # In pieces: a small bomb must not fill the memory.
                piece = self._gzip.decompress(data, _PIECE_BYTES)
            except zlib.error:
                raise Rejected("malformed_encoding", "not valid gzip") from None
            self._add(piece)
            data = self._gzip.unused_data if self._gzip.eof else self._gzip.unconsumed_tail
            # A full piece may leave output behind that needs no further input.
            more = bool(data) or (len(piece) == _PIECE_BYTES and not self._gzip.eof)

    def end(self) -> None:
        """Say that all was fed.

        Raises:
            Rejected: `malformed_encoding`.
        """
        if self._is_gzip and (self._gzip is None or not self._gzip.eof):
            raise Rejected("malformed_encoding", "the gzip data broke off")

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, each with its LF; of one that is too long, only enough to see it."""
        self._file.seek(0)
        while line := self._file.readline(MAX_LINE_BYTES + 2):
            yield line

    def close(self) -> None:
        self._file.close()

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_UPLOAD_BYTES:
            raise Rejected("upload_too_large", f"more than {MAX_UPLOAD_BYTES} bytes uncompressed")
        self._hash.update(data)
        self._file.write(data)


async def receive(request: web.Request, spool: Spool) -> Metadata:
    """Read a whole upload: its traces into the spool.

    It is read to the end even when it will be refused, so that its sender can read why.

    Raises:
        Rejected: what is wrong with the metadata, or else with the traces' encoding and size.
    """
    if request.content_type != "multipart/form-data":
        raise Rejected("invalid_metadata", "the body must be multipart/form-data")
    try:
        return await _receive(request, spool)
    except (ConnectionError, web.RequestPayloadError):
        raise Rejected("malformed_encoding", "the request body broke off") from None
    except (ValueError, AssertionError, http_exceptions.HttpProcessingError):
        raise Rejected("malformed_encoding", "the multipart body is broken") from None


async def _receive(request: web.Request, spool: Spool) -> Metadata:
    metadata: list[bytes] = []
    traces = 0
    wrong: Rejected | None = None
    reader = await request.multipart()
    while (part := await reader.next()) is not None:
        if isinstance(part, BodyPartReader) and part.name == "metadata":
            metadata.append(await _start_of(part))
        elif isinstance(part, BodyPartReader) and part.name == "traces":
            traces += 1
            try:
                await _fill(spool, part)
            except Rejected as error:
                wrong = wrong or error
        await part.release()
    if len(metadata) != 1:
        raise Rejected("invalid_metadata", f"{len(metadata)} metadata parts instead of one")
    checked = check_metadata(metadata[0])
    if traces != 1:
        raise Rejected("malformed_encoding", f"{traces} traces parts instead of one")
    if wrong is not None:
        raise wrong
    return checked


async def _start_of(part: BodyPartReader) -> bytes:
    """Read a part as far as it may be long, and a bit more when it is longer."""
    data = b""
    while len(data) <= MAX_METADATA_BYTES and (chunk := await part.read_chunk()):
        data += chunk
    return data


async def _fill(spool: Spool, part: BodyPartReader) -> None:
    spool.begin(part.headers.get("Content-Encoding"))
    piece = bytearray()
    while chunk := await part.read_chunk(_PIECE_BYTES):
        piece += chunk
        if len(piece) >= _PIECE_BYTES:
            await asyncio.to_thread(spool.feed, bytes(piece))
            piece.clear()
    await asyncio.to_thread(spool.feed, bytes(piece))
    spool.end()
