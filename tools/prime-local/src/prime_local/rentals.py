"""What is rented by the hour: pods and disks, and the wallets that pay for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from prime_local.availability.catalogue import Catalogue
from prime_local.billing.runs import RunUsages
from prime_local.billing.wallets import KIND as BILL
from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock
from prime_local.disks.registry import KIND as DISK
from prime_local.disks.registry import DiskRegistry
from prime_local.identifiers import Identifiers
from prime_local.ledger import Ledger
from prime_local.pods.pace import Pace
from prime_local.pods.registry import KIND as POD
from prime_local.pods.registry import PodRegistry
from prime_local.storage import Objects, Storage


@dataclass(frozen=True)
class RentalSettings:
    """How rented things behave; `LocalPlatform` explains each setting."""

    provisioning_time: float = 0.0
    provisioning_reads: int = 0
    detach_time: float = 0.0
    balance: Decimal = Decimal(1000)

    def __post_init__(self) -> None:
        if self.provisioning_time and self.provisioning_reads:
            raise ValueError("provisioning_time excludes provisioning_reads")
        if self.provisioning_time < 0 or self.provisioning_reads < 0 or self.detach_time < 0:
            raise ValueError("provisioning_time, provisioning_reads and detach_time are at least 0")
        if not self.balance.is_finite():
            raise ValueError("balance is an amount of USD")


class Rentals:
    """All that is rented.

    Args:
        clock: the platform's.
        identifiers: makes ids.
        storage: keeps it.
        ledger: counts it.
        catalogue: what is for rent.
        settings: how it behaves.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        ledger: Ledger,
        catalogue: Catalogue,
        settings: RentalSettings,
    ) -> None:
        self.runs = RunUsages()
        self.wallets = Wallets(
            clock, identifiers, storage, settings.balance, lambda team: self.pods.end_all_of(team)
        )
        pace = self.pace = Pace(clock, settings.provisioning_time, settings.provisioning_reads)
        self.disks = DiskRegistry(
            clock,
            identifiers,
            storage,
            catalogue,
            self.wallets,
            pace,
            settings.detach_time,
            ledger.disks,
        )
        self.pods = PodRegistry(
            clock,
            identifiers,
            storage,
            catalogue,
            self.wallets,
            self.disks,
            pace,
            ledger.pods,
        )
        catalogue.disk_place = self.disks.place_of

    def take_over(self, objects: Objects) -> None:
        """Go on with what an earlier platform had."""
        none: Mapping[str, Mapping[str, Any]] = {}
        self.wallets.take_over(objects.get(BILL, none).values())
        self.disks.take_over(objects.get(DISK, none).values())
        self.pods.take_over(objects.get(POD, none).values())

    def clear(self) -> None:
        """Forget everything."""
        self.pods.clear()
        self.disks.clear()
        self.wallets.clear()
