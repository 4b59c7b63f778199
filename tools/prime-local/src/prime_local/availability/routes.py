"""The routes that list what is for rent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from prime_local.availability.catalogue import summarize
from prime_local.availability.offers import GpuOffer
from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject

T = TypeVar("T")


async def list_gpu_availability(call: Call) -> Reply:
    catalogue = call.core.catalogue
    return _page(call, catalogue.select_gpus(catalogue.gpus, call.parameters))


async def list_multinode_availability(call: Call) -> Reply:
    catalogue = call.core.catalogue
    return _page(call, catalogue.select_gpus(catalogue.clusters, call.parameters))


async def list_disk_availability(call: Call) -> Reply:
    found = call.core.catalogue.select_disks(call.parameters)
    items = [offer.to_wire() for offer in _window(call, found)]
    return Reply({"items": items, "totalCount": len(found)})


async def get_gpu_summary(call: Call) -> Reply:
    return Reply(summarize(call.core.catalogue.gpus), is_map=True)


async def get_multinode_summary(call: Call) -> Reply:
    return Reply(summarize(call.core.catalogue.clusters), is_map=True)


async def list_legacy_gpu_availability(call: Call) -> Reply:
    catalogue = call.core.catalogue
    return _by_type(call, catalogue.select_gpus(catalogue.gpus, call.parameters))


async def list_legacy_cluster_availability(call: Call) -> Reply:
    catalogue = call.core.catalogue
    return _by_type(call, catalogue.select_gpus(catalogue.clusters, call.parameters))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_gpu_availability,
        list_multinode_availability,
        list_disk_availability,
        get_gpu_summary,
        get_multinode_summary,
        list_legacy_gpu_availability,
        list_legacy_cluster_availability,
    )
}


def _page(call: Call, found: Sequence[GpuOffer]) -> Reply:
    items = [offer.to_wire() for offer in _window(call, found)]
    return Reply({"items": items, "totalCount": len(found)})


def _by_type(call: Call, found: Sequence[GpuOffer]) -> Reply:
    offers: dict[str, list[JsonObject]] = {}
    for offer in _window(call, found):
        offers.setdefault(offer.gpu_type, []).append(offer.to_wire())
    return Reply(offers, is_map=True)


def _window(call: Call, found: Sequence[T]) -> Sequence[T]:
    page, size = call.parameters["page"], call.parameters["page_size"]
    return found[(page - 1) * size : page * size]
