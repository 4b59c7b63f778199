"""The records of checkpoints and volumes, with their wire forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from prime_local.contract.document import JsonObject
from prime_local.sandboxes.isolation.base import ModeName
from prime_local.sandboxes.record import Owner, wire_date


class State(str, Enum):
    """States of a checkpoint; from DELETING it goes to nothing."""

    UNFINISHED = "UNFINISHED"  # on the wire it has the name that is assumed
    DURABLE = "DURABLE"
    FAILED = "FAILED"
    DELETING = "DELETING"


@dataclass
class Checkpoint:
    """Files of a sandbox, or of its copy of a volume, as they were once. Sizes are bytes.

    Args:
        id: names it, and its folder.
        owner: whose it is: the sandbox's owner.
        sandbox_id: the sandbox that it was taken from.
        volume_id: the volume that it is a version of; None for a root filesystem.
        parent_id: what the files grew from.
        depth: length of the chain of parents, itself included.
        docker_image: the sandbox's image.
        disk_size_gb: size of the disk in GiB.
        layout: the isolation mode, on which depends what the files look like.
    """

    id: str
    owner: Owner
    sandbox_id: str
    volume_id: str | None
    parent_id: str | None
    depth: int
    docker_image: str
    disk_size_gb: float
    layout: ModeName
    created_at: datetime
    updated_at: datetime
    state: State = State.UNFINISHED
    occupied_bytes: int = 0
    error: str | None = None

    def to_wire(self, unfinished: str) -> JsonObject:
        """Return the `Checkpoint` object of the contract.

        Args:
            unfinished: name of the state before DURABLE and FAILED.
        """
        durable = self.state in (State.DURABLE, State.DELETING)
        return {
            "id": self.id,
            "sandbox_id": self.sandbox_id,
            "parent_id": self.parent_id,
            "team_id": self.owner.team_id,
            "state": unfinished if self.state is State.UNFINISHED else self.state.value,
            "depth": self.depth,
            "docker_image": self.docker_image,
            "disk_size_bytes": int(self.disk_size_gb * 1024**3),
            # Nothing is compressed here.
            "stored_bytes": self.occupied_bytes if durable else None,
            "occupied_bytes": self.occupied_bytes,
            "error": self.error,
            "created_at": wire_date(self.created_at),
            "updated_at": wire_date(self.updated_at),
        }


@dataclass
class Volume:
    """A named chain of checkpoints.

    Args:
        id: names it for ever; `name` may be used again after it is deleted.
        head: the newest durable checkpoint; None before the first.
        removing: whether its data is being removed.
    """

    id: str
    name: str
    owner: Owner
    created_at: datetime
    head: str | None = None
    removing: bool = False

    def to_wire(self, occupied_bytes: int) -> JsonObject:
        """Return the `SandboxVolume` object of the contract, without the account's figures."""
        return {
            "id": self.id,
            "name": self.name,
            "user_id": self.owner.user_id,
            "team_id": self.owner.team_id,
            "head_checkpoint_id": self.head,
            "created_at": wire_date(self.created_at),
            "occupied_bytes": occupied_bytes,
        }


R = TypeVar("R", Checkpoint, Volume)


def dump(record: Checkpoint | Volume) -> JsonObject:
    """Return a record as JSON values, for the storage."""
    kept = asdict(record)
    for name, value in kept.items():
        if isinstance(value, datetime):
            kept[name] = value.isoformat()
    return kept


def load(kind: type[R], kept: Mapping[str, Any]) -> R:
    """Return the record that `dump` wrote."""
    values = {**kept, "owner": Owner(**kept["owner"])}
    for each in fields(kind):
        if each.name.endswith("_at"):
            values[each.name] = datetime.fromisoformat(values[each.name])
    if "state" in values:
        values["state"] = State(values["state"])
    return kind(**values)
