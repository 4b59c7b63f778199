"""Requests about what a bucket holds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from urllib.parse import quote

from prime_local.calls import Reply
from prime_local.s3.calls import MOST_LISTED, MOST_PARTS, S3Call, xml_reply
from prime_local.s3.documents import Content, checksum_fields
from prime_local.s3.errors import S3Error
from prime_local.s3.records import Part, StoredObject

# What comes after every key that begins with the same prefix.
_LAST = chr(0x10FFFF)


async def head_bucket(call: S3Call) -> Reply:
    call.store.uploads(call.bucket, "")
    return Reply(b"")


async def list_objects_v2(call: S3Call) -> Reply:
    if call.query["list-type"] != "2":
        raise S3Error("InvalidArgument", "list-type is 2")
    prefix, delimiter = call.query.get("prefix", ""), call.query.get("delimiter", "")
    token, most = call.query.get("continuation-token"), call.number("max-keys", 1000, MOST_LISTED)
    after = call.query.get("start-after", "") if token is None else _read_token(token)
    found, groups, rest = _page(call, prefix, delimiter, after, most)
    written = _written(call)
    fields: dict[str, Content] = {
        "Name": call.bucket,
        "Prefix": written(prefix),
        "KeyCount": len(found) + len(groups),
        "MaxKeys": most,
        "IsTruncated": rest is not None,
        "Contents": [_entry(each, written) for each in found],
        "CommonPrefixes": [{"Prefix": written(group)} for group in groups],
    }
    if delimiter:
        fields["Delimiter"] = written(delimiter)
    if "start-after" in call.query:
        fields["StartAfter"] = written(call.query["start-after"])
    if "encoding-type" in call.query:
        fields["EncodingType"] = "url"
    if token is not None:
        fields["ContinuationToken"] = token
    if rest is not None:
        fields["NextContinuationToken"] = base64.urlsafe_b64encode(rest.encode()).decode()
    return xml_reply("ListBucketResult", fields)


async def list_parts(call: S3Call) -> Reply:
    upload = call.store.upload(call.query["uploadId"], call.bucket, call.key)
    most = call.number("max-parts", MOST_LISTED, MOST_LISTED)
    after = call.number("part-number-marker", 0, MOST_PARTS)
    rest = [number for number in sorted(upload.parts) if number > after]
    shown = rest[:most]
    return xml_reply(
        "ListPartsResult",
        {
            "Bucket": call.bucket,
            "Key": upload.key,
            "UploadId": upload.id,
            "PartNumberMarker": after,
            "NextPartNumberMarker": shown[-1] if shown else after,
            "MaxParts": most,
            "IsTruncated": len(rest) > len(shown),
            "Part": [_part(number, upload.parts[number]) for number in shown],
        },
    )


async def list_multipart_uploads(call: S3Call) -> Reply:
    if "delimiter" in call.query:
        raise S3Error("NotImplemented", "Uploads are not grouped here")
    prefix, most = call.query.get("prefix", ""), call.number("max-uploads", 1000, MOST_LISTED)
    marker, id_marker = call.query.get("key-marker", ""), call.query.get("upload-id-marker", "")
    found = call.store.uploads(call.bucket, prefix)
    places = [upload.id for upload in found if upload.key == marker]
    if id_marker in places:
        passed = {*places[: places.index(id_marker) + 1]}
        found = [each for each in found if each.key >= marker and each.id not in passed]
    else:
        found = [each for each in found if each.key > marker]
    written, shown = _written(call), found[:most]
    fields: dict[str, Content] = {
        "Bucket": call.bucket,
        "KeyMarker": written(marker),
        "UploadIdMarker": id_marker,
        "Prefix": written(prefix),
        "MaxUploads": most,
        "IsTruncated": len(found) > len(shown),
        "Upload": [
            {"Key": written(each.key), "UploadId": each.id, "Initiated": each.created_at}
            for each in shown
        ],
    }
    if "encoding-type" in call.query:
        fields["EncodingType"] = "url"
    if len(found) > len(shown) and shown:
        fields["NextKeyMarker"] = written(shown[-1].key)
        fields["NextUploadIdMarker"] = shown[-1].id
    return xml_reply("ListMultipartUploadsResult", fields)


def _written(call: S3Call) -> Callable[[str], str]:
    """Return how keys stand in the answer: as they are, or percent-encoded when that is wanted.

    Raises:
        S3Error: `InvalidArgument`.
    """
    encoding = call.query.get("encoding-type")
    if encoding not in (None, "url"):
        raise S3Error("InvalidArgument", "encoding-type is url")
    return str if encoding is None else quote


def _page(
    call: S3Call, prefix: str, delimiter: str, after: str, most: int
) -> tuple[list[StoredObject], list[str], str | None]:
    """Return objects, common prefixes, and after which key there are more, if there are."""
    found: list[StoredObject] = []
    groups: list[str] = []
    last = after
    while True:
        each = next(call.store.after(call.bucket, prefix, last), None)
        if each is None:
            return found, groups, None
        if len(found) + len(groups) >= most:
            return found, groups, last if most else None
        cut = each.key.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            found.append(each)
            last = each.key
        else:
            groups.append(each.key[: cut + len(delimiter)])
            last = groups[-1] + _LAST


def _entry(each: StoredObject, written: Callable[[str], str]) -> dict[str, Content]:
    return {
        "Key": written(each.key),
        "LastModified": each.modified_at,
        "ETag": f'"{each.etag}"',
        "Size": each.size,
        "StorageClass": "STANDARD",
    }


def _read_token(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token.encode()).decode()
    except (binascii.Error, ValueError):
        raise S3Error("InvalidArgument", "The continuation token is none of ours") from None


def _part(number: int, part: Part) -> dict[str, Content]:
    return {
        "PartNumber": number,
        "LastModified": part.modified_at,
        "ETag": f'"{part.md5}"',
        "Size": part.size,
        **checksum_fields(part.checksums),
    }
