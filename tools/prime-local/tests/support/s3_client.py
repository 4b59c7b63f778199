"""A client of S3's own: botocore's, whose calls run in threads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

MIB = 1024 * 1024


@dataclass
class S3Client:
    """Calls operations by their names: ``await s3("put_object", Key="a", Body=b"x")``."""

    client: Any
    bucket: str

    async def __call__(self, operation: str, **fields: Any) -> Any:
        return await asyncio.to_thread(
            getattr(self.client, operation), Bucket=self.bucket, **fields
        )

    async def error(self, operation: str, **fields: Any) -> tuple[str, int]:
        """Return the code and the status of the error that a call gets."""
        try:
            await self(operation, **fields)
        except ClientError as error:
            answer: Any = error.response
            return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]
        raise AssertionError(f"{operation} succeeded")

    async def read(self, key: str, **fields: Any) -> bytes:
        return (await self.get(key, **fields))[1]

    async def get(self, key: str, **fields: Any) -> tuple[Any, bytes]:
        """Return the answer to a read, and the whole body."""
        answer = await self("get_object", Key=key, **fields)
        return answer, await asyncio.to_thread(answer["Body"].read)

    async def keys(self, **fields: Any) -> list[str]:
        answer = await self("list_objects_v2", **fields)
        return [each["Key"] for each in answer.get("Contents", [])]


def s3_client(
    endpoint: str,
    bucket: str,
    access_key: str,
    secret_key: str,
    token: str | None = None,
    **config: Any,
) -> S3Client:
    """Return a client that repeats nothing."""
    client = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=endpoint,
        region_name="auto",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )
    return S3Client(client, bucket)


def client_of(route: dict[str, Any]) -> S3Client:
    """Return a client with the keys of a transfer route."""
    return s3_client(
        route["endpoint"],
        route["bucket"],
        route["accessKeyId"],
        route["secretAccessKey"],
        route["sessionToken"],
    )


def own_bucket(platform: Any, name: str = "mine", **config: Any) -> S3Client:
    """Make a bucket and return a client that may do everything with it."""
    keys = platform.add_bucket(name)
    return s3_client(
        keys["endpoint"], name, keys["access_key_id"], keys["secret_access_key"], **config
    )


async def upload(s3: S3Client, key: str, parts: list[bytes], **fields: Any) -> str:
    """Begin an upload and send its parts."""
    begun = await s3("create_multipart_upload", Key=key, **fields)
    for number, part in enumerate(parts, 1):
        await s3("upload_part", Key=key, UploadId=begun["UploadId"], PartNumber=number, Body=part)
    upload_id: str = begun["UploadId"]
    return upload_id


async def complete(s3: S3Client, key: str, upload_id: str) -> Any:
    found = await s3("list_parts", Key=key, UploadId=upload_id)
    wanted = ("PartNumber", "ETag", "ChecksumCRC32")
    parts = [{name: part[name] for name in wanted if name in part} for part in found["Parts"]]
    return await s3(
        "complete_multipart_upload",
        Key=key,
        UploadId=upload_id,
        MultipartUpload={"Parts": parts},
    )
