"""What compute and account routes take and answer."""

from prime_compute.models.availability import (
    DiskOffer,
    DiskOfferPage,
    GpuOffer,
    GpuOfferPage,
    LegacyOffers,
    LowestPrices,
    Prices,
    PriceSummary,
    ResourceSpec,
)
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

__all__ = [
    "CamelModel",
    "Currency",
    "DiskOffer",
    "DiskOfferPage",
    "EnvironmentImage",
    "GpuOffer",
    "GpuOfferPage",
    "GpuSocket",
    "GpuType",
    "LegacyOffers",
    "LowestPrices",
    "PriceSummary",
    "Prices",
    "ProviderType",
    "Region",
    "ResourceSpec",
    "SecurityType",
    "StockStatus",
]
