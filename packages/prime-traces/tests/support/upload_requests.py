"""What the tests of uploads share: a server's receipts, and what was sent to it."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

from raw_server import Received, Wire, response

from prime_traces import UploadReceipt, iter_batches
from prime_traces.records import encode_record

T = TypeVar("T")

SMALL = 2000  # bytes of a batch, some 25 records


async def receipt(wire: Wire, request: Received) -> None:
    """Stores the batch, as far as the client can tell."""
    digest = request.headers["idempotency-key"].removeprefix("sha256:")
    await wire.send(response(201, {"upload_id": digest, "status": "committed"}))


def lines_of(request: Received) -> list[bytes]:
    """The lines that a request brings."""
    boundary = request.headers["content-type"].partition("boundary=")[2].encode()
    part = request.body.split(b"--" + boundary)[2]
    head, _, data = part.removesuffix(b"\r\n").partition(b"\r\n\r\n")
    if b"Content-Encoding: gzip" in head:
        data = gzip.decompress(data)
    return data.splitlines(keepends=True)


def digests(records: Iterable[dict[str, Any]], target: int = SMALL) -> list[str]:
    lines = [encode_record(record) for record in records]
    return [batch.digest for batch in iter_batches(lines, target_bytes=target)]


def ids(receipts: list[UploadReceipt]) -> list[str]:
    return [each.upload_id for each in receipts]


async def later(items: Iterable[T]) -> AsyncIterator[T]:
    for item in items:
        await asyncio.sleep(0)
        yield item
