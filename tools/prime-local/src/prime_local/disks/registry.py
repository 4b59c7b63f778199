"""Every disk, and what happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prime_local.availability.catalogue import Catalogue
from prime_local.availability.offers import DiskOffer, Place
from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.disks.record import ACTIVE, Disk
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.ledger import Tally
from prime_local.pods.offers import find_disk_offer, sold_out
from prime_local.pods.pace import Pace, Steps
from prime_local.sandboxes.record import Owner
from prime_local.storage import Storage

KIND = "disk"


class DiskRegistry:
    """Every disk, by its id.

    Args:
        clock: the platform's.
        identifiers: makes their ids.
        storage: keeps them.
        catalogue: the offers that they are made from.
        wallets: what they are paid from.
        pace: what each step takes.
        detach_time: seconds on the platform clock between the end of a pod and its disks' release.
        tally: counts them.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        catalogue: Catalogue,
        wallets: Wallets,
        pace: Pace,
        detach_time: float,
        tally: Tally,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._catalogue = catalogue
        self._wallets = wallets
        self._pace = pace
        self._detach_time = detach_time
        self._tally = tally
        self._disks: dict[str, Disk] = {}
        self._steps: dict[str, Steps] = {}
        self._offers: dict[str, DiskOffer] = {}  # of which something was taken

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the disks of an earlier platform."""
        for row in rows:
            self._begin(Disk.from_row(row)).start()

    def create(self, body: JsonObject, owner: Owner) -> JsonObject:
        """Make a disk and return its wire form, PROVISIONING.

        Raises:
            PlatformError: 400, 402 or 409.
        """
        spec = body["disk"]
        offer = find_disk_offer(self._catalogue, body)
        self._wallets.check(owner.team_id)
        if not offer.stock.take():
            raise sold_out()
        now = self._clock.date()
        disk_id = self._identifiers.make("", 32)
        disk = Disk(
            id=disk_id,
            owner=owner,
            wallet_id=self._wallets.wallet_id(owner.team_id),
            name=spec.get("name") or f"disk-{disk_id[:6]}",
            provider=offer.place.provider,
            size=spec["size"],
            info={
                "cloudId": offer.cloud_id,
                "country": offer.place.country,
                "dataCenterId": offer.place.data_center,
                "isMultinode": offer.multinode,
            },
            price=offer.spec.cost(spec["size"]),
            created_at=now,
            updated_at=now,
        )
        self._offers[disk_id] = offer
        steps = self._begin(disk)
        wire = disk.to_wire()
        steps.start()
        return wire

    def _begin(self, disk: Disk) -> Steps:
        def take() -> bool:
            if not disk.active:
                disk.stage += 1
                self._touch(disk)
            return not disk.active

        self._disks[disk.id] = disk
        steps = self._steps[disk.id] = Steps(self._pace, take)
        self._tally.made()
        self._touch(disk)
        self._wallets.meter("disks", disk.id, disk.owner.team_id, lambda: disk.price)
        return steps

    def place_of(self, disk_id: str) -> Place | None:
        """Return where a disk is; None for one that is not there."""
        disk = self._disks.get(disk_id)
        if disk is None:
            return None
        country, data_center = disk.info["country"], disk.info["dataCenterId"]
        return Place(disk.provider, "", country, data_center)

    def all(self) -> list[Disk]:
        """Return the disks, newest first."""
        return list(reversed(self._disks.values()))

    def get(self, disk_id: str) -> Disk:
        """Return a disk.

        Raises:
            PlatformError: 404.
        """
        disk = self._disks.get(disk_id)
        if disk is None:
            raise PlatformError(404, "Disk not found")
        return disk

    def read(self, disk: Disk) -> JsonObject:
        """Return a disk's wire form to a caller, which may move the disk on."""
        wire = disk.to_wire()
        self._steps[disk.id].read()
        return wire

    def rename(self, disk: Disk, name: str) -> None:
        disk.name = name
        self._touch(disk)

    def delete(self, disk: Disk) -> None:
        """Delete a disk.

        Raises:
            PlatformError: 409.
        """
        if disk.pods:
            raise PlatformError(409, "The disk is attached")
        if disk.stage != ACTIVE:
            raise PlatformError(409, "Only an active disk can be deleted")
        self._steps.pop(disk.id).stop()
        del self._disks[disk.id]
        if (offer := self._offers.pop(disk.id, None)) is not None:
            offer.stock.give_back()
        self._wallets.stop(disk.id)
        self._storage.save_object(KIND, disk.id, None)
        self._tally.ended(deleted=True)

    def attachable(self, disk_ids: Iterable[str], place: Place) -> dict[str, int]:
        """Return the sizes of disks that a pod in this place is to have.

        Raises:
            PlatformError: 400, 404 or 409.
        """
        sizes = {}
        for disk_id in disk_ids:
            disk = self.get(disk_id)
            if not disk.is_in(place):
                raise PlatformError(400, "The disk is in another place than the pod")
            if not disk.active:
                raise PlatformError(409, "Only an active disk can be attached")
            if disk.pods and not disk.info["isMultinode"]:
                raise PlatformError(409, "The disk is attached to another pod")
            sizes[disk_id] = disk.size
        return sizes

    def attach(self, disk_ids: Iterable[str], pod_id: str) -> None:
        for disk_id in disk_ids:
            disk = self._disks[disk_id]
            disk.pods.append(pod_id)
            self._touch(disk)

    def release(self, disk_ids: Iterable[str], pod_id: str) -> None:
        """Detach the disks of a pod that has ended, which takes its time."""
        ids = list(disk_ids)

        def detach() -> None:
            for disk_id in ids:
                disk = self._disks.get(disk_id)
                if disk is not None and pod_id in disk.pods:
                    disk.pods.remove(pod_id)
                    self._touch(disk)

        if self._detach_time:
            self._clock.call_later(self._detach_time, detach)
        else:
            detach()

    def clear(self) -> None:
        for steps in self._steps.values():
            steps.stop()
        self._steps.clear()
        self._offers.clear()
        self._disks.clear()

    def _touch(self, disk: Disk) -> None:
        disk.updated_at = self._clock.date()
        self._storage.save_object(KIND, disk.id, disk.to_row())
