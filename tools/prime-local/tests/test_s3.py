"""The S3 endpoint, as botocore's client sees it."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from s3_client import MIB, S3Client, complete, own_bucket, s3_client, upload

from prime_local import LocalPlatform

if TYPE_CHECKING:
    pass

PART = 5 * MIB


@pytest.fixture
def s3(prime_platform: LocalPlatform) -> S3Client:
    return own_bucket(prime_platform)


async def test_an_object_comes_back_with_what_was_said_of_it(s3: S3Client) -> None:
    put = await s3(
        "put_object",
        Key="folder/a b+c.txt",
        Body=b"hello",
        ContentType="text/plain",
        Metadata={"md5chksum": "XUFAKrxLKna5cZ2REBfFkg==", "mtime": "1700000000.5"},
    )
    found = await s3("head_object", Key="folder/a b+c.txt")
    assert found["Metadata"] == {
        "md5chksum": "XUFAKrxLKna5cZ2REBfFkg==",
        "mtime": "1700000000.5",
    }
    assert (found["ContentLength"], found["ContentType"]) == (5, "text/plain")
    assert found["ETag"] == put["ETag"] == f'"{hashlib.md5(b"hello").hexdigest()}"'
    assert abs((found["LastModified"] - datetime.now(timezone.utc)).total_seconds()) < 60
    assert await s3.read("folder/a b+c.txt") == b"hello"
    assert await s3.keys() == ["folder/a b+c.txt"]


async def test_an_object_is_replaced_and_deleted(s3: S3Client) -> None:
    await s3("put_object", Key="a", Body=b"one")
    await s3("put_object", Key="a", Body=b"two")
    assert (await s3.read("a"), await s3.keys()) == (b"two", ["a"])
    await s3("delete_object", Key="a")
    await s3("delete_object", Key="a")
    assert await s3.error("get_object", Key="a") == ("NoSuchKey", 404)
    assert await s3.error("head_object", Key="a") == ("404", 404)
    assert await s3.keys() == []


@pytest.mark.parametrize(
    ("header", "expected", "told"),
    [
        ("bytes=0-0", b"0", "bytes 0-0/10"),
        ("bytes=3-5", b"345", "bytes 3-5/10"),
        ("bytes=7-", b"789", "bytes 7-9/10"),
        ("bytes=7-99", b"789", "bytes 7-9/10"),
        ("bytes=-4", b"6789", "bytes 6-9/10"),
        ("bytes=0-9", b"0123456789", "bytes 0-9/10"),
    ],
)
async def test_a_range_is_read(s3: S3Client, header: str, expected: bytes, told: str) -> None:
    await s3("put_object", Key="a", Body=b"0123456789")
    answer, body = await s3.get("a", Range=header)
    assert (body, answer["ContentRange"]) == (expected, told)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 206
    head = await s3("head_object", Key="a", Range=header)
    assert head["ContentLength"] == len(expected)


async def test_a_range_beyond_the_end_is_refused(s3: S3Client) -> None:
    await s3("put_object", Key="a", Body=b"0123456789")
    await s3("put_object", Key="empty", Body=b"")
    assert await s3.error("get_object", Key="a", Range="bytes=10-") == ("InvalidRange", 416)
    assert await s3.error("get_object", Key="empty", Range="bytes=0-") == ("InvalidRange", 416)
    assert await s3.read("empty") == b""


async def test_conditions_are_kept(s3: S3Client) -> None:
    etag = (await s3("put_object", Key="a", Body=b"one", IfNoneMatch="*"))["ETag"]
    refused = ("PreconditionFailed", 412)
    assert await s3.error("put_object", Key="a", Body=b"two", IfNoneMatch="*") == refused
    assert await s3.read("a", IfMatch=etag) == b"one"
    assert await s3.error("get_object", Key="a", IfMatch='"other"') == refused
    assert await s3.error("get_object", Key="a", IfNoneMatch=etag) == ("304", 304)


async def test_lists_go_page_by_page(s3: S3Client) -> None:
    keys = [f"d{number % 3}/x{number:03}" for number in range(25)] + ["z ü/100%", "z+1"]
    for key in keys:
        await s3("put_object", Key=key, Body=b"")
    seen: list[str] = []
    token: dict[str, Any] = {}
    while True:
        page = await s3("list_objects_v2", MaxKeys=7, **token)
        seen += [each["Key"] for each in page["Contents"]]
        assert page["KeyCount"] == len(page["Contents"]) <= 7
        if not page["IsTruncated"]:
            break
        token = {"ContinuationToken": page["NextContinuationToken"]}
    assert seen == sorted(keys)
    assert await s3.keys(Prefix="d1/") == sorted(key for key in keys if key.startswith("d1/"))
    assert await s3.keys(StartAfter="z") == ["z ü/100%", "z+1"]


async def test_folders_are_common_prefixes(s3: S3Client) -> None:
    for key in ("a", "b/", "b/1", "b/c/2", "d/3", "e"):
        await s3("put_object", Key=key, Body=b"x")
    page = await s3("list_objects_v2", Delimiter="/")
    assert [each["Key"] for each in page["Contents"]] == ["a", "e"]
    assert [each["Prefix"] for each in page["CommonPrefixes"]] == ["b/", "d/"]
    page = await s3("list_objects_v2", Delimiter="/", Prefix="b/")
    assert [each["Key"] for each in page["Contents"]] == ["b/", "b/1"]
    assert [each["Prefix"] for each in page["CommonPrefixes"]] == ["b/c/"]
    groups: list[str] = []
    token: dict[str, Any] = {}
    for _ in range(4):
        page = await s3("list_objects_v2", Delimiter="/", MaxKeys=1, **token)
        groups += [each.get("Key") or each.get("Prefix") for each in page.get("Contents", [])]
        groups += [each["Prefix"] for each in page.get("CommonPrefixes", [])]
        token = {"ContinuationToken": page.get("NextContinuationToken", "")}
    assert (groups, page["IsTruncated"]) == (["a", "b/", "d/", "e"], False)


async def test_an_object_is_made_of_parts(s3: S3Client) -> None:
    parts = [random.Random(number).randbytes(PART) for number in range(2)] + [b"end"]
    upload_id = await upload(s3, "big", parts, Metadata={"mtime": "1.5"}, ChecksumAlgorithm="CRC32")
    assert await s3.keys() == []
    done = await complete(s3, "big", upload_id)
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    assert done["ChecksumCRC32"].endswith("-3")
    whole = b"".join(parts)
    assert await s3.read("big") == whole
    border = f"bytes={PART - 10}-{PART + 9}"
    assert await s3.read("big", Range=border) == whole[PART - 10 : PART + 10]
    assert (await s3("head_object", Key="big"))["Metadata"] == {"mtime": "1.5"}
    assert await s3.error("list_parts", Key="big", UploadId=upload_id) == ("NoSuchUpload", 404)


async def test_unfinished_uploads_are_listed_and_aborted(s3: S3Client) -> None:
    ids = [await upload(s3, key, [b"x"]) for key in ("a/1", "a/2", "a/2", "b")]
    found = await s3("list_multipart_uploads", Prefix="a/")
    assert [each["UploadId"] for each in found["Uploads"]] == ids[:3]
    page = await s3("list_multipart_uploads", MaxUploads=2)
    assert (page["IsTruncated"], page["NextKeyMarker"]) == (True, "a/2")
    rest = await s3(
        "list_multipart_uploads",
        KeyMarker=page["NextKeyMarker"],
        UploadIdMarker=page["NextUploadIdMarker"],
    )
    assert [each["UploadId"] for each in rest["Uploads"]] == ids[2:]
    await s3("abort_multipart_upload", Key="a/2", UploadId=ids[1])
    gone = ("NoSuchUpload", 404)
    assert await s3.error("abort_multipart_upload", Key="a/2", UploadId=ids[1]) == gone
    assert await s3.error("upload_part", Key="a/1", UploadId=ids[1], PartNumber=1, Body=b"") == gone


async def test_parts_are_listed_page_by_page_and_replaced(s3: S3Client) -> None:
    upload_id = await upload(s3, "a", [b"1", b"22", b"333"])
    await s3("upload_part", Key="a", UploadId=upload_id, PartNumber=2, Body=b"4444")
    page = await s3("list_parts", Key="a", UploadId=upload_id, MaxParts=2)
    assert [each["Size"] for each in page["Parts"]] == [1, 4]
    rest = await s3(
        "list_parts", Key="a", UploadId=upload_id, PartNumberMarker=page["NextPartNumberMarker"]
    )
    assert [(each["PartNumber"], each["Size"]) for each in rest["Parts"]] == [(3, 3)]


@pytest.mark.parametrize(
    ("parts", "numbers", "code"),
    [
        ([b"small", b"end"], [1, 2], "EntityTooSmall"),
        ([bytes(PART), bytes(PART + 1), b"end"], [1, 2, 3], "InvalidPart"),
        ([b"one", b"two"], [2, 1], "InvalidPartOrder"),
        ([b"one"], [1, 2], "InvalidPart"),
    ],
)
async def test_wrong_parts_are_refused(
    s3: S3Client, parts: list[bytes], numbers: list[int], code: str
) -> None:
    upload_id = await upload(s3, "a", parts)
    etags = [f'"{hashlib.md5(part).hexdigest()}"' for part in [*parts, b"", b""]]
    wanted = [{"PartNumber": number, "ETag": etags[number - 1]} for number in numbers]
    refused = await s3.error(
        "complete_multipart_upload",
        Key="a",
        UploadId=upload_id,
        MultipartUpload={"Parts": wanted},
    )
    assert refused == (code, 400)
    assert await s3.keys() == []


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
async def test_checksums_are_compared_and_told(s3: S3Client, algorithm: str) -> None:
    name = f"Checksum{algorithm}"
    put = await s3("put_object", Key="a", Body=b"hello", ChecksumAlgorithm=algorithm)
    found = await s3("get_object", Key="a", ChecksumMode="ENABLED")
    assert put[name] == found[name]
    refused = await s3.error("put_object", Key="a", Body=b"other", **{name: put[name]})
    assert refused == ("BadDigest", 400)
    assert await s3.read("a") == b"hello"


async def test_a_wrong_md5_is_refused(s3: S3Client) -> None:
    refused = await s3.error(
        "put_object", Key="a", Body=b"hello", ContentMD5="rL0Y20zC+Fzt72VPzMSk2A=="
    )
    assert (refused, await s3.keys()) == (("BadDigest", 400), [])


async def test_what_is_not_served_is_refused(s3: S3Client) -> None:
    await s3("put_object", Key="a", Body=b"x")
    refused = ("NotImplemented", 501)
    assert await s3.error("copy_object", Key="b", CopySource="mine/a") == refused
    assert await s3.error("get_object_tagging", Key="a") == refused
    assert await s3.error("list_objects") == refused
    assert await s3.error("put_object", Key="b", Body=b"", ChecksumCRC64NVME="AA==") == refused
    assert await s3.error("put_object", Key="x" * 1025, Body=b"") == ("KeyTooLongError", 400)


async def test_strangers_are_refused(prime_platform: LocalPlatform, s3: S3Client) -> None:
    await s3("put_object", Key="a", Body=b"x")
    keys = prime_platform.add_bucket("mine")
    right = (keys["access_key_id"], keys["secret_access_key"])

    async def error(bucket: str, access_key: str, secret: str, token: str | None = None) -> Any:
        other = s3_client(keys["endpoint"], bucket, access_key, secret, token)
        return await other.error("get_object", Key="a")

    assert await error("mine", "AKUNKNOWN", right[1]) == ("InvalidAccessKeyId", 403)
    assert await error("mine", right[0], "wrong") == ("SignatureDoesNotMatch", 403)
    assert await error("mine", *right, token="other") == ("InvalidToken", 400)
    assert await error("training-volumes", *right) == ("AccessDenied", 403)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{keys['endpoint']}/mine/a") as answer,
    ):
        assert (answer.status, "AccessDenied" in await answer.text()) == (403, True)


async def test_a_body_that_was_not_signed_is_refused(s3: S3Client) -> None:
    def change(request: Any, **_: Any) -> None:
        request.body = b"changed"

    s3.client.meta.events.register("before-send.s3.PutObject", change)
    refused = await s3.error("put_object", Key="a", Body=b"as sent")
    assert refused == ("XAmzContentSHA256Mismatch", 400)


async def test_a_request_that_was_changed_is_refused(s3: S3Client) -> None:
    def change(request: Any, **_: Any) -> None:
        request.headers["x-amz-meta-mtime"] = "2"

    s3.client.meta.events.register("before-send.s3.PutObject", change)
    refused = await s3.error("put_object", Key="a", Body=b"", Metadata={"mtime": "1"})
    assert refused == ("SignatureDoesNotMatch", 403)


async def test_a_header_that_was_not_signed_is_refused(s3: S3Client) -> None:
    def change(request: Any, **_: Any) -> None:
        request.headers["x-amz-meta-mtime"] = "2"

    s3.client.meta.events.register("before-send.s3.PutObject", change)
    assert await s3.error("put_object", Key="a", Body=b"") == ("AccessDenied", 403)


async def test_an_old_signature_is_refused(
    s3: S3Client, monkeypatch: pytest.MonkeyPatch, prime_platform: LocalPlatform
) -> None:
    await prime_platform.advance(3600)  # those who sign are not told
    await s3("put_object", Key="a", Body=b"")
    late = datetime.now(timezone.utc) - timedelta(minutes=20)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_: late)
    assert await s3.error("put_object", Key="a", Body=b"") == ("RequestTimeTooSkewed", 403)


async def test_trailing_checksums_are_compared(prime_platform: LocalPlatform) -> None:
    """As clients send them over TLS."""
    s3 = own_bucket(prime_platform, request_checksum_calculation="when_required")
    crc = base64.b64encode(zlib.crc32(b"hello world").to_bytes(4, "big")).decode()

    def chunk(checksum: str) -> Any:
        def change(request: Any, **_: Any) -> None:
            request.context["checksum"] = {"request_algorithm": {"in": "trailer"}}
            request.headers["x-amz-trailer"] = "x-amz-checksum-crc32"
            request.headers["Content-Encoding"] = "aws-chunked"
            pieces = b"5\r\nhello\r\n6\r\n world\r\n0\r\n"
            request.data = pieces + f"x-amz-checksum-crc32:{checksum}\r\n\r\n".encode()

        return change

    events = s3.client.meta.events
    for checksum, expected in ((crc, None), ("AAAAAA==", ("BadDigest", 400))):
        change = chunk(checksum)
        events.register_first("before-sign.s3.PutObject", change)
        put = {"Key": "a", "Body": b""}
        if expected is None:
            await s3("put_object", **put)
        else:
            assert await s3.error("put_object", **put) == expected
        events.unregister("before-sign.s3.PutObject", change)
    answer, body = await s3.get("a", ChecksumMode="ENABLED")
    assert (body, answer["ChecksumCRC32"]) == (b"hello world", crc)
    assert "ContentEncoding" not in answer
