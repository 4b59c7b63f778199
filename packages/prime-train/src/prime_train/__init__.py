"""Training on the Prime Intellect platform: runs, volumes, evaluations and environments."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from prime_train._async.train_client import AsyncTrainClient as AsyncTrainClient
    from prime_train._sync.train_client import TrainClient as TrainClient

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncTrainClient": "prime_train._async.train_client",
    "BadRequestError": "prime_core.errors",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "ForbiddenError": "prime_core.errors",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "PrimeError": "prime_core.errors",
    "QuotaExceededError": "prime_core.errors",
    "RateLimitError": "prime_core.errors",
    "ServerError": "prime_core.errors",
    "TrainClient": "prime_train._sync.train_client",
    "UnauthorizedError": "prime_core.errors",
    "ValidationError": "prime_core.errors",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
