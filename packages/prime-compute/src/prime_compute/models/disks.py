"""Disks: storage that outlives pods."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from prime_compute.models.base import CamelModel
from prime_compute.models.listing import OffsetList
from prime_core.exact import ExactNumbers, Price
from prime_core.models import OpenEnum, RequestModel, StrEnum, UtcDatetime

MAX_DISK_NAME = 255


class DiskStatus(StrEnum):
    """State of a disk; newer ones are kept as plain strings. Only ACTIVE ones can be used."""

    PROVISIONING = "PROVISIONING"
    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    STOPPED = "STOPPED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    UNKNOWN = "UNKNOWN"
    TERMINATED = "TERMINATED"


class DiskInfo(CamelModel):
    """Where a disk is.

    Attributes:
        country: ISO code.
        data_center_id: data centre; a pod must be in the same one.
        cloud_id: the provider's plan.
        is_multinode: whether several pods can have it.
    """

    country: str | None = None
    data_center_id: str | None = None
    cloud_id: str | None = None
    is_multinode: bool | None = None


class Disk(CamelModel):
    """A disk. Follows the page "api-reference/managing-disks".

    Attributes:
        id: names it.
        name: as it was made, with the mark of `DiskRequest.name`, or as it was renamed.
        created_at: time of creation; it is billed from then on.
        updated_at: time of the last change.
        terminated_at: time of its end.
        status: its state.
        provider_type: who runs it.
        size: GB.
        info: where it is.
        price_hr: USD an hour.
        stopped_price_hr: USD an hour while it is stopped.
        provisioning_price_hr: USD an hour while it is made.
        user_id: who made it.
        team_id: the owning team; None is personal.
        wallet_id: what it is paid from.
        pods: ids of the pods that have it.
        clusters: ids of the clusters that have it.
    """

    id: str
    name: str
    created_at: UtcDatetime
    updated_at: UtcDatetime
    terminated_at: UtcDatetime | None = None
    status: OpenEnum[DiskStatus]
    provider_type: str
    size: int
    info: DiskInfo | None = None
    price_hr: Price | None = None
    stopped_price_hr: Price | None = None
    provisioning_price_hr: Price | None = None
    user_id: str | None
    team_id: str | None = None
    wallet_id: str | None = None
    pods: list[str] = Field(default_factory=list)
    clusters: list[str] = Field(default_factory=list)


class DiskList(ExactNumbers, OffsetList):
    """A part of the list of disks.

    Attributes:
        data: the disks.
    """

    data: list[Disk]


class UpdateDiskRequest(RequestModel):
    """A disk's new name."""

    omits_null: ClassVar[bool] = True

    name: str = Field(min_length=1, max_length=MAX_DISK_NAME)


class RenamedDisk(CamelModel):
    """A disk that was renamed.

    Attributes:
        id: the disk.
        name: its new name.
    """

    id: str | None = None
    name: str | None = None
