"""What is for rent, and for how much."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic import Field, RootModel, model_validator

from prime_compute.models.base import CamelModel
from prime_compute.models.hardware import (
    Currency,
    EnvironmentImage,
    GpuSocket,
    GpuType,
    ProviderType,
    Region,
    SecurityType,
    StockStatus,
)
from prime_core.exact import ExactNumbers, Price
from prime_core.models import OpenEnum

__all__ = [
    "DiskOffer",
    "DiskOfferPage",
    "GpuOffer",
    "GpuOfferPage",
    "LegacyOffers",
    "LowestPrices",
    "PriceSummary",
    "Prices",
    "ResourceSpec",
]


class ResourceSpec(CamelModel):
    """How much of a resource an offer gives, and what an amount costs.

    `prime_compute.pricing` has the rules. Anything may be absent.

    Attributes:
        min_count: the smallest amount that can be chosen.
        default_count: the amount without a choice.
        max_count: the largest amount that can be chosen.
        price_per_unit: of one unit for an hour; `None` when the amount is fixed.
        step: amounts are this far apart; from where they are counted is not documented.
        default_included_in_price: whether exactly the default amount costs nothing more.
        additional_info: a remark of the provider.
    """

    min_count: int | None = None
    default_count: int | None = None
    max_count: int | None = None
    price_per_unit: Price | None = None
    step: int | None = None
    default_included_in_price: bool | None = None
    additional_info: str | None = None


class Prices(CamelModel):
    """What a configuration costs an hour, apart from resources with a price of their own.

    Attributes:
        on_demand: the price.
        community_price: that of a community offer, in legacy answers.
        is_variable: whether it may change while a pod lives.
        currency: of every price of the offer.
    """

    on_demand: Price | None = None
    community_price: Price | None = None
    is_variable: bool | None = None
    currency: OpenEnum[Currency] = Currency.USD


class GpuOffer(CamelModel):
    """A configuration of GPUs for rent. Follows the page "api-reference/check-gpu-availability".

    Attributes:
        cloud_id: the provider's name for it; a create repeats it.
        gpu_type: GPU model.
        socket: form factor.
        provider: who rents it out.
        region: where it is, roughly.
        data_center: where it is; a create repeats it when it is there.
        country: ISO code.
        gpu_count: GPUs in the configuration.
        gpu_memory: of one GPU, in GB.
        disk: local disk, in GB.
        shared_disk: disk that the nodes share, in GB.
        vcpu: virtual CPUs.
        memory: RAM, in GB.
        internet_speed: in Mbps.
        interconnect: between GPUs or nodes, in Gbps.
        interconnect_type: its technology.
        provisioning_time: expected, in minutes.
        stock_status: how many are left, roughly.
        security: class of hosting.
        prices: per hour.
        images: what it can boot.
        is_spot: whether the provider may take it back.
        prepaid_time: hours that are charged at once when it is ordered.
    """

    cloud_id: str
    gpu_type: OpenEnum[GpuType]
    socket: OpenEnum[GpuSocket] | None = None
    provider: OpenEnum[ProviderType]
    region: OpenEnum[Region] | None = None
    data_center: str | None = None
    country: str | None = None
    gpu_count: int
    gpu_memory: int | None = None
    disk: ResourceSpec | None = None
    shared_disk: ResourceSpec | None = None
    vcpu: ResourceSpec | None = None
    memory: ResourceSpec | None = None
    internet_speed: Decimal | None = None
    interconnect: int | None = None
    interconnect_type: str | None = None
    provisioning_time: int | None = None
    stock_status: OpenEnum[StockStatus] | None = None
    security: OpenEnum[SecurityType] | None = None
    prices: Prices
    images: list[OpenEnum[EnvironmentImage]] = Field(default_factory=list)
    is_spot: bool | None = None
    prepaid_time: Decimal | None = None


class DiskOffer(CamelModel):
    """Network storage for rent. Follows the page "api-reference/check-gpu-availability".

    Attributes:
        cloud_id: the provider's name for it; a create repeats it when it is there.
        provider: who rents it out.
        data_center: where it is; a create repeats it when it is there.
        country: ISO code.
        region: where it is, roughly.
        spec: sizes in GB, and the price of one GB for an hour.
        stock_status: how much is left, roughly.
        security: class of hosting.
        is_multinode: whether several pods can have a disk attached at once.
    """

    cloud_id: str | None = None
    provider: OpenEnum[ProviderType]
    data_center: str | None = None
    country: str | None = None
    region: OpenEnum[Region] | None = None
    spec: ResourceSpec
    stock_status: OpenEnum[StockStatus] | None = None
    security: OpenEnum[SecurityType] | None = None
    is_multinode: bool | None = None


class _OfferPage(CamelModel):
    total_count: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _accept_bare_list(cls, data: Any) -> Any:
        return {"items": data} if isinstance(data, list) else data


class GpuOfferPage(_OfferPage):
    """A page of GPU offers.

    Attributes:
        items: those of the page.
        total_count: how many all pages hold, where the answer says so.
    """

    items: list[GpuOffer]


class DiskOfferPage(_OfferPage):
    """A page of disk offers.

    Attributes:
        items: those of the page.
        total_count: how many all pages hold, where the answer says so.
    """

    items: list[DiskOffer]


class LegacyOffers(ExactNumbers, RootModel[dict[str, list[GpuOffer]]]):
    """Offers by GPU type, as legacy routes give them; ``root`` is the mapping."""


class LowestPrices(CamelModel):
    """The lowest prices per hour, by the way to buy.

    Attributes:
        on_demand: of an ordinary offer.
        community_price: of a community offer.
        spot_price: of an offer that the provider may take back.
    """

    on_demand: Price | None = None
    community_price: Price | None = None
    spot_price: Price | None = None


class PriceSummary(ExactNumbers, RootModel[dict[str, dict[str, dict[str, LowestPrices | None]]]]):
    """The lowest prices: by GPU type, number of GPUs (as text) and region.

    ``root["H100_80GB"]["8"]["cheapest"]`` are those of eight H100 in any region.
    """
