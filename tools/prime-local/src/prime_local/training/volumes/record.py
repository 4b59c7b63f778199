"""The record of a volume, with its wire form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from prime_local.contract.document import JsonObject
from prime_local.rows import from_row, to_row
from prime_local.sandboxes.record import Owner, wire_date

GIB = 2**30
LARGEST_GIB = 20 * 1024
_GIB_HOUR = Decimal("0.000125")
_GIB_OF = {"Gi": 1, "Ti": 1024}
VolumeStatus = Literal["RUNNING", "TERMINATING", "TOMBSTONED"]


def gib_of(size: str) -> int:
    """Return how many GiB a size such as ``5Ti`` is."""
    return int(size[:-2]) * _GIB_OF[size[-2:]]


@dataclass
class TrainingVolume:
    """A volume.

    Args:
        user_id: who made it.
        team_id: the team that it belongs to; None for that user's own.
        size: as it was asked for, such as ``500Gi``.
        run_id: the run that has it.
    """

    id: str
    name: str
    user_id: str
    team_id: str | None
    size: str
    created_at: datetime
    status: VolumeStatus = "RUNNING"
    run_id: str | None = None

    @property
    def prefix(self) -> str:
        """Return what the keys of its objects begin with."""
        owner = f"users/{self.user_id}" if self.team_id is None else f"teams/{self.team_id}"
        return f"{owner}/{self.name}/"

    @property
    def hourly(self) -> Decimal:
        """Return USD for an hour; what it holds does not matter."""
        return gib_of(self.size) * _GIB_HOUR if self.status == "RUNNING" else Decimal(0)

    @property
    def owner(self) -> Owner:
        return Owner(self.user_id, self.team_id)

    def to_wire(self, name: str, email: str) -> JsonObject:
        """Return the `Volume` object of the contract.

        Args:
            name: of who made it.
            email: likewise.
        """
        return {
            "name": self.name,
            "size": self.size,
            "status": self.status,
            "clusterId": "local",
            "cluster": None,
            "pvcName": f"vol-{self.id}",
            "createdBy": self.user_id,
            "createdByName": name,
            "createdByEmail": email,
            "createdAt": wire_date(self.created_at),
        }

    def to_row(self) -> dict[str, Any]:
        return to_row(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> TrainingVolume:
        return from_row(cls, row)
