"""Volumes."""

from __future__ import annotations

from pydantic import Field

from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime

__all__ = ["Volume", "VolumeList", "VolumeStatus", "VolumeUsage"]


class VolumeStatus(StrEnum):
    """State of a volume; newer ones are kept as plain strings.

    The dashboard and the command line call them CREATED (RUNNING), DELETING (TERMINATING) and
    DELETE FAILED (TOMBSTONED: delete it again).
    """

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TOMBSTONED = "TOMBSTONED"
    FAILED = "FAILED"


class Volume(ResponseModel):
    """A volume. Follows the page "hosted-training/volumes".

    Attributes:
        name: names it within its scope, a team or an account.
        size: what it may hold and what is paid for, such as ``500Gi``.
        status: its state; RUNNING ones can be used.
        created_by: id of who made it.
        created_by_name: what they are called.
        created_by_email: their address.
        created_at: when it was made.
    """

    name: str
    status: OpenEnum[VolumeStatus]
    size: str | None = None
    created_by: str | None = Field(default=None, alias="createdBy")
    created_by_name: str | None = Field(default=None, alias="createdByName")
    created_by_email: str | None = Field(default=None, alias="createdByEmail")
    created_at: UtcDatetime | None = Field(default=None, alias="createdAt")


class VolumeList(ResponseModel):
    """Answer of `list_volumes`."""

    volumes: list[Volume]


class VolumeUsage(ResponseModel):
    """Totals over the volumes of a scope.

    The platform does not document what they are called: they are kept as extra attributes, which
    ``model_extra`` lists. `du` counts what is on one volume.
    """


class CreateVolumeBody(RequestModel):
    """Body of `create_volume`; both defaults differ between versions of the server."""

    name: str
    size: str
    warm: bool


class ExpandVolumeBody(RequestModel):
    """Body of `expand_volume`."""

    size: str
