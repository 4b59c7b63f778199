"""What is for rent: offers, and how much of each is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from prime_local.contract.document import JsonObject

_LOW, _MEDIUM, _HIGH = 2, 6, 20


@dataclass(frozen=True)
class Spec:
    """How much of a resource an offer gives; all that is None but the default when fixed."""

    default: int | None = None
    least: int | None = None
    most: int | None = None
    price: Decimal | None = None
    step: int | None = None
    included: bool | None = None
    steps_from_zero: bool = False

    @property
    def adjustable(self) -> bool:
        return self.price is not None

    def allows(self, amount: int) -> bool:
        """Say whether an amount can be ordered; bounds and default fit any step."""
        if not self.adjustable:
            return amount == self.default
        least, most = self.least or 0, self.most
        start = 0 if self.steps_from_zero else least
        fits = (amount - start) % (self.step or 1) == 0
        within = least <= amount and (most is None or amount <= most)
        return within and (fits or amount in (least, self.default, most))

    def cost(self, amount: int | None = None) -> Decimal:
        """Return the hourly price of an amount, the default without one."""
        amount = self.default if amount is None else amount
        if self.price is None or amount is None or (self.included and amount == self.default):
            return Decimal(0)
        return amount * self.price

    def to_wire(self, sparse: bool = False) -> JsonObject:
        if sparse and not self.adjustable:
            return {"defaultCount": self.default}
        return {
            "minCount": self.least,
            "defaultCount": self.default,
            "maxCount": self.most,
            "pricePerUnit": number(self.price),
            "step": self.step,
            "defaultIncludedInPrice": self.included,
            "additionalInfo": None,
        }


@dataclass(frozen=True)
class Place:
    """A data centre of a provider."""

    provider: str
    region: str
    country: str | None
    data_center: str | None

    def to_wire(self) -> JsonObject:
        return {
            "provider": self.provider,
            "region": self.region,
            "dataCenter": self.data_center,
            "country": self.country,
        }


@dataclass
class Stock:
    """How much of an offer is left."""

    left: int
    sold_out: bool = False  # on a test's request, whatever is left

    @property
    def status(self) -> str:
        if self.sold_out or self.left <= 0:
            return "Unavailable"
        if self.left <= _LOW:
            return "Low"
        if self.left <= _MEDIUM:
            return "Medium"
        return "High" if self.left <= _HIGH else "Available"

    def take(self) -> bool:
        """Take one, and say whether there was one."""
        if self.sold_out or self.left <= 0:
            return False
        self.left -= 1
        return True

    def give_back(self) -> None:
        self.left += 1


@dataclass(frozen=True)
class GpuOffer:
    """A configuration of GPUs, on one machine or several."""

    place: Place
    cloud_id: str
    gpu_type: str
    socket: str
    gpu_count: int
    gpu_memory: int
    price: Decimal
    disk: Spec
    vcpu: Spec
    memory: Spec
    images: tuple[str, ...]
    stock: Stock
    shared_disk: Spec = field(default_factory=Spec)
    currency: str = "USD"
    security: str = "secure_cloud"
    interconnect: int | None = None
    interconnect_type: str | None = None
    internet_speed: int | None = None
    provisioning_time: int | None = 5
    variable: bool = False
    spot: bool = False
    prepaid: int | None = None
    sparse: bool = False  # whether the provider leaves out what is fixed

    def hourly(
        self, disk_size: int | None = None, vcpus: int | None = None, memory: int | None = None
    ) -> Decimal:
        """Return the full hourly price of a configuration."""
        return (
            self.price
            + self.disk.cost(disk_size)
            + self.shared_disk.cost()
            + self.vcpu.cost(vcpus)
            + self.memory.cost(memory)
        )

    def to_wire(self) -> JsonObject:
        community = self.security == "community_cloud"
        wire = {
            "cloudId": self.cloud_id,
            "gpuType": self.gpu_type,
            "socket": self.socket,
            **self.place.to_wire(),
            "gpuCount": self.gpu_count,
            "gpuMemory": self.gpu_memory,
            "disk": self.disk.to_wire(self.sparse),
            "vcpu": self.vcpu.to_wire(self.sparse),
            "memory": self.memory.to_wire(self.sparse),
            "internetSpeed": self.internet_speed,
            "interconnect": self.interconnect,
            "interconnectType": self.interconnect_type,
            "provisioningTime": self.provisioning_time,
            "stockStatus": self.stock.status,
            "security": self.security,
            "prices": {
                "onDemand": None if community else number(self.price),
                **({"communityPrice": number(self.price)} if community else {}),
                "isVariable": self.variable,
                "currency": self.currency,
            },
            "images": list(self.images),
            "isSpot": self.spot or None,
            "prepaidTime": self.prepaid,
        }
        if not self.sparse:
            wire["sharedDisk"] = self.shared_disk.to_wire()
        return wire


@dataclass(frozen=True)
class DiskOffer:
    """Network storage of a data centre."""

    place: Place
    cloud_id: str | None
    spec: Spec
    stock: Stock
    multinode: bool

    def to_wire(self) -> JsonObject:
        return {
            "cloudId": self.cloud_id,
            **self.place.to_wire(),
            "spec": self.spec.to_wire(),
            "stockStatus": self.stock.status,
            "security": "secure_cloud",
            "isMultinode": self.multinode,
        }


def number(amount: Decimal | None) -> float | None:
    """Return an amount for JSON: up to 15 digits, a float is written with the same ones."""
    return None if amount is None else float(amount)
