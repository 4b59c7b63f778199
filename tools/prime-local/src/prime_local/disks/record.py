"""The record of a disk, with its wire form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from prime_local.availability.offers import Place
from prime_local.contract.document import JsonObject
from prime_local.sandboxes.record import Owner, wire_date

STAGES = ("PROVISIONING", "PENDING", "ACTIVE")
ACTIVE = len(STAGES) - 1


@dataclass
class Disk:
    """A disk of `size` GB; `stage` is a place in `STAGES`, `pods` are those that have it."""

    id: str
    owner: Owner
    wallet_id: str
    name: str
    provider: str
    size: int
    info: JsonObject
    price: Decimal
    created_at: datetime
    updated_at: datetime
    stage: int = 0
    pods: list[str] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return self.stage == ACTIVE

    def is_in(self, place: Place) -> bool:
        return (self.provider, self.info["dataCenterId"]) == (place.provider, place.data_center)

    def to_wire(self) -> JsonObject:
        """Return the `Disk` object of the contract."""
        return {
            "id": self.id,
            "name": self.name,
            "createdAt": wire_date(self.created_at),
            "updatedAt": wire_date(self.updated_at),
            "terminatedAt": None,
            "status": STAGES[self.stage],
            "providerType": self.provider,
            "size": self.size,
            "info": self.info,
            "priceHr": float(self.price),
            "stoppedPriceHr": float(self.price),
            "provisioningPriceHr": 0.0,
            "userId": self.owner.user_id,
            "teamId": self.owner.team_id,
            "walletId": self.wallet_id,
            "pods": list(self.pods),
            "clusters": [],
        }

    def to_row(self) -> dict[str, Any]:
        dates = {"created_at": self.created_at, "updated_at": self.updated_at}
        texts = {name: date.isoformat() for name, date in dates.items()}
        return {**asdict(self), **texts, "price": str(self.price)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Disk:
        return cls(
            **{
                **row,
                "owner": Owner(**row["owner"]),
                "price": Decimal(row["price"]),
                "created_at": datetime.fromisoformat(row["created_at"]),
                "updated_at": datetime.fromisoformat(row["updated_at"]),
            }
        )
