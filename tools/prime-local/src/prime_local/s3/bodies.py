"""Request bodies: received piece by piece into a file, and compared with their digests."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import StreamReader, web

from prime_local.s3.blobs import PIECE_BYTES, Blobs, BlobWriter
from prime_local.s3.errors import S3Error

MOST_BYTES = 5 * 1024**3
_CHECKSUM = "x-amz-checksum-"
_UNSIGNED, _TRAILING = "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_LINE_BYTES = 4096


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(4, "big")


_ALGORITHMS: dict[str, Callable[[], _Digest]] = {
    "crc32": _Crc32,
    "sha1": hashlib.sha1,
    "sha256": hashlib.sha256,
    "sha512": hashlib.sha512,
}


@dataclass
class Received:
    """A body that was received, in a file.

    Args:
        md5: hexadecimal.
        checksums: what the client said, and was right about, by the names of the headers.
    """

    blob: str
    size: int
    md5: str
    checksums: dict[str, str] = field(default_factory=dict)


def new_digest(algorithm: str) -> _Digest:
    """Begin a checksum.

    Raises:
        S3Error: `NotImplemented`.
    """
    make = _ALGORITHMS.get(algorithm.lower())
    if make is None:
        raise S3Error("NotImplemented", f"Checksums here are {', '.join(_ALGORITHMS)}")
    return make()


async def receive(request: web.Request, blobs: Blobs) -> Received:
    """Receive the body of a request into a new file.

    Raises:
        S3Error: it broke off, or is not what its headers say.
    """
    async with _writing(blobs) as writer:
        md5 = hashlib.md5(usedforsecurity=False)
        digests: dict[str, _Digest] = {"content-md5": md5}
        claims = _claims(request)
        for name in claims:
            if name.startswith(_CHECKSUM):
                digests[name] = new_digest(name[len(_CHECKSUM) :])
        told = request.headers.get("x-amz-content-sha256", _UNSIGNED)
        body = _pieces(request.content, _length(request))
        if told == _TRAILING:
            body = _unchunked(request.content, claims)
        elif told.startswith("STREAMING-"):
            raise S3Error("NotImplemented", "Chunks of a body are not signed one by one here")
        elif told != _UNSIGNED:
            digests[told] = hashlib.sha256()

        def add(piece: bytes) -> None:
            writer.write(piece)
            for digest in digests.values():
                digest.update(piece)

        async for piece in body:
            await asyncio.to_thread(add, piece)
            if writer.size > MOST_BYTES:
                raise S3Error("EntityTooLarge", f"At most {MOST_BYTES} bytes in one request")
        if told in digests and not hmac.compare_digest(digests.pop(told).digest().hex(), told):
            raise S3Error("XAmzContentSHA256Mismatch", "The body is not the one that was signed")
        for name, claimed in claims.items():
            if base64.b64encode(digests[name].digest()).decode() != claimed:
                raise S3Error("BadDigest", f"The body does not have the {name} that was told")
        told_checksums = {name: claims[name] for name in claims if name != "content-md5"}
        return Received(writer.name, writer.size, md5.hexdigest(), told_checksums)


async def store(pieces: AsyncIterator[bytes], blobs: Blobs) -> Received:
    """Put bytes of this platform's own into a new file.

    Raises:
        OSError: the disk is full.
    """
    async with _writing(blobs) as writer:
        md5 = hashlib.md5(usedforsecurity=False)

        def add(piece: bytes) -> None:
            for start in range(0, len(piece), PIECE_BYTES):
                writer.write(piece[start : start + PIECE_BYTES])
            md5.update(piece)

        async for piece in pieces:
            await asyncio.to_thread(add, piece)
        return Received(writer.name, writer.size, md5.hexdigest())


@contextlib.asynccontextmanager
async def _writing(blobs: Blobs) -> AsyncIterator[BlobWriter]:
    """Give a file to write, which is gone again after an error."""
    writer = blobs.begin()
    try:
        yield writer
    except BaseException:
        writer.close()
        blobs.discard([writer.name])
        raise
    writer.close()


def _claims(request: web.Request) -> dict[str, str]:
    """Return the digests that the headers tell; empty where a trailer is going to tell it."""
    names = [name.lower() for name in request.headers]
    claims = {
        name: request.headers[name]
        for name in names
        if name == "content-md5" or name.startswith(_CHECKSUM)
    }
    trailer = request.headers.get("x-amz-trailer")
    if trailer is not None:
        claims[trailer.lower()] = ""
    return claims


def _length(request: web.Request) -> int:
    if request.content_length is None:
        raise S3Error("MissingContentLength", "A body comes with its length")
    if request.content_length > MOST_BYTES:
        raise S3Error("EntityTooLarge", f"At most {MOST_BYTES} bytes in one request")
    return request.content_length


async def _pieces(content: StreamReader, length: int) -> AsyncIterator[bytes]:
    """Yield exactly so many bytes.

    Raises:
        S3Error: `IncompleteBody`.
    """
    collected = bytearray()
    while length:
        try:
            data = await content.read(min(length, PIECE_BYTES - len(collected)))
        except (ConnectionError, web.RequestPayloadError):
            data = b""
        if not data:
            raise S3Error("IncompleteBody", "The body broke off")
        collected += data
        length -= len(data)
        if len(collected) == PIECE_BYTES:
            yield bytes(collected)
            collected.clear()
    if collected:
        yield bytes(collected)


async def _unchunked(content: StreamReader, claims: dict[str, str]) -> AsyncIterator[bytes]:
    """Yield what chunks hold, and note the checksum that stands after them."""
    while size := await _size(content):
        async for piece in _pieces(content, size):
            yield piece
        if await _line(content):
            raise S3Error("InvalidRequest", "A chunk is longer than it says")
    while line := await _line(content):
        name, _, value = line.partition(":")
        if name.strip().lower() in claims:
            claims[name.strip().lower()] = value.strip()


async def _size(content: StreamReader) -> int:
    try:
        return int((await _line(content)).partition(";")[0], 16)
    except ValueError:
        raise S3Error("InvalidRequest", "A chunk does not say how long it is") from None


async def _line(content: StreamReader) -> str:
    try:
        line = await content.readuntil(b"\n")
    except (ConnectionError, ValueError, web.RequestPayloadError):
        line = b""
    if not line.endswith(b"\n") or len(line) > _LINE_BYTES:
        raise S3Error("IncompleteBody", "The body broke off")
    return line.decode("latin-1").strip()
