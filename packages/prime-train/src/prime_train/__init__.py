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
    from prime_train.configs.estimates import ByteRange as ByteRange
    from prime_train.configs.estimates import CheckpointNeed as CheckpointNeed
    from prime_train.configs.estimates import RunEstimate as RunEstimate
    from prime_train.configs.estimates import checkpoint_need as checkpoint_need
    from prime_train.configs.estimates import estimate as estimate
    from prime_train.configs.knobs import DispatchKnobs as DispatchKnobs
    from prime_train.configs.loading import TrainConfig as TrainConfig
    from prime_train.configs.loading import load_config as load_config
    from prime_train.configs.payload import build_payload_from_toml as build_payload_from_toml
    from prime_train.configs.payload import build_request as build_request
    from prime_train.configs.secrets import RunSecrets as RunSecrets
    from prime_train.configs.secrets import read_secrets as read_secrets
    from prime_train.configs.sections.rl import RLConfig as RLConfig
    from prime_train.configs.sections.sft import SFTConfig as SFTConfig
    from prime_train.configs.sizes import VolumePrice as VolumePrice
    from prime_train.configs.sizes import volume_price as volume_price
    from prime_train.configs.sizing import GpuCount as GpuCount
    from prime_train.errors import ConfigIssue as ConfigIssue
    from prime_train.errors import InvalidConfigError as InvalidConfigError
    from prime_train.models.dispatch import CreateRunRequest as CreateRunRequest

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncTrainClient": "prime_train._async.train_client",
    "BadRequestError": "prime_core.errors",
    "ByteRange": "prime_train.configs.estimates",
    "CheckpointNeed": "prime_train.configs.estimates",
    "Config": "prime_core.config",
    "ConfigIssue": "prime_train.errors",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "CreateRunRequest": "prime_train.models.dispatch",
    "DispatchKnobs": "prime_train.configs.knobs",
    "ForbiddenError": "prime_core.errors",
    "GpuCount": "prime_train.configs.sizing",
    "InvalidConfigError": "prime_train.errors",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "PrimeError": "prime_core.errors",
    "QuotaExceededError": "prime_core.errors",
    "RLConfig": "prime_train.configs.sections.rl",
    "RateLimitError": "prime_core.errors",
    "RunEstimate": "prime_train.configs.estimates",
    "RunSecrets": "prime_train.configs.secrets",
    "SFTConfig": "prime_train.configs.sections.sft",
    "ServerError": "prime_core.errors",
    "TrainClient": "prime_train._sync.train_client",
    "TrainConfig": "prime_train.configs.loading",
    "UnauthorizedError": "prime_core.errors",
    "ValidationError": "prime_core.errors",
    "VolumePrice": "prime_train.configs.sizes",
    "build_payload_from_toml": "prime_train.configs.payload",
    "build_request": "prime_train.configs.payload",
    "checkpoint_need": "prime_train.configs.estimates",
    "estimate": "prime_train.configs.estimates",
    "load_config": "prime_train.configs.loading",
    "read_secrets": "prime_train.configs.secrets",
    "volume_price": "prime_train.configs.sizes",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
