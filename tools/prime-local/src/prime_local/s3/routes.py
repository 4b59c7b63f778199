"""The S3 endpoint: which operation a request is, whether its sender may, and its answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from prime_local.calls import Reply
from prime_local.core import PlatformCore
from prime_local.faults import FaultRule
from prime_local.s3 import listing, multipart, objects
from prime_local.s3.calls import S3Call
from prime_local.s3.documents import error_document
from prime_local.s3.errors import S3Error, injected
from prime_local.s3.operations import PREFIX, S3Operation, find_operation

logger = logging.getLogger("prime_local")

_Handler = Callable[[S3Call], Awaitable[Reply | web.StreamResponse]]
_HANDLERS: dict[str, _Handler] = {
    "AbortMultipartUpload": multipart.abort_multipart_upload,
    "CompleteMultipartUpload": multipart.complete_multipart_upload,
    "CreateMultipartUpload": multipart.create_multipart_upload,
    "DeleteObject": objects.delete_object,
    "GetObject": objects.get_object,
    "HeadBucket": listing.head_bucket,
    "HeadObject": objects.get_object,
    "ListMultipartUploads": listing.list_multipart_uploads,
    "ListObjectsV2": listing.list_objects_v2,
    "ListParts": listing.list_parts,
    "PutObject": objects.put_object,
    "UploadPart": multipart.upload_part,
}


def find(request: web.Request) -> S3Operation | None:
    """Return the operation that a request is, if it is one that there is."""
    names = {name for name, _ in _query(request)}
    return find_operation(request.method, bool(_place(request)[1]), names)


async def answer(
    core: PlatformCore,
    request: web.Request,
    operation: S3Operation | None,
    rule: FaultRule | None,
) -> Reply | web.StreamResponse:
    """Answer a request; one that is no operation gets an error."""
    try:
        if operation is None:
            raise S3Error("NotImplemented", "The storage here does not do this")
        call = _admit(core, request, operation, rule)
        return await _HANDLERS[operation.name](call)
    except S3Error as error:
        return _error_reply(request, error)
    except OSError as error:
        logger.error("cannot store an object: %s", error)
        return _error_reply(request, S3Error("InternalError", "The object cannot be stored"))


def refusal(request: web.Request, status: int) -> Reply:
    """Return the answer that a fault rule's status is."""
    return _error_reply(request, injected(status))


def _admit(
    core: PlatformCore, request: web.Request, operation: S3Operation, rule: FaultRule | None
) -> S3Call:
    """Return the request as its handler gets it.

    Raises:
        S3Error: its sender may not make it.
    """
    key = core.s3.keys.identify(request)
    bucket, name = _place(request)
    query = dict(reversed(_query(request)))
    if operation.name != "HeadBucket" or bucket != key.bucket:
        reached = name or query.get("prefix", "")
        key.check(bucket, reached, listing=not operation.on_object, writing=operation.writes)
    return S3Call(request, core.s3.store, core.saved, bucket, name, query, rule)


def _error_reply(request: web.Request, error: S3Error) -> Reply:
    # What is left of a body would be taken for the next request.
    headers = {} if request.content.at_eof() else {"Connection": "close"}
    body = b"" if request.method == "HEAD" else error_document(error, request.path)
    return Reply(body, error.status, headers, "application/xml")


def _place(request: web.Request) -> tuple[str, str]:
    """Return the bucket and the key."""
    bucket, _, key = request.rel_url.raw_path[len(PREFIX) + 1 :].partition("/")
    return unquote(bucket), unquote(key)


def _query(request: web.Request) -> list[tuple[str, str]]:
    return parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True)
