"""The transport that the Prime Intellect SDK packages share."""

# A bare table: nothing is imported before a name of it is used (PEP 562), because even
# typing, dataclasses and enum cost a third of pydantic's import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_core._async.api_client import AsyncAPIClient as AsyncAPIClient
    from prime_core._async.login import AsyncLogin as AsyncLogin
    from prime_core._sync.api_client import APIClient as APIClient
    from prime_core._sync.login import Login as Login
    from prime_core.buffers import Gap as Gap
    from prime_core.config import Config as Config
    from prime_core.errors import APIConnectionError as APIConnectionError
    from prime_core.errors import APIError as APIError
    from prime_core.errors import APIResponseError as APIResponseError
    from prime_core.errors import APITimeoutError as APITimeoutError
    from prime_core.errors import BadRequestError as BadRequestError
    from prime_core.errors import ConfigurationError as ConfigurationError
    from prime_core.errors import ConflictError as ConflictError
    from prime_core.errors import ForbiddenError as ForbiddenError
    from prime_core.errors import LoginExpiredError as LoginExpiredError
    from prime_core.errors import LoginTimeoutError as LoginTimeoutError
    from prime_core.errors import NotFoundError as NotFoundError
    from prime_core.errors import PaymentRequiredError as PaymentRequiredError
    from prime_core.errors import PrimeError as PrimeError
    from prime_core.errors import QuotaExceededError as QuotaExceededError
    from prime_core.errors import RateLimitError as RateLimitError
    from prime_core.errors import ServerError as ServerError
    from prime_core.errors import StreamStateError as StreamStateError
    from prime_core.errors import UnauthorizedError as UnauthorizedError
    from prime_core.errors import UnsafeArchiveError as UnsafeArchiveError
    from prime_core.errors import ValidationError as ValidationError
    from prime_core.login.models import LoginChallenge as LoginChallenge
    from prime_core.login.models import LoginLimits as LoginLimits
    from prime_core.login.models import LoginResult as LoginResult
    from prime_core.login.models import LoginTeam as LoginTeam
    from prime_core.operations import RateLimit as RateLimit

__version__ = "0.1.0"

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncLogin": "prime_core._async.login",
    "BadRequestError": "prime_core.errors",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "ForbiddenError": "prime_core.errors",
    "Gap": "prime_core.buffers",
    "Login": "prime_core._sync.login",
    "LoginChallenge": "prime_core.login.models",
    "LoginExpiredError": "prime_core.errors",
    "LoginLimits": "prime_core.login.models",
    "LoginResult": "prime_core.login.models",
    "LoginTeam": "prime_core.login.models",
    "LoginTimeoutError": "prime_core.errors",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "PrimeError": "prime_core.errors",
    "QuotaExceededError": "prime_core.errors",
    "RateLimit": "prime_core.operations",
    "RateLimitError": "prime_core.errors",
    "ServerError": "prime_core.errors",
    "StreamStateError": "prime_core.errors",
    "UnauthorizedError": "prime_core.errors",
    "UnsafeArchiveError": "prime_core.errors",
    "ValidationError": "prime_core.errors",
}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
