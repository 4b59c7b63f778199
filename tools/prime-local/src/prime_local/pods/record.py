"""The record of a pod, with its wire forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.sandboxes.record import Owner, wire_date

# The states on the way: of the pod, of its installation, and percent.
STAGES = (
    ("PROVISIONING", "PENDING", None),
    ("PENDING", "PENDING", 0),
    ("ACTIVE", "ACTIVE", 50),
    ("ACTIVE", "FINISHED", 100),
)
INSTALLING, READY = 2, 3
_ATTACHMENT = ("UNATTACHED", "UNATTACHED", "ATTACHED", "MOUNTED")


@dataclass
class Pod:
    """A pod.

    Args:
        stage: place in `STAGES`.
        offer: the `GpuOffer` object of the contract that it was made from.
        spec: the `PodSpec` that it was made by.
        addresses: where its machines would be reached.
        doom: why its installation is going to fail.
        failure: why that has failed.
        disks: ids and sizes of attached disks, in GB.
    """

    id: str
    owner: Owner
    wallet_id: str
    name: str
    offer: JsonObject
    spec: JsonObject
    price: Decimal
    created_at: datetime
    updated_at: datetime
    addresses: list[str]
    stage: int = 0
    doom: str | None = None
    failure: str | None = None
    terminated_at: datetime | None = None
    disks: dict[str, int] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        return self.terminated_at is None

    @property
    def charged(self) -> bool:
        """Whether its minutes cost something now."""
        return self.live and self.failure is None and self.stage >= INSTALLING

    @property
    def status(self) -> str:
        if not self.live:
            return "TERMINATED"
        return "ERROR" if self.failure else STAGES[self.stage][0]

    def to_wire(self) -> JsonObject:
        """Return the `Pod` object of the contract."""
        spec, offer = self.spec, self.offer
        return {
            **self._state(),
            "id": self.id,
            "userId": self.owner.user_id,
            "teamId": self.owner.team_id,
            "walletId": self.wallet_id,
            "name": self.name,
            "type": "HOSTED",
            "createdAt": wire_date(self.created_at),
            "updatedAt": wire_date(self.updated_at),
            "terminatedAt": self.terminated_at and wire_date(self.terminated_at),
            "gpuName": spec["gpuType"],
            "gpuCount": spec["gpuCount"],
            "socket": spec["socket"],
            "priceHr": float(self.price),
            "stoppedPriceHr": None,
            "provisioningPriceHr": 0.0,
            "environmentType": spec.get("image", "ubuntu_22_cuda_12"),
            "customTemplateId": spec.get("customTemplateId"),
            "clusterId": f"cluster-{self.id[:8]}" if len(self.addresses) > 1 else None,
            "jupyterPassword": spec.get("jupyterPassword"),
            "resources": {
                "memory": _amount(spec.get("memory"), offer.get("memory")),
                "disk": self._ephemeral + sum(self.disks.values()),
                "sharedDisk": None,
                "vcpus": _amount(spec.get("vcpus"), offer.get("vcpu")),
            },
            "attachedResources": self._attached(),
            "isSpot": offer.get("isSpot"),
            "autoRestart": spec.get("autoRestart"),
        }

    def to_status_wire(self) -> JsonObject:
        """Return the `PodStatusRow` object of the contract."""
        price = float(self.price)
        return {**self._state(), "podId": self.id, "costPerHr": price, "priceHr": price}

    def to_history_wire(self, billed: Decimal, user_name: str) -> JsonObject:
        """Return the `PodHistoryRow` object of the contract."""
        return {
            "id": self.id,
            "name": self.name,
            "providerType": self.offer["provider"],
            "provisionedBy": user_name,
            "type": "Instance",
            "createdAt": wire_date(self.created_at),
            "terminatedAt": self.terminated_at and wire_date(self.terminated_at),
            "gpuName": self.spec["gpuType"],
            "gpuCount": self.spec["gpuCount"],
            "socket": self.spec["socket"],
            "priceHr": float(self.price),
            "userId": self.owner.user_id,
            "teamId": self.owner.team_id,
            "totalBilledPrice": float(billed),
        }

    def log(self) -> list[str]:
        """Return the lines of its log."""
        lines = ["Machine ordered", "Machine booting", "Image installing", "Image installed"]
        shown = lines[: self.stage + 1]
        return [*shown, f"Installation failed: {self.failure}"] if self.failure else shown

    @property
    def _ephemeral(self) -> int:
        return _amount(self.spec.get("diskSize"), self.offer.get("disk")) or 0

    def _state(self) -> JsonObject:
        _, installation, progress = STAGES[self.stage]
        reachable = self.stage == READY and self.failure is None
        return {
            "providerType": self.offer["provider"],
            "status": self.status,
            "installationStatus": "ERROR" if self.failure else installation,
            "installationFailure": self.failure,
            "installationProgress": progress,
            "primePortMapping": [_port("22", "SSH", "SSH access")],
            "sshConnection": self._of_nodes("root@{} -p 22") if reachable else None,
            "ip": self._of_nodes("{}") if reachable else None,
        }

    def _of_nodes(self, form: str) -> str | list[str]:
        texts = [form.format(address) for address in self.addresses]
        return texts[0] if len(texts) == 1 else texts

    def _attached(self) -> list[JsonObject]:
        state = _ATTACHMENT[self.stage]
        persistent = [
            _resource(disk_id, state, True, "/data", size) for disk_id, size in self.disks.items()
        ]
        ephemeral = _resource("ephemeral", state, False, "/ephemeral", self._ephemeral)
        return [*persistent, ephemeral]

    def to_row(self) -> dict[str, Any]:
        row = asdict(self)
        for name in ("created_at", "updated_at", "terminated_at"):
            row[name] = row[name] and row[name].isoformat()
        return {**row, "price": str(self.price)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Pod:
        dates = {
            name: row[name] and datetime.fromisoformat(row[name])
            for name in ("created_at", "updated_at", "terminated_at")
        }
        owner = Owner(**row["owner"])
        return cls(**{**row, **dates, "owner": owner, "price": Decimal(row["price"])})


def _amount(chosen: int | None, spec: JsonObject | None) -> int | None:
    default: int | None = (spec or {}).get("defaultCount")
    return default if chosen is None else chosen


def _port(number: str, used_by: str, description: str) -> JsonObject:
    return {
        "internal": number,
        "external": number,
        "protocol": "TCP",
        "usedBy": used_by,
        "description": description,
    }


def _resource(
    resource_id: str, state: str, detachable: bool, mount_path: str, size: int
) -> JsonObject:
    return {
        "resourceType": "DISK",
        "id": resource_id,
        "status": state,
        "isDetachable": detachable,
        "mountPath": mount_path,
        "resourcePath": "/dev/vdc" if detachable else "/dev/vdb",
        "size": size,
        "isShared": False,
    }
