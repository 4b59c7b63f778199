"""Finding GPUs and disks for rent, and the cheapest of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from decimal import Decimal

from typing_extensions import Unpack

from prime_compute.choosing import Cheapest, PricedOffer, Wishes, read_price
from prime_compute.filters import DiskFilters, GpuFilters, gpu_query, place_query
from prime_compute.models import (
    DiskOffer,
    DiskOfferPage,
    GpuOffer,
    GpuOfferPage,
    LegacyOffers,
    PriceSummary,
)
from prime_compute.operations import (
    GET_GPU_SUMMARY,
    GET_MULTINODE_SUMMARY,
    LIST_DISK_AVAILABILITY,
    LIST_GPU_AVAILABILITY,
    LIST_LEGACY_CLUSTER_AVAILABILITY,
    LIST_LEGACY_GPU_AVAILABILITY,
    LIST_MULTINODE_AVAILABILITY,
)
from prime_core._async.resource import AsyncResource
from prime_core.operations import Operation
from prime_core.pagination import Page, iterate_pages

__all__ = ["AsyncAvailability"]

# The most offers of a page.
PAGE = 100
LEGACY_PAGE = 500


class AsyncAvailability(AsyncResource):
    """Finds GPUs and disks for rent. Made by `AsyncComputeClient.availability`.

    Offers need no reservation: what is listed may be gone when it is ordered.

    Follows the documented page "api-reference/check-gpu-availability".

    Args:
        client: the connections.
    """

    async def list_gpus(
        self, *, page: int = 1, page_size: int = PAGE, **filters: Unpack[GpuFilters]
    ) -> GpuOfferPage:
        """Reads a page of the offers of single machines; `iter_gpus` reads all of them.

        Args:
            page: number of the page, from 1.
            page_size: offers a page, 1 to 100.
            filters: what to look for, all by default; see `GpuFilters`.

        Raises:
            ValueError: an impossible page or filter; nothing was sent.
            APIError: any other failure.
        """
        return await self._offers(LIST_GPU_AVAILABILITY, page, page_size, filters)

    async def iter_gpus(self, **filters: Unpack[GpuFilters]) -> AsyncIterator[GpuOffer]:
        """Reads all offers of single machines, page after page.

        A page that can't be read is an error, never an early end.

        Args:
            filters: as for `list_gpus`.
        """
        async for offer in self._all_offers(LIST_GPU_AVAILABILITY, filters):
            yield offer

    async def list_multinode(
        self, *, page: int = 1, page_size: int = PAGE, **filters: Unpack[GpuFilters]
    ) -> GpuOfferPage:
        """Reads a page of the offers of clusters; `iter_multinode` reads all of them.

        Args:
            page: number of the page, from 1.
            page_size: offers a page, 1 to 100.
            filters: as for `list_gpus`.

        Raises:
            ValueError: an impossible page or filter; nothing was sent.
            APIError: any other failure.
        """
        return await self._offers(LIST_MULTINODE_AVAILABILITY, page, page_size, filters)

    async def iter_multinode(self, **filters: Unpack[GpuFilters]) -> AsyncIterator[GpuOffer]:
        """Reads all offers of clusters, page after page.

        Args:
            filters: as for `list_gpus`.
        """
        async for offer in self._all_offers(LIST_MULTINODE_AVAILABILITY, filters):
            yield offer

    async def list_disks(
        self, *, page: int = 1, page_size: int = PAGE, **filters: Unpack[DiskFilters]
    ) -> DiskOfferPage:
        """Reads a page of the offers of network disks; `iter_disks` reads all of them.

        Args:
            page: number of the page, from 1.
            page_size: offers a page, 1 to 100.
            filters: what to look for, all by default; see `DiskFilters`.

        Raises:
            ValueError: an impossible page or filter; nothing was sent.
            APIError: any other failure.
        """
        query = {**place_query(filters), **_page_query(page, page_size, PAGE)}
        return await self._transport.request(LIST_DISK_AVAILABILITY, DiskOfferPage, query=query)

    async def iter_disks(self, **filters: Unpack[DiskFilters]) -> AsyncIterator[DiskOffer]:
        """Reads all offers of network disks, page after page.

        Args:
            filters: as for `list_disks`.
        """

        async def fetch(number: int) -> Page[DiskOffer]:
            page = await self.list_disks(page=number, **filters)
            return Page(page.items, page.total_count)

        async for offer in iterate_pages(fetch, PAGE, _disk_identity):
            yield offer

    async def gpu_summary(self) -> PriceSummary:
        """Reads the lowest prices of single machines, by GPU type, count and region.

        Raises:
            APIError: any failure.
        """
        return await self._transport.request(GET_GPU_SUMMARY, PriceSummary)

    async def multinode_summary(self) -> PriceSummary:
        """Reads the lowest prices of clusters, by GPU type, count and region.

        Raises:
            APIError: any failure.
        """
        return await self._transport.request(GET_MULTINODE_SUMMARY, PriceSummary)

    async def list_legacy_gpus(
        self, *, page: int = 1, page_size: int = LEGACY_PAGE, **filters: Unpack[GpuFilters]
    ) -> LegacyOffers:
        """Reads a page of single machines as the deprecated route gives it; see `list_gpus`.

        Args:
            page: number of the page, from 1; those after the last one are empty.
            page_size: offers a page, 1 to 500.
            filters: as for `list_gpus`.

        Raises:
            ValueError: an impossible page or filter; nothing was sent.
            APIError: any other failure.
        """
        return await self._legacy(LIST_LEGACY_GPU_AVAILABILITY, page, page_size, filters)

    async def iter_legacy_gpus(self, **filters: Unpack[GpuFilters]) -> AsyncIterator[GpuOffer]:
        """Reads all offers of the deprecated route of single machines, page after page.

        Args:
            filters: as for `list_gpus`.
        """
        async for offer in self._all_legacy(LIST_LEGACY_GPU_AVAILABILITY, filters):
            yield offer

    async def list_legacy_clusters(
        self, *, page: int = 1, page_size: int = LEGACY_PAGE, **filters: Unpack[GpuFilters]
    ) -> LegacyOffers:
        """Reads a page of clusters as the deprecated route gives it; see `list_multinode`.

        Args:
            page: number of the page, from 1; those after the last one are empty.
            page_size: offers a page, 1 to 500.
            filters: as for `list_gpus`.

        Raises:
            ValueError: an impossible page or filter; nothing was sent.
            APIError: any other failure.
        """
        return await self._legacy(LIST_LEGACY_CLUSTER_AVAILABILITY, page, page_size, filters)

    async def iter_legacy_clusters(self, **filters: Unpack[GpuFilters]) -> AsyncIterator[GpuOffer]:
        """Reads all offers of the deprecated route of clusters, page after page.

        Args:
            filters: as for `list_gpus`.
        """
        async for offer in self._all_legacy(LIST_LEGACY_CLUSTER_AVAILABILITY, filters):
            yield offer

    async def cheapest(
        self,
        *,
        multinode: bool = False,
        disk_size: int | None = None,
        vcpus: int | None = None,
        memory: int | None = None,
        gpu_memory: int | None = None,
        interconnect: int | None = None,
        interconnect_type: str | None = None,
        provider: str | None = None,
        image: str | None = None,
        max_price: Decimal | str | int | None = None,
        currency: str = "USD",
        spot: bool = False,
        prepaid: bool = False,
        **filters: Unpack[GpuFilters],
    ) -> PricedOffer:
        """Finds the offer in stock whose full hourly cost is the lowest.

        Amounts of disk, CPUs and memory are chosen so that they cost least: an included default
        can be cheaper than less. An offer is passed over when it is not sure that it comes with
        such an amount, as where its steps are counted from is not documented. So is a machine
        without a GPU, unless ``gpu_type=GpuType.CPU_NODE`` asks for it.

        Args:
            multinode: look for clusters in place of single machines.
            disk_size: GB of local disk, at least.
            vcpus: virtual CPUs, at least.
            memory: GB of RAM, at least.
            gpu_memory: GB of one GPU, at least.
            interconnect: Gbps between GPUs or nodes, at least.
            interconnect_type: its technology, such as ``InfiniBand``.
            provider: who rents it out.
            image: an image that it must boot.
            max_price: the highest full cost of an hour.
            currency: of the prices; offers in others are passed over.
            spot: also offers that the provider may take back.
            prepaid: also offers that charge hours ahead.
            filters: as for `list_gpus`.

        Returns:
            The offer, its cost, and the amounts to order.

        Raises:
            NoOfferError: no offer fits.
            ValueError: an impossible wish; nothing was sent.
            APIError: the offers could not all be read.
        """
        wishes = Wishes(
            gpu_type=filters.get("gpu_type"),
            disk_size=disk_size,
            vcpus=vcpus,
            memory=memory,
            gpu_memory=gpu_memory,
            interconnect=interconnect,
            interconnect_type=interconnect_type,
            provider=provider,
            image=image,
            max_price=None if max_price is None else read_price(max_price),
            currency=currency,
            spot=spot,
            prepaid=prepaid,
        )
        choice = Cheapest(wishes)
        row = LIST_MULTINODE_AVAILABILITY if multinode else LIST_GPU_AVAILABILITY
        async for offer in self._all_offers(row, filters):
            choice.show(offer)
        return choice.result()

    async def _offers(
        self, row: Operation, page: int, page_size: int, filters: GpuFilters
    ) -> GpuOfferPage:
        query = {**gpu_query(filters), **_page_query(page, page_size, PAGE)}
        return await self._transport.request(row, GpuOfferPage, query=query)

    async def _all_offers(self, row: Operation, filters: GpuFilters) -> AsyncIterator[GpuOffer]:
        async def fetch(number: int) -> Page[GpuOffer]:
            page = await self._offers(row, number, PAGE, filters)
            return Page(page.items, page.total_count)

        async for offer in iterate_pages(fetch, PAGE, _identity):
            yield offer

    async def _legacy(
        self, row: Operation, page: int, page_size: int, filters: GpuFilters
    ) -> LegacyOffers:
        query = {**gpu_query(filters), **_page_query(page, page_size, LEGACY_PAGE)}
        return await self._transport.request(row, LegacyOffers, query=query)

    async def _all_legacy(self, row: Operation, filters: GpuFilters) -> AsyncIterator[GpuOffer]:
        async def fetch(number: int) -> Page[GpuOffer]:
            page = await self._legacy(row, number, LEGACY_PAGE, filters)
            return Page([offer for offers in page.root.values() for offer in offers], None)

        async for offer in iterate_pages(fetch, LEGACY_PAGE, _identity):
            yield offer


def _page_query(page: int, page_size: int, most: int) -> dict[str, int]:
    if page < 1 or not 1 <= page_size <= most:
        raise ValueError(f"page is at least 1, page_size 1 to {most}")
    return {"page": page, "page_size": page_size}


def _identity(offer: GpuOffer) -> Hashable:
    """All that an order names, and what else tells offers apart."""
    specs = (offer.disk, offer.shared_disk, offer.vcpu, offer.memory)
    return (
        offer.provider,
        offer.cloud_id,
        offer.gpu_type,
        offer.gpu_count,
        offer.socket,
        offer.data_center,
        offer.country,
        offer.security,
        offer.is_spot,
        offer.prepaid_time,
        offer.prices.on_demand,
        offer.prices.community_price,
        *((spec.default_count, spec.price_per_unit) for spec in specs if spec is not None),
    )


def _disk_identity(offer: DiskOffer) -> Hashable:
    return (
        offer.provider,
        offer.cloud_id,
        offer.data_center,
        offer.country,
        offer.security,
        offer.is_multinode,
        offer.spec.max_count,
        offer.spec.price_per_unit,
    )
