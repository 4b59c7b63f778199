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
    from prime_core.errors import UnsafeArchiveError as UnsafeArchiveError
    from prime_core.errors import ValidationError as ValidationError
    from prime_train._async.capacity import AsyncCapacity as AsyncCapacity
    from prime_train._async.environments import AsyncEnvironments as AsyncEnvironments
    from prime_train._async.evaluations import AsyncEvaluations as AsyncEvaluations
    from prime_train._async.external_runs import AsyncExternalRuns as AsyncExternalRuns
    from prime_train._async.train_client import AsyncTrainClient as AsyncTrainClient
    from prime_train._async.volume_sessions import AsyncOpenVolumeSession as AsyncOpenVolumeSession
    from prime_train._async.volumes import AsyncVolumes as AsyncVolumes
    from prime_train._sync.capacity import Capacity as Capacity
    from prime_train._sync.environments import Environments as Environments
    from prime_train._sync.evaluations import Evaluations as Evaluations
    from prime_train._sync.external_runs import ExternalRuns as ExternalRuns
    from prime_train._sync.train_client import TrainClient as TrainClient
    from prime_train._sync.volume_sessions import OpenVolumeSession as OpenVolumeSession
    from prime_train._sync.volumes import Volumes as Volumes
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
    from prime_train.errors import BucketTransferError as BucketTransferError
    from prime_train.errors import BucketTransferTimeoutError as BucketTransferTimeoutError
    from prime_train.errors import ConfigIssue as ConfigIssue
    from prime_train.errors import HostedEvaluationError as HostedEvaluationError
    from prime_train.errors import HostedEvaluationTimeoutError as HostedEvaluationTimeoutError
    from prime_train.errors import InvalidConfigError as InvalidConfigError
    from prime_train.errors import InvalidSampleError as InvalidSampleError
    from prime_train.errors import OnDemandAccessError as OnDemandAccessError
    from prime_train.errors import PublishError as PublishError
    from prime_train.errors import PushSamplesError as PushSamplesError
    from prime_train.errors import RunEndedError as RunEndedError
    from prime_train.errors import RunError as RunError
    from prime_train.errors import RunFailedError as RunFailedError
    from prime_train.errors import RunTimeoutError as RunTimeoutError
    from prime_train.errors import SourceChangedError as SourceChangedError
    from prime_train.errors import VolumeBusyError as VolumeBusyError
    from prime_train.errors import VolumeChecksumError as VolumeChecksumError
    from prime_train.errors import VolumeExistsError as VolumeExistsError
    from prime_train.errors import VolumeFileNotFoundError as VolumeFileNotFoundError
    from prime_train.errors import VolumeNotReadyError as VolumeNotReadyError
    from prime_train.errors import VolumePathError as VolumePathError
    from prime_train.errors import VolumeSessionError as VolumeSessionError
    from prime_train.errors import VolumeSessionTimeoutError as VolumeSessionTimeoutError
    from prime_train.errors import VolumeSessionUnavailableError as VolumeSessionUnavailableError
    from prime_train.errors import VolumeTransferError as VolumeTransferError
    from prime_train.errors import VolumeWaitTimeoutError as VolumeWaitTimeoutError
    from prime_train.log_lines import LogGap as LogGap
    from prime_train.log_lines import parse_log_line as parse_log_line
    from prime_train.models.bucket_transfers import BucketCredentials as BucketCredentials
    from prime_train.models.bucket_transfers import BucketTransfer as BucketTransfer
    from prime_train.models.bucket_transfers import BucketTransferProgress as BucketTransferProgress
    from prime_train.models.bucket_transfers import BucketTransferStatus as BucketTransferStatus
    from prime_train.models.capacity import ModelCluster as ModelCluster
    from prime_train.models.capacity import OnDemandGpu as OnDemandGpu
    from prime_train.models.capacity import TrainableModel as TrainableModel
    from prime_train.models.capacity import TrainingCapacity as TrainingCapacity
    from prime_train.models.dispatch import CreateRunRequest as CreateRunRequest
    from prime_train.models.environments import Environment as Environment
    from prime_train.models.environments import EnvironmentFile as EnvironmentFile
    from prime_train.models.environments import EnvironmentFork as EnvironmentFork
    from prime_train.models.environments import EnvironmentInspection as EnvironmentInspection
    from prime_train.models.environments import EnvironmentList as EnvironmentList
    from prime_train.models.environments import EnvironmentListItem as EnvironmentListItem
    from prime_train.models.environments import EnvironmentOwner as EnvironmentOwner
    from prime_train.models.environments import EnvironmentSecret as EnvironmentSecret
    from prime_train.models.environments import EnvironmentSecretLink as EnvironmentSecretLink
    from prime_train.models.environments import EnvironmentStatus as EnvironmentStatus
    from prime_train.models.environments import EnvironmentVariable as EnvironmentVariable
    from prime_train.models.environments import EnvironmentVersion as EnvironmentVersion
    from prime_train.models.environments import EnvironmentVersionRef as EnvironmentVersionRef
    from prime_train.models.environments import EnvironmentVisibility as EnvironmentVisibility
    from prime_train.models.environments import PublishedEnvironment as PublishedEnvironment
    from prime_train.models.environments import ResolvedEnvironment as ResolvedEnvironment
    from prime_train.models.evaluations import CreatedEvaluation as CreatedEvaluation
    from prime_train.models.evaluations import DeletedEvaluations as DeletedEvaluations
    from prime_train.models.evaluations import EnvironmentReference as EnvironmentReference
    from prime_train.models.evaluations import Evaluation as Evaluation
    from prime_train.models.evaluations import EvaluationList as EvaluationList
    from prime_train.models.evaluations import EvaluationStatus as EvaluationStatus
    from prime_train.models.evaluations import EvaluationType as EvaluationType
    from prime_train.models.evaluations import FailedSamples as FailedSamples
    from prime_train.models.evaluations import FinalizedEvaluation as FinalizedEvaluation
    from prime_train.models.evaluations import PushedSamples as PushedSamples
    from prime_train.models.evaluations import SamplePage as SamplePage
    from prime_train.models.evaluations import UpdatedEvaluation as UpdatedEvaluation
    from prime_train.models.external_runs import ExternalRun as ExternalRun
    from prime_train.models.external_runs import ExternalRunEnvironment as ExternalRunEnvironment
    from prime_train.models.hosted_evaluations import CancelledEvaluation as CancelledEvaluation
    from prime_train.models.hosted_evaluations import (
        CreatedHostedEvaluation as CreatedHostedEvaluation,
    )
    from prime_train.models.hosted_evaluations import HostedEvalConfig as HostedEvalConfig
    from prime_train.models.hosted_evaluations import InferenceModel as InferenceModel
    from prime_train.models.run_dispatch import DispatchedRun as DispatchedRun
    from prime_train.models.run_dispatch import PreparedRun as PreparedRun
    from prime_train.models.run_dispatch import RunRuntime as RunRuntime
    from prime_train.models.run_logs import EnvServer as EnvServer
    from prime_train.models.run_logs import LogLevel as LogLevel
    from prime_train.models.run_logs import LogLine as LogLine
    from prime_train.models.run_logs import RunComponent as RunComponent
    from prime_train.models.run_outputs import HistogramBin as HistogramBin
    from prime_train.models.run_outputs import RunCheckpoint as RunCheckpoint
    from prime_train.models.run_outputs import RunCheckpointStatus as RunCheckpointStatus
    from prime_train.models.run_outputs import RunDistribution as RunDistribution
    from prime_train.models.run_outputs import RunProgress as RunProgress
    from prime_train.models.run_outputs import RunSample as RunSample
    from prime_train.models.run_outputs import RunSamplePage as RunSamplePage
    from prime_train.models.runs import FailureAnalysis as FailureAnalysis
    from prime_train.models.runs import Run as Run
    from prime_train.models.runs import RunKind as RunKind
    from prime_train.models.runs import RunPage as RunPage
    from prime_train.models.runs import RunState as RunState
    from prime_train.models.runs import RunStatus as RunStatus
    from prime_train.models.volume_sessions import VolumeSession as VolumeSession
    from prime_train.models.volume_sessions import VolumeSessionGateway as VolumeSessionGateway
    from prime_train.models.volume_sessions import VolumeSessionPhase as VolumeSessionPhase
    from prime_train.models.volume_transfers import VolumeDiskUsage as VolumeDiskUsage
    from prime_train.models.volume_transfers import VolumeEntry as VolumeEntry
    from prime_train.models.volume_transfers import VolumeGet as VolumeGet
    from prime_train.models.volume_transfers import VolumePut as VolumePut
    from prime_train.models.volume_transfers import VolumeTransferRoute as VolumeTransferRoute
    from prime_train.models.volumes import Volume as Volume
    from prime_train.models.volumes import VolumeStatus as VolumeStatus
    from prime_train.models.volumes import VolumeUsage as VolumeUsage

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncCapacity": "prime_train._async.capacity",
    "AsyncEnvironments": "prime_train._async.environments",
    "AsyncEvaluations": "prime_train._async.evaluations",
    "AsyncExternalRuns": "prime_train._async.external_runs",
    "AsyncOpenVolumeSession": "prime_train._async.volume_sessions",
    "AsyncTrainClient": "prime_train._async.train_client",
    "AsyncVolumes": "prime_train._async.volumes",
    "BadRequestError": "prime_core.errors",
    "BucketCredentials": "prime_train.models.bucket_transfers",
    "BucketTransfer": "prime_train.models.bucket_transfers",
    "BucketTransferError": "prime_train.errors",
    "BucketTransferProgress": "prime_train.models.bucket_transfers",
    "BucketTransferStatus": "prime_train.models.bucket_transfers",
    "BucketTransferTimeoutError": "prime_train.errors",
    "ByteRange": "prime_train.configs.estimates",
    "CancelledEvaluation": "prime_train.models.hosted_evaluations",
    "Capacity": "prime_train._sync.capacity",
    "CheckpointNeed": "prime_train.configs.estimates",
    "Config": "prime_core.config",
    "ConfigIssue": "prime_train.errors",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "CreateRunRequest": "prime_train.models.dispatch",
    "CreatedEvaluation": "prime_train.models.evaluations",
    "CreatedHostedEvaluation": "prime_train.models.hosted_evaluations",
    "DeletedEvaluations": "prime_train.models.evaluations",
    "DispatchKnobs": "prime_train.configs.knobs",
    "DispatchedRun": "prime_train.models.run_dispatch",
    "EnvServer": "prime_train.models.run_logs",
    "Environment": "prime_train.models.environments",
    "EnvironmentFile": "prime_train.models.environments",
    "EnvironmentFork": "prime_train.models.environments",
    "EnvironmentInspection": "prime_train.models.environments",
    "EnvironmentList": "prime_train.models.environments",
    "EnvironmentListItem": "prime_train.models.environments",
    "EnvironmentOwner": "prime_train.models.environments",
    "EnvironmentReference": "prime_train.models.evaluations",
    "EnvironmentSecret": "prime_train.models.environments",
    "EnvironmentSecretLink": "prime_train.models.environments",
    "EnvironmentStatus": "prime_train.models.environments",
    "EnvironmentVariable": "prime_train.models.environments",
    "EnvironmentVersion": "prime_train.models.environments",
    "EnvironmentVersionRef": "prime_train.models.environments",
    "EnvironmentVisibility": "prime_train.models.environments",
    "Environments": "prime_train._sync.environments",
    "Evaluation": "prime_train.models.evaluations",
    "EvaluationList": "prime_train.models.evaluations",
    "EvaluationStatus": "prime_train.models.evaluations",
    "EvaluationType": "prime_train.models.evaluations",
    "Evaluations": "prime_train._sync.evaluations",
    "ExternalRun": "prime_train.models.external_runs",
    "ExternalRunEnvironment": "prime_train.models.external_runs",
    "ExternalRuns": "prime_train._sync.external_runs",
    "FailedSamples": "prime_train.models.evaluations",
    "FailureAnalysis": "prime_train.models.runs",
    "FinalizedEvaluation": "prime_train.models.evaluations",
    "ForbiddenError": "prime_core.errors",
    "GpuCount": "prime_train.configs.sizing",
    "HistogramBin": "prime_train.models.run_outputs",
    "HostedEvalConfig": "prime_train.models.hosted_evaluations",
    "HostedEvaluationError": "prime_train.errors",
    "HostedEvaluationTimeoutError": "prime_train.errors",
    "InferenceModel": "prime_train.models.hosted_evaluations",
    "InvalidConfigError": "prime_train.errors",
    "InvalidSampleError": "prime_train.errors",
    "LogGap": "prime_train.log_lines",
    "LogLevel": "prime_train.models.run_logs",
    "LogLine": "prime_train.models.run_logs",
    "ModelCluster": "prime_train.models.capacity",
    "NotFoundError": "prime_core.errors",
    "OnDemandAccessError": "prime_train.errors",
    "OnDemandGpu": "prime_train.models.capacity",
    "OpenVolumeSession": "prime_train._sync.volume_sessions",
    "PaymentRequiredError": "prime_core.errors",
    "PreparedRun": "prime_train.models.run_dispatch",
    "PrimeError": "prime_core.errors",
    "PublishError": "prime_train.errors",
    "PublishedEnvironment": "prime_train.models.environments",
    "PushSamplesError": "prime_train.errors",
    "PushedSamples": "prime_train.models.evaluations",
    "QuotaExceededError": "prime_core.errors",
    "RLConfig": "prime_train.configs.sections.rl",
    "RateLimitError": "prime_core.errors",
    "ResolvedEnvironment": "prime_train.models.environments",
    "Run": "prime_train.models.runs",
    "RunCheckpoint": "prime_train.models.run_outputs",
    "RunCheckpointStatus": "prime_train.models.run_outputs",
    "RunComponent": "prime_train.models.run_logs",
    "RunDistribution": "prime_train.models.run_outputs",
    "RunEndedError": "prime_train.errors",
    "RunError": "prime_train.errors",
    "RunEstimate": "prime_train.configs.estimates",
    "RunFailedError": "prime_train.errors",
    "RunKind": "prime_train.models.runs",
    "RunPage": "prime_train.models.runs",
    "RunProgress": "prime_train.models.run_outputs",
    "RunRuntime": "prime_train.models.run_dispatch",
    "RunSample": "prime_train.models.run_outputs",
    "RunSamplePage": "prime_train.models.run_outputs",
    "RunSecrets": "prime_train.configs.secrets",
    "RunState": "prime_train.models.runs",
    "RunStatus": "prime_train.models.runs",
    "RunTimeoutError": "prime_train.errors",
    "SFTConfig": "prime_train.configs.sections.sft",
    "SamplePage": "prime_train.models.evaluations",
    "ServerError": "prime_core.errors",
    "SourceChangedError": "prime_train.errors",
    "TrainClient": "prime_train._sync.train_client",
    "TrainConfig": "prime_train.configs.loading",
    "TrainableModel": "prime_train.models.capacity",
    "TrainingCapacity": "prime_train.models.capacity",
    "UnauthorizedError": "prime_core.errors",
    "UnsafeArchiveError": "prime_core.errors",
    "UpdatedEvaluation": "prime_train.models.evaluations",
    "ValidationError": "prime_core.errors",
    "Volume": "prime_train.models.volumes",
    "VolumeBusyError": "prime_train.errors",
    "VolumeChecksumError": "prime_train.errors",
    "VolumeDiskUsage": "prime_train.models.volume_transfers",
    "VolumeEntry": "prime_train.models.volume_transfers",
    "VolumeExistsError": "prime_train.errors",
    "VolumeFileNotFoundError": "prime_train.errors",
    "VolumeGet": "prime_train.models.volume_transfers",
    "VolumeNotReadyError": "prime_train.errors",
    "VolumePathError": "prime_train.errors",
    "VolumePrice": "prime_train.configs.sizes",
    "VolumePut": "prime_train.models.volume_transfers",
    "VolumeSession": "prime_train.models.volume_sessions",
    "VolumeSessionError": "prime_train.errors",
    "VolumeSessionGateway": "prime_train.models.volume_sessions",
    "VolumeSessionPhase": "prime_train.models.volume_sessions",
    "VolumeSessionTimeoutError": "prime_train.errors",
    "VolumeSessionUnavailableError": "prime_train.errors",
    "VolumeStatus": "prime_train.models.volumes",
    "VolumeTransferError": "prime_train.errors",
    "VolumeTransferRoute": "prime_train.models.volume_transfers",
    "VolumeUsage": "prime_train.models.volumes",
    "VolumeWaitTimeoutError": "prime_train.errors",
    "Volumes": "prime_train._sync.volumes",
    "build_payload_from_toml": "prime_train.configs.payload",
    "build_request": "prime_train.configs.payload",
    "checkpoint_need": "prime_train.configs.estimates",
    "estimate": "prime_train.configs.estimates",
    "load_config": "prime_train.configs.loading",
    "parse_log_line": "prime_train.log_lines",
    "read_secrets": "prime_train.configs.secrets",
    "volume_price": "prime_train.configs.sizes",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
