"""GPUs, disks, clusters and accounts on the Prime Intellect platform, async and sync."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_compute._async.availability import AsyncAvailability as AsyncAvailability
    from prime_compute._async.compute_client import AsyncComputeClient as AsyncComputeClient
    from prime_compute._sync.availability import Availability as Availability
    from prime_compute._sync.compute_client import ComputeClient as ComputeClient
    from prime_compute.choosing import PricedOffer as PricedOffer
    from prime_compute.errors import NoOfferError as NoOfferError
    from prime_compute.filters import DiskFilters as DiskFilters
    from prime_compute.filters import GpuFilters as GpuFilters
    from prime_compute.models import Currency as Currency
    from prime_compute.models import DiskOffer as DiskOffer
    from prime_compute.models import DiskOfferPage as DiskOfferPage
    from prime_compute.models import EnvironmentImage as EnvironmentImage
    from prime_compute.models import GpuOffer as GpuOffer
    from prime_compute.models import GpuOfferPage as GpuOfferPage
    from prime_compute.models import GpuSocket as GpuSocket
    from prime_compute.models import GpuType as GpuType
    from prime_compute.models import LegacyOffers as LegacyOffers
    from prime_compute.models import LowestPrices as LowestPrices
    from prime_compute.models import Prices as Prices
    from prime_compute.models import PriceSummary as PriceSummary
    from prime_compute.models import ProviderType as ProviderType
    from prime_compute.models import Region as Region
    from prime_compute.models import ResourceSpec as ResourceSpec
    from prime_compute.models import SecurityType as SecurityType
    from prime_compute.models import StockStatus as StockStatus
    from prime_compute.pricing import HourlyCost as HourlyCost
    from prime_compute.pricing import StepFit as StepFit
    from prime_compute.pricing import check_amount as check_amount
    from prime_compute.pricing import disk_cost as disk_cost
    from prime_compute.pricing import hourly_cost as hourly_cost
    from prime_compute.pricing import resource_cost as resource_cost
    from prime_compute.pricing import step_fit as step_fit
    from prime_compute.pricing import token_cost as token_cost
    from prime_core._async.api_client import AsyncAPIClient as AsyncAPIClient
    from prime_core._sync.api_client import APIClient as APIClient
    from prime_core.config import Config as Config
    from prime_core.errors import APIConnectionError as APIConnectionError
    from prime_core.errors import APIError as APIError
    from prime_core.errors import APIResponseError as APIResponseError
    from prime_core.errors import APITimeoutError as APITimeoutError
    from prime_core.errors import BadRequestError as BadRequestError
    from prime_core.errors import ConfigurationError as ConfigurationError
    from prime_core.errors import ConflictError as ConflictError
    from prime_core.errors import ForbiddenError as ForbiddenError
    from prime_core.errors import NotFoundError as NotFoundError
    from prime_core.errors import PaymentRequiredError as PaymentRequiredError
    from prime_core.errors import PrimeError as PrimeError
    from prime_core.errors import QuotaExceededError as QuotaExceededError
    from prime_core.errors import RateLimitError as RateLimitError
    from prime_core.errors import ServerError as ServerError
    from prime_core.errors import UnauthorizedError as UnauthorizedError
    from prime_core.errors import ValidationError as ValidationError

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncAvailability": "prime_compute._async.availability",
    "AsyncComputeClient": "prime_compute._async.compute_client",
    "Availability": "prime_compute._sync.availability",
    "BadRequestError": "prime_core.errors",
    "ComputeClient": "prime_compute._sync.compute_client",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "Currency": "prime_compute.models",
    "DiskFilters": "prime_compute.filters",
    "DiskOffer": "prime_compute.models",
    "DiskOfferPage": "prime_compute.models",
    "EnvironmentImage": "prime_compute.models",
    "ForbiddenError": "prime_core.errors",
    "GpuFilters": "prime_compute.filters",
    "GpuOffer": "prime_compute.models",
    "GpuOfferPage": "prime_compute.models",
    "GpuSocket": "prime_compute.models",
    "GpuType": "prime_compute.models",
    "HourlyCost": "prime_compute.pricing",
    "LegacyOffers": "prime_compute.models",
    "LowestPrices": "prime_compute.models",
    "NoOfferError": "prime_compute.errors",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "PriceSummary": "prime_compute.models",
    "PricedOffer": "prime_compute.choosing",
    "Prices": "prime_compute.models",
    "PrimeError": "prime_core.errors",
    "ProviderType": "prime_compute.models",
    "QuotaExceededError": "prime_core.errors",
    "RateLimitError": "prime_core.errors",
    "Region": "prime_compute.models",
    "ResourceSpec": "prime_compute.models",
    "SecurityType": "prime_compute.models",
    "ServerError": "prime_core.errors",
    "StepFit": "prime_compute.pricing",
    "StockStatus": "prime_compute.models",
    "UnauthorizedError": "prime_core.errors",
    "ValidationError": "prime_core.errors",
    "check_amount": "prime_compute.pricing",
    "disk_cost": "prime_compute.pricing",
    "hourly_cost": "prime_compute.pricing",
    "resource_cost": "prime_compute.pricing",
    "step_fit": "prime_compute.pricing",
    "token_cost": "prime_compute.pricing",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
