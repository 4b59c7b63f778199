"""The offers that creates name."""

from __future__ import annotations

from decimal import Decimal

from prime_local.availability.catalogue import Catalogue
from prime_local.availability.offers import DiskOffer, GpuOffer, Spec
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError

DEFAULT_IMAGE = "ubuntu_22_cuda_12"


def find_gpu_offer(catalogue: Catalogue, body: JsonObject) -> GpuOffer:
    """Return the offer that a `PodCreateRequest` names.

    Raises:
        PlatformError: 400 or 404.
    """
    pod = body["pod"]
    offer = catalogue.find(
        provider=body["provider"]["type"],
        cloud_id=pod["cloudId"],
        gpu_type=pod["gpuType"],
        socket=pod["socket"],
        gpu_count=pod["gpuCount"],
        data_center_id=pod.get("dataCenterId"),
    )
    if offer is None:
        raise PlatformError(404, "There is no such offer")
    image = pod.get("image", DEFAULT_IMAGE)
    if offer.images and image not in offer.images:
        raise PlatformError(400, f"The offer does not boot {image}")
    _check_amount("diskSize", pod.get("diskSize"), offer.disk)
    _check_amount("vcpus", pod.get("vcpus"), offer.vcpu)
    _check_amount("memory", pod.get("memory"), offer.memory)
    return offer


def find_disk_offer(catalogue: Catalogue, body: JsonObject) -> DiskOffer:
    """Return the offer that a `DiskCreateRequest` names.

    Raises:
        PlatformError: 400.
    """
    disk = body["disk"]
    offer = catalogue.find_disk(
        provider=body["provider"]["type"],
        cloud_id=disk.get("cloudId"),
        data_center_id=disk.get("dataCenterId"),
    )
    if offer is None:
        raise PlatformError(400, "There is no such offer")
    _check_amount("size", disk["size"], offer.spec)
    return offer


def _check_amount(field: str, amount: int | None, spec: Spec) -> None:
    if amount is not None and not spec.allows(amount):
        raise PlatformError(400, f"The offer does not come with {field} {amount}")


def sold_out() -> PlatformError:
    """The error of an offer of which nothing is left."""
    return PlatformError(409, "The offer is sold out")


def exact(number: float | None) -> Decimal:
    """Return a number of the wire with the digits that it is written with."""
    return Decimal(str(number or 0))
