"""Transfers of files to and from volumes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, SecretStr

from prime_core.models import RequestModel, ResponseModel, UtcDatetime

__all__ = ["VolumeTransferRoute"]


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
