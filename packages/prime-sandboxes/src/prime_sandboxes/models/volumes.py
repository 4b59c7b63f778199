"""Volumes: named storage that outlives sandboxes."""

from __future__ import annotations

from prime_core.models import RequestModel, ResponseModel, UtcDatetime
from prime_sandboxes.models.create import VolumeName


class CreateVolumeRequest(RequestModel):
    """A volume to create. Follows the page "sandboxes/volumes".

    Attributes:
        name: 1 to 40 characters out of `a-z`, `0-9` and inner `-`.
    """

    name: VolumeName


class PublishVolumeRequest(RequestModel):
    """How to publish a sandbox's copy of a volume. Follows the page "sandboxes/volumes".

    Attributes:
        force: replace the volume's contents even when they have changed since they were copied.
    """

    force: bool


class Volume(ResponseModel):
    """A volume. Follows the page "sandboxes/volumes".

    Attributes:
        id: names it for ever; a name can be used again.
        name: its name in its scope.
        user_id: owner.
        team_id: owning team; `None` is personal.
        head_checkpoint_id: what new sandboxes get a copy of; `None` until the first publish is
            durable.
        created_at: time of creation.
        occupied_bytes: size of the published data.
        account_storage_used_bytes: what the account stores, in reads of a single volume.
        account_storage_limit_gb: what it may store in GiB, likewise.
    """

    id: str
    name: str
    user_id: str | None = None
    team_id: str | None = None
    head_checkpoint_id: str | None = None
    created_at: UtcDatetime
    occupied_bytes: int = 0
    account_storage_used_bytes: int | None = None
    account_storage_limit_gb: int | None = None


class VolumeListResponse(ResponseModel):
    """A page of volumes.

    Attributes:
        volumes: those of the page.
        total: how many all pages hold.
        page: number of the page, from 1.
        per_page: most volumes of a page.
        has_next: whether another page follows.
        storage_used_bytes: what the account stores.
        storage_limit_gb: what it may store, in GiB.
    """

    volumes: list[Volume]
    total: int
    page: int
    per_page: int
    has_next: bool
    storage_used_bytes: int | None = None
    storage_limit_gb: int | None = None
