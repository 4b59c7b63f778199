"""Transfers of files to and from volumes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from pydantic import Field, SecretStr

from prime_core.models import RequestModel, ResponseModel, UtcDatetime

__all__ = ["VolumeDiskUsage", "VolumeEntry", "VolumeGet", "VolumePut", "VolumeTransferRoute"]


@dataclass(frozen=True)
class VolumePut:
    """What a put has done.

    Attributes:
        files: files that are on the volume now.
        directories: empty folders that are there now.
        bytes: of those files.
        skipped_links: symbolic links that were left out.
        resumed_bytes: of those files, what an earlier call had sent already.
    """

    files: int
    directories: int
    bytes: int
    skipped_links: int
    resumed_bytes: int = 0


@dataclass(frozen=True)
class VolumeGet:
    """What a get has done.

    Attributes:
        files: files that are here now.
        directories: empty folders that are here now.
        bytes: of those files.
        ignored: objects that can't be files here, or are none of the user's.
        resumed_bytes: of those files, what an earlier call had fetched already.
    """

    files: int
    directories: int
    bytes: int
    ignored: int
    resumed_bytes: int = 0


@dataclass(frozen=True)
class VolumeEntry:
    """A file or a folder on a volume, as it was last saved.

    Attributes:
        path: from the volume's root on; a folder's ends in a slash.
        kind: which of them it is.
        size: bytes of a file.
        modified: when a file was stored.
    """

    path: str
    kind: Literal["file", "directory"]
    size: int | None = None
    modified: datetime | None = None


@dataclass(frozen=True)
class VolumeDiskUsage:
    """What fills a volume, as it was last saved.

    Attributes:
        bytes: under the path.
        objects: under the path; an empty folder counts as one.
        volume_bytes: in the whole volume.
        volume_objects: in the whole volume.
        capacity: the volume's size, such as ``500Gi``; `None` if the platform does not say.
        capacity_bytes: the same in bytes.
        used_percent: how full the volume is.
    """

    bytes: int
    objects: int
    volume_bytes: int
    volume_objects: int
    capacity: str | None
    capacity_bytes: int | None
    used_percent: float | None


class RouteTransferBody(RequestModel):
    """Body of `route_volume_transfer`."""

    omits_null: ClassVar[bool] = True

    mode: Literal["get", "put"]
    path: str
    entries: list[str] | None = None
    lease_id: str | None = Field(default=None, alias="leaseId")


class ReleaseTransferBody(RequestModel):
    """Body of `release_volume_transfer`."""

    lease_id: str = Field(alias="leaseId")


class VolumeTransferRoute(ResponseModel):
    """Where a transfer goes.

    Attributes:
        via: ``r2`` for an object store, ``session`` for the caller's own open session.
        endpoint: the store's address.
        bucket: its bucket.
        prefix: of the volume's objects; ends in a slash.
        access_key_id: of the temporary keys.
        secret_access_key: likewise; hidden in `repr`.
        session_token: likewise.
        expires_at: when the keys expire.
        lease_id: of a put: what holds the volume, to refresh and to release.
    """

    via: str
    endpoint: str | None = None
    bucket: str | None = None
    prefix: str | None = None
    access_key_id: str | None = Field(default=None, alias="accessKeyId", repr=False)
    secret_access_key: SecretStr | None = Field(default=None, alias="secretAccessKey")
    session_token: SecretStr | None = Field(default=None, alias="sessionToken")
    expires_at: UtcDatetime | None = Field(default=None, alias="expiresAt")
    lease_id: str | None = Field(default=None, alias="leaseId")
