"""Copies between volumes and buckets."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from prime_core.models import (
    OpenEnum,
    RequestModel,
    ResponseModel,
    SentSecret,
    StrEnum,
    UtcDatetime,
)

__all__ = [
    "FINAL_TRANSFER_STATUSES",
    "BucketCredentials",
    "BucketTransfer",
    "BucketTransferList",
    "BucketTransferProgress",
    "BucketTransferStatus",
]

_URL = re.compile(r"s3://[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9](/[^\s]*)?")


class BucketTransferStatus(StrEnum):
    """State of a copy; newer ones are kept as plain strings."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_TRANSFER_STATUSES = frozenset(
    {
        BucketTransferStatus.SUCCEEDED,
        BucketTransferStatus.FAILED,
        BucketTransferStatus.CANCELLED,
    }
)


class BucketCredentials(RequestModel):
    """Keys to a bucket; they are sent with the copy that needs them, and never come back.

    Attributes:
        access_key_id: names the key.
        secret_access_key: its secret; hidden in `repr`.
        session_token: of temporary keys; likewise.
    """

    omits_null: ClassVar[bool] = True

    access_key_id: str = Field(alias="accessKeyId", min_length=1)
    secret_access_key: SentSecret = Field(alias="secretAccessKey")
    session_token: SentSecret | None = Field(default=None, alias="sessionToken")


class CreateBucketTransferBody(RequestModel):
    """Body of `create_bucket_transfer`."""

    omits_null: ClassVar[bool] = True

    direction: Literal["import", "export"]
    path: str
    url: str
    credentials: BucketCredentials
    region: str | None = None
    endpoint_url: str | None = Field(default=None, alias="endpointUrl")

    @field_validator("url")
    @classmethod
    def _is_of_a_bucket(cls, url: str) -> str:
        if not _URL.fullmatch(url):
            raise ValueError("a bucket's address is s3://bucket or s3://bucket/prefix")
        return url


class BucketTransferProgress(ResponseModel):
    """How far a copy is.

    Attributes:
        transferred: for people, such as ``412.345 GiB``.
        total: likewise.
        percentage: of the bytes.
        rate: for people, such as ``182.400 MiB/s``.
        eta: what is left, such as ``1h48m0s``.
        errors: files that failed so far.
    """

    transferred: str | None = None
    total: str | None = None
    percentage: int | None = None
    rate: str | None = None
    eta: str | None = None
    errors: int | None = None


class BucketTransfer(ResponseModel):
    """A copy between a volume and a bucket.

    Attributes:
        id: names it.
        volume_name: the volume.
        direction: ``import`` to the volume, or ``export`` from it.
        path: folder on the volume, whose contents are copied.
        url: the bucket's end, ``s3://bucket/prefix``.
        status: its state.
        progress: how far it is, while it runs.
        created_at: when it was asked for.
        started_at: when it began.
        completed_at: when it ended.
        error_message: why it failed.
    """

    id: str
    volume_name: str = Field(alias="volumeName")
    direction: str
    path: str
    url: str
    status: OpenEnum[BucketTransferStatus]
    progress: BucketTransferProgress | None = None
    created_at: UtcDatetime | None = Field(default=None, alias="createdAt")
    started_at: UtcDatetime | None = Field(default=None, alias="startedAt")
    completed_at: UtcDatetime | None = Field(default=None, alias="completedAt")
    error_message: str | None = Field(default=None, alias="errorMessage")


class BucketTransferList(ResponseModel):
    """Answer of `list_bucket_transfers`."""

    transfers: list[BucketTransfer]
