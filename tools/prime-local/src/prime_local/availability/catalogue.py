"""The catalogue: all offers, found by what a request names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

from prime_local.availability.making import (
    make_disk_offers,
    make_gpu_offers,
    make_multinode_offers,
)
from prime_local.availability.offers import DiskOffer, GpuOffer, Place
from prime_local.contract.document import JsonObject

# The guide filters by a name that no offer has.
_OTHER_NAMES = {"europe_west": "eu_west"}


class Catalogue:
    """All that is for rent. Offers are made when first needed; what is taken stays taken.

    Args:
        seed: the same offers for the same seed.
        steps_from_zero: count the steps of amounts from 0, not from the minimum.
    """

    def __init__(self, seed: int, *, steps_from_zero: bool = False) -> None:
        self._seed = seed
        self._from_zero = steps_from_zero
        self.disk_place: Callable[[str], Place | None] = lambda disk_id: None
        """Where a disk of the caller's is; set by what knows the disks."""

    @cached_property
    def gpus(self) -> list[GpuOffer]:
        return [self._own(offer) for offer in _made(self._seed)]

    @cached_property
    def clusters(self) -> list[GpuOffer]:
        return [self._own(offer) for offer in make_multinode_offers(self._seed)]

    @cached_property
    def disks(self) -> list[DiskOffer]:
        return make_disk_offers(self._seed)

    def _own(self, offer: GpuOffer) -> GpuOffer:
        """The offer, with a stock that is this catalogue's alone."""
        from_zero = self._from_zero
        return replace(
            offer,
            stock=replace(offer.stock),
            disk=replace(offer.disk, steps_from_zero=from_zero),
            vcpu=replace(offer.vcpu, steps_from_zero=from_zero),
            memory=replace(offer.memory, steps_from_zero=from_zero),
        )

    def find(
        self,
        *,
        provider: str,
        cloud_id: str,
        gpu_type: str,
        socket: str,
        gpu_count: int,
        data_center_id: str | None = None,
    ) -> GpuOffer | None:
        """Return the offer that a create names, sold out or not.

        Where there are several data centres, it must name one.
        """
        named = [
            offer
            for offer in (*self.gpus, *self.clusters)
            if offer.cloud_id == cloud_id
            and offer.place.provider == provider
            and offer.gpu_type == gpu_type
            and offer.socket == socket
            and offer.gpu_count == gpu_count
            and offer.place.data_center == data_center_id
        ]
        return named[0] if named else None

    def find_disk(
        self, *, provider: str, cloud_id: str | None = None, data_center_id: str | None = None
    ) -> DiskOffer | None:
        """Return the disk offer that a create names, sold out or not."""
        for offer in self.disks:
            place = offer.place
            if (place.provider, offer.cloud_id, place.data_center) == (
                provider,
                cloud_id,
                data_center_id,
            ):
                return offer
        return None

    def sell_out(
        self, cloud_id: str, data_center_id: str | None = None, *, sold_out: bool = True
    ) -> int:
        """Make offers unavailable, or available again, whatever is left of them.

        Args:
            cloud_id: of the offers.
            data_center_id: only those of this data centre.
            sold_out: False undoes it.

        Returns:
            How many offers that concerns.
        """
        offers: list[GpuOffer | DiskOffer] = [*self.gpus, *self.clusters, *self.disks]
        chosen = [
            offer
            for offer in offers
            if offer.cloud_id == cloud_id and data_center_id in (None, offer.place.data_center)
        ]
        for offer in chosen:
            offer.stock.sold_out = sold_out
        return len(chosen)

    def select_gpus(self, offers: Iterable[GpuOffer], query: Mapping[str, Any]) -> list[GpuOffer]:
        """Return the offers that a request's filters let through, in their order."""
        disks = query.get("disks")
        near = None
        if disks is not None:
            places = [self.disk_place(disk_id) for disk_id in disks]
            near = {(place.provider, place.data_center) for place in places if place is not None}
        return [
            offer
            for offer in offers
            if _is_there(offer.place, offer.cloud_id, query)
            and query.get("gpu_type") in (None, offer.gpu_type)
            and query.get("gpu_count") in (None, offer.gpu_count)
            and query.get("security") in (None, offer.security)
            # The guide names no generation of SXM.
            and query.get("socket") in (None, offer.socket, offer.socket.rstrip("23456"))
            and (near is None or (offer.place.provider, offer.place.data_center) in near)
        ]

    def select_disks(self, query: Mapping[str, Any]) -> list[DiskOffer]:
        """Return the disk offers that a request's filters let through, in their order."""
        return [offer for offer in self.disks if _is_there(offer.place, offer.cloud_id, query)]


@lru_cache(maxsize=1)
def _made(seed: int) -> list[GpuOffer]:
    """The offers before anything is taken; making them takes as long as starting a platform."""
    return make_gpu_offers(seed)


def summarize(offers: Iterable[GpuOffer]) -> JsonObject:
    """Return the lowest prices in dollars of what is left: by type, count and region."""
    summary: dict[str, dict[str, dict[str, JsonObject]]] = {}
    for offer in offers:
        if offer.stock.status == "Unavailable" or offer.currency != "USD":
            continue
        counts = summary.setdefault(offer.gpu_type, {})
        regions = counts.setdefault(str(offer.gpu_count), {})
        kind = "onDemand"
        if offer.spot:
            kind = "spotPrice"
        elif offer.security == "community_cloud":
            kind = "communityPrice"
        for region in ("cheapest", offer.place.region):
            empty = dict.fromkeys(("onDemand", "communityPrice", "spotPrice"))
            prices = regions.setdefault(region, empty)
            price = float(offer.price)
            prices[kind] = price if prices[kind] is None else min(prices[kind], price)
    return summary


def _is_there(place: Place, cloud_id: str | None, query: Mapping[str, Any]) -> bool:
    regions = query.get("regions")
    return (
        (regions is None or place.region in {_OTHER_NAMES.get(name, name) for name in regions})
        and query.get("data_center_id") in (None, place.data_center)
        and query.get("cloud_id") in (None, cloud_id)
    )
