"""Requests about one object."""

from __future__ import annotations

import logging
import re
from email.utils import format_datetime

from aiohttp import web

from prime_local.calls import Reply
from prime_local.s3.bodies import receive
from prime_local.s3.calls import S3Call
from prime_local.s3.errors import S3Error
from prime_local.s3.records import Description, Part, StoredObject
from prime_local.spoiling import abort, response_body

logger = logging.getLogger("prime_local")

_METADATA = "x-amz-meta-"
_KEPT_HEADERS = ("Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


async def put_object(call: S3Call) -> Reply:
    if "x-amz-copy-source" in call.request.headers:
        raise S3Error("NotImplemented", "Objects are not copied here")
    received = await receive(call.request, call.store.blobs)
    try:
        check_absent(call)
        part = Part(received.blob, received.size, received.md5, {}, call.store.now())
        made = call.store.make(
            call.bucket, call.key, [part], received.md5, describe(call), received.checksums
        )
    except S3Error:
        call.store.blobs.discard([received.blob])
        raise
    await call.saved()
    return Reply(b"", headers={"ETag": f'"{made.etag}"', **made.checksums})


async def get_object(call: S3Call) -> Reply | web.StreamResponse:
    found = _find(call)
    headers, unchanged = _headers(found), _is_unchanged(call, found)
    if unchanged:
        return Reply(b"", 304, headers)
    start, length = _range(call, found.size)
    status = 200
    if length != found.size or "Range" in call.request.headers:
        status = 206 if length or found.size else 200
        headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{found.size}"
    elif call.request.headers.get("x-amz-checksum-mode") == "ENABLED":
        headers.update(found.checksums)
    response = web.StreamResponse(status=status, headers=headers)
    response.content_length = length
    if call.request.method == "HEAD":
        await response.prepare(call.request)
        return response
    body = response_body(call.request, response, call.fault)
    pieces = call.store.blobs.read(found.segments, start, length)
    try:
        await body.start()
        async for piece in pieces:
            await body.write(piece)
        await body.end()
    except ConnectionError:
        # Its reader left, or a fault broke it off.
        pass
    except OSError as error:
        # Its head has been sent: nothing but its end can tell that it is not whole.
        logger.error("cannot read the object %s: %s", found.id, error)
        abort(call.request.transport)
    finally:
        await pieces.aclose()
    return response


async def delete_object(call: S3Call) -> Reply:
    call.store.delete(call.bucket, call.key)
    await call.saved()
    return Reply(b"", 204)


def describe(call: S3Call) -> Description:
    """Return what the headers of a request say of its object."""
    headers = call.request.headers
    encoding = headers.get("Content-Encoding", "").replace("aws-chunked", "").strip(" ,")
    kept = {name: headers[name] for name in _KEPT_HEADERS if name in headers}
    kept.pop("Content-Encoding", None)
    return Description(
        content_type=headers.get("Content-Type", Description.content_type),
        metadata={
            name.lower()[len(_METADATA) :]: value
            for name, value in headers.items()
            if name.lower().startswith(_METADATA)
        },
        headers={**kept, **({"Content-Encoding": encoding} if encoding else {})},
    )


def check_absent(call: S3Call) -> None:
    """Refuse to write an object that is there, where the request says so.

    Raises:
        S3Error: `PreconditionFailed`, or `NotImplemented` for another condition.
    """
    condition = call.request.headers.get("If-None-Match")
    if condition not in (None, "*") or "If-Match" in call.request.headers:
        raise S3Error("NotImplemented", "A write is conditional on If-None-Match: * alone")
    if condition is not None and call.store.find(call.bucket, call.key) is not None:
        raise S3Error("PreconditionFailed", "The object is there")


def _find(call: S3Call) -> StoredObject:
    if "partNumber" in call.query:
        raise S3Error("NotImplemented", "An object is not read by its parts here")
    found = call.store.find(call.bucket, call.key)
    if found is None:
        raise S3Error("NoSuchKey", "There is no such object")
    wanted = call.request.headers.get("If-Match")
    if wanted is not None and found.etag not in _etags(wanted) and wanted != "*":
        raise S3Error("PreconditionFailed", "The object is another one by now")
    return found


def _is_unchanged(call: S3Call, found: StoredObject) -> bool:
    return found.etag in _etags(call.request.headers.get("If-None-Match", ""))


def _etags(header: str) -> list[str]:
    return [etag.strip().strip('"') for etag in header.split(",")]


def _headers(found: StoredObject) -> dict[str, str]:
    described = found.description
    return {
        "Content-Type": described.content_type,
        **described.headers,
        **{_METADATA + name: value for name, value in described.metadata.items()},
        "ETag": f'"{found.etag}"',
        "Last-Modified": format_datetime(found.modified_at, usegmt=True),
        "Accept-Ranges": "bytes",
    }


def _range(call: S3Call, size: int) -> tuple[int, int]:
    """Return where the wanted bytes begin, and how many they are.

    Raises:
        S3Error: `InvalidRange`.
    """
    header = call.request.headers.get("Range")
    if header is None:
        return 0, size
    found = _RANGE.fullmatch(header.replace(" ", ""))
    if found is None or found[1] == found[2] == "":
        raise S3Error("NotImplemented", "One range of bytes can be asked for")
    if not found[1]:
        length = min(int(found[2]), size)
        start = size - length
    else:
        start = int(found[1])
        end = min(int(found[2] or size - 1), size - 1)
        length = end - start + 1
    if length <= 0:
        raise S3Error("InvalidRange", f"The object has {size} bytes")
    return start, length
