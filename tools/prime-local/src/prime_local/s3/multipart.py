"""Requests about uploads in several parts."""

from __future__ import annotations

import base64
import hashlib
import itertools

from prime_local.calls import Reply
from prime_local.s3.bodies import new_digest, receive
from prime_local.s3.calls import MOST_PARTS, S3Call, xml_reply
from prime_local.s3.documents import checksum_fields, read_parts
from prime_local.s3.errors import S3Error
from prime_local.s3.objects import check_absent, describe
from prime_local.s3.records import Part, Upload

_LEAST_BYTES = 5 * 1024 * 1024
_BODY_BYTES = 8 * 1024 * 1024
_CHECKSUM = "x-amz-checksum-"


async def create_multipart_upload(call: S3Call) -> Reply:
    algorithm = call.request.headers.get("x-amz-checksum-algorithm", "").lower()
    if algorithm:
        new_digest(algorithm)
    if call.request.headers.get("x-amz-checksum-type", "COMPOSITE") != "COMPOSITE":
        raise S3Error("NotImplemented", "An object of parts has a checksum of their checksums")
    upload = call.store.begin(call.bucket, call.key, describe(call), algorithm)
    await call.saved()
    return xml_reply(
        "InitiateMultipartUploadResult",
        {"Bucket": call.bucket, "Key": call.key, "UploadId": upload.id},
    )


async def upload_part(call: S3Call) -> Reply:
    number = call.number("partNumber", 0, MOST_PARTS + 1)
    if not 1 <= number <= MOST_PARTS:
        raise S3Error("InvalidArgument", f"A part has a number of 1 to {MOST_PARTS}")
    _upload(call)
    received = await receive(call.request, call.store.blobs)
    try:
        upload = _upload(call)  # it may have ended meanwhile
    except S3Error:
        call.store.blobs.discard([received.blob])
        raise
    now, checksums = call.store.now(), received.checksums
    part = Part(received.blob, received.size, received.md5, checksums, now)
    call.store.add_part(upload, number, part)
    await call.saved()
    return Reply(b"", headers={"ETag": f'"{part.md5}"', **checksums})


async def complete_multipart_upload(call: S3Call) -> Reply:
    upload = _upload(call)
    body = await call.request.content.read(_BODY_BYTES)
    while not call.request.content.at_eof():
        body += await call.request.content.read(_BODY_BYTES)
        if len(body) > _BODY_BYTES:
            raise S3Error("MalformedXML", "The list of parts is too long")
    check_absent(call)
    chosen = _choose(upload, read_parts(body))
    parts = [upload.parts[number] for number in chosen]
    raw = b"".join(bytes.fromhex(part.md5) for part in parts)
    etag = f"{hashlib.md5(raw, usedforsecurity=False).hexdigest()}-{len(parts)}"
    made = call.store.complete(upload, chosen, etag, _composite(upload, parts))
    await call.saved()
    return xml_reply(
        "CompleteMultipartUploadResult",
        {
            "Location": str(call.request.url.with_query(None)),
            "Bucket": call.bucket,
            "Key": call.key,
            "ETag": f'"{etag}"',
            **checksum_fields(made.checksums),
        },
    )


async def abort_multipart_upload(call: S3Call) -> Reply:
    call.store.abort(_upload(call))
    await call.saved()
    return Reply(b"", 204)


def _upload(call: S3Call) -> Upload:
    return call.store.upload(call.query["uploadId"], call.bucket, call.key)


def _choose(upload: Upload, wanted: list[dict[str, str]]) -> list[int]:
    """Return the numbers of the parts that are to make the object.

    Raises:
        S3Error: `InvalidPart`, `InvalidPartOrder` or `EntityTooSmall`.
    """
    numbers = [int(part["PartNumber"]) for part in wanted]
    if any(one >= other for one, other in itertools.pairwise(numbers)):
        raise S3Error("InvalidPartOrder", "The parts are named in the order of their numbers")
    for number, told in zip(numbers, wanted, strict=True):
        part = upload.parts.get(number)
        if part is None or told.get("ETag", "").strip('"') != part.md5:
            raise S3Error("InvalidPart", f"Part {number} was not uploaded, or is another one")
        if any(
            told.get(name, value) != value
            for name, value in checksum_fields(part.checksums).items()
        ):
            raise S3Error("InvalidPart", f"Part {number} has another checksum")
    sizes = [upload.parts[number].size for number in numbers]
    if any(size < _LEAST_BYTES for size in sizes[:-1]):
        raise S3Error("EntityTooSmall", f"Parts but the last have at least {_LEAST_BYTES} bytes")
    if len(set(sizes[:-1])) > 1 or sizes[-1] > sizes[0]:
        # R2 wants this, S3 does not.
        raise S3Error("InvalidPart", "All non-trailing parts must have the same length")
    return numbers


def _composite(upload: Upload, parts: list[Part]) -> dict[str, str]:
    """Return the checksum of the parts' checksums, if each of them has one."""
    header = _CHECKSUM + upload.algorithm
    told = [part.checksums[header] for part in parts if header in part.checksums]
    if not upload.algorithm or len(told) < len(parts):
        return {}
    digest = new_digest(upload.algorithm)
    for value in told:
        digest.update(base64.b64decode(value))
    return {header: f"{base64.b64encode(digest.digest()).decode()}-{len(parts)}"}
