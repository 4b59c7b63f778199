"""Sandboxes on the Prime Intellect platform, async and sync."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_core._async.api_client import AsyncAPIClient as AsyncAPIClient
    from prime_core._sync.api_client import APIClient as APIClient
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
    from prime_core.operations import RateLimit as RateLimit
    from prime_sandboxes._async.fleet import AsyncFleet as AsyncFleet
    from prime_sandboxes._async.fleet import AsyncSandboxHandle as AsyncSandboxHandle
    from prime_sandboxes._async.image_client import AsyncImageClient as AsyncImageClient
    from prime_sandboxes._async.process_output import AsyncProcessOutput as AsyncProcessOutput
    from prime_sandboxes._async.processes import AsyncSandboxProcess as AsyncSandboxProcess
    from prime_sandboxes._async.sandbox_client import AsyncSandboxClient as AsyncSandboxClient
    from prime_sandboxes._sync.fleet import Fleet as Fleet
    from prime_sandboxes._sync.fleet import SandboxHandle as SandboxHandle
    from prime_sandboxes._sync.image_client import ImageClient as ImageClient
    from prime_sandboxes._sync.process_output import ProcessOutput as ProcessOutput
    from prime_sandboxes._sync.processes import SandboxProcess as SandboxProcess
    from prime_sandboxes._sync.sandbox_client import SandboxClient as SandboxClient
    from prime_sandboxes.errors import BackgroundJobLostError as BackgroundJobLostError
    from prime_sandboxes.errors import BatchStatusUnsupportedError as BatchStatusUnsupportedError
    from prime_sandboxes.errors import CheckpointFailedError as CheckpointFailedError
    from prime_sandboxes.errors import CheckpointTimeoutError as CheckpointTimeoutError
    from prime_sandboxes.errors import CommandTimeoutError as CommandTimeoutError
    from prime_sandboxes.errors import DownloadTimeoutError as DownloadTimeoutError
    from prime_sandboxes.errors import FleetCleanupError as FleetCleanupError
    from prime_sandboxes.errors import ImageBuildError as ImageBuildError
    from prime_sandboxes.errors import ImageBuildTimeoutError as ImageBuildTimeoutError
    from prime_sandboxes.errors import ImageUpdateError as ImageUpdateError
    from prime_sandboxes.errors import LanMembershipError as LanMembershipError
    from prime_sandboxes.errors import NetworkSyncTimeoutError as NetworkSyncTimeoutError
    from prime_sandboxes.errors import SandboxFileNotFoundError as SandboxFileNotFoundError
    from prime_sandboxes.errors import SandboxFileTooLargeError as SandboxFileTooLargeError
    from prime_sandboxes.errors import SandboxImagePullError as SandboxImagePullError
    from prime_sandboxes.errors import SandboxNotRunningError as SandboxNotRunningError
    from prime_sandboxes.errors import SandboxOOMError as SandboxOOMError
    from prime_sandboxes.errors import SandboxTimeoutError as SandboxTimeoutError
    from prime_sandboxes.errors import UploadTimeoutError as UploadTimeoutError
    from prime_sandboxes.models import AdvancedConfigs as AdvancedConfigs
    from prime_sandboxes.models import BackgroundJob as BackgroundJob
    from prime_sandboxes.models import BackgroundJobStatus as BackgroundJobStatus
    from prime_sandboxes.models import BackgroundJobStatusSnapshot as BackgroundJobStatusSnapshot
    from prime_sandboxes.models import BatchCheckpointResponse as BatchCheckpointResponse
    from prime_sandboxes.models import BatchSandboxStatusResponse as BatchSandboxStatusResponse
    from prime_sandboxes.models import BuildImageRequest as BuildImageRequest
    from prime_sandboxes.models import BuildImageResponse as BuildImageResponse
    from prime_sandboxes.models import BulkBuildImageResponse as BulkBuildImageResponse
    from prime_sandboxes.models import BulkDeleteSandboxRequest as BulkDeleteSandboxRequest
    from prime_sandboxes.models import BulkDeleteSandboxResponse as BulkDeleteSandboxResponse
    from prime_sandboxes.models import CheckpointDeleteError as CheckpointDeleteError
    from prime_sandboxes.models import CheckpointLookupError as CheckpointLookupError
    from prime_sandboxes.models import CommandResponse as CommandResponse
    from prime_sandboxes.models import CreateSandboxRequest as CreateSandboxRequest
    from prime_sandboxes.models import (
        DeleteSandboxCheckpointsResponse as DeleteSandboxCheckpointsResponse,
    )
    from prime_sandboxes.models import EgressPolicyStatus as EgressPolicyStatus
    from prime_sandboxes.models import ErrorContext as ErrorContext
    from prime_sandboxes.models import FileUploadResponse as FileUploadResponse
    from prime_sandboxes.models import ImageArtifactType as ImageArtifactType
    from prime_sandboxes.models import ImageBuild as ImageBuild
    from prime_sandboxes.models import ImageBuildArtifact as ImageBuildArtifact
    from prime_sandboxes.models import ImageBuildListResponse as ImageBuildListResponse
    from prime_sandboxes.models import ImageBuildStatus as ImageBuildStatus
    from prime_sandboxes.models import ImageCoordinateState as ImageCoordinateState
    from prime_sandboxes.models import ImageListItem as ImageListItem
    from prime_sandboxes.models import ImageListResponse as ImageListResponse
    from prime_sandboxes.models import ImageMutationError as ImageMutationError
    from prime_sandboxes.models import ImageOwner as ImageOwner
    from prime_sandboxes.models import ImageOwnerType as ImageOwnerType
    from prime_sandboxes.models import ImageUpdateItem as ImageUpdateItem
    from prime_sandboxes.models import ImageUpdatePatch as ImageUpdatePatch
    from prime_sandboxes.models import ImageUpdateResult as ImageUpdateResult
    from prime_sandboxes.models import ImageUpdateSource as ImageUpdateSource
    from prime_sandboxes.models import ImageVisibility as ImageVisibility
    from prime_sandboxes.models import LanNetwork as LanNetwork
    from prime_sandboxes.models import LanNetworkMember as LanNetworkMember
    from prime_sandboxes.models import LanRule as LanRule
    from prime_sandboxes.models import OtherImageOwner as OtherImageOwner
    from prime_sandboxes.models import PersonalImageOwner as PersonalImageOwner
    from prime_sandboxes.models import PlatformImageOwner as PlatformImageOwner
    from prime_sandboxes.models import ProcessInfo as ProcessInfo
    from prime_sandboxes.models import ReadFileResponse as ReadFileResponse
    from prime_sandboxes.models import Sandbox as Sandbox
    from prime_sandboxes.models import SandboxCheckpoint as SandboxCheckpoint
    from prime_sandboxes.models import SandboxEgressPolicy as SandboxEgressPolicy
    from prime_sandboxes.models import SandboxListResponse as SandboxListResponse
    from prime_sandboxes.models import SandboxStatus as SandboxStatus
    from prime_sandboxes.models import SandboxStatusLookupError as SandboxStatusLookupError
    from prime_sandboxes.models import SandboxStatusSnapshot as SandboxStatusSnapshot
    from prime_sandboxes.models import SourceImageBuildResult as SourceImageBuildResult
    from prime_sandboxes.models import SSHSession as SSHSession
    from prime_sandboxes.models import StartCommand as StartCommand
    from prime_sandboxes.models import TeamImageOwner as TeamImageOwner
    from prime_sandboxes.models import UpdatedImageSource as UpdatedImageSource
    from prime_sandboxes.models import UpdateImagesRequest as UpdateImagesRequest
    from prime_sandboxes.models import UpdateImagesResponse as UpdateImagesResponse
    from prime_sandboxes.models import Volume as Volume
    from prime_sandboxes.models import VolumeListResponse as VolumeListResponse
    from prime_sandboxes.models import VolumeMount as VolumeMount
    from prime_sandboxes.outcomes import Fork as Fork
    from prime_sandboxes.outcomes import Outcome as Outcome
    from prime_sandboxes.outcomes import Timings as Timings

    TimeoutError = APITimeoutError

__version__ = "0.1.0"

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AdvancedConfigs": "prime_sandboxes.models",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncFleet": "prime_sandboxes._async.fleet",
    "AsyncProcessOutput": "prime_sandboxes._async.process_output",
    "AsyncImageClient": "prime_sandboxes._async.image_client",
    "AsyncSandboxClient": "prime_sandboxes._async.sandbox_client",
    "AsyncSandboxHandle": "prime_sandboxes._async.fleet",
    "AsyncSandboxProcess": "prime_sandboxes._async.processes",
    "BackgroundJob": "prime_sandboxes.models",
    "BackgroundJobLostError": "prime_sandboxes.errors",
    "BackgroundJobStatus": "prime_sandboxes.models",
    "BackgroundJobStatusSnapshot": "prime_sandboxes.models",
    "BadRequestError": "prime_core.errors",
    "BatchCheckpointResponse": "prime_sandboxes.models",
    "BatchSandboxStatusResponse": "prime_sandboxes.models",
    "BatchStatusUnsupportedError": "prime_sandboxes.errors",
    "BuildImageRequest": "prime_sandboxes.models",
    "BuildImageResponse": "prime_sandboxes.models",
    "BulkBuildImageResponse": "prime_sandboxes.models",
    "BulkDeleteSandboxRequest": "prime_sandboxes.models",
    "BulkDeleteSandboxResponse": "prime_sandboxes.models",
    "CheckpointDeleteError": "prime_sandboxes.models",
    "CheckpointFailedError": "prime_sandboxes.errors",
    "CheckpointLookupError": "prime_sandboxes.models",
    "CheckpointTimeoutError": "prime_sandboxes.errors",
    "CommandResponse": "prime_sandboxes.models",
    "CommandTimeoutError": "prime_sandboxes.errors",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "CreateSandboxRequest": "prime_sandboxes.models",
    "DownloadTimeoutError": "prime_sandboxes.errors",
    "DeleteSandboxCheckpointsResponse": "prime_sandboxes.models",
    "EgressPolicyStatus": "prime_sandboxes.models",
    "ErrorContext": "prime_sandboxes.models",
    "FileUploadResponse": "prime_sandboxes.models",
    "Fleet": "prime_sandboxes._sync.fleet",
    "FleetCleanupError": "prime_sandboxes.errors",
    "ForbiddenError": "prime_core.errors",
    "Fork": "prime_sandboxes.outcomes",
    "Gap": "prime_core.buffers",
    "LanMembershipError": "prime_sandboxes.errors",
    "LanNetwork": "prime_sandboxes.models",
    "LanNetworkMember": "prime_sandboxes.models",
    "LanRule": "prime_sandboxes.models",
    "NetworkSyncTimeoutError": "prime_sandboxes.errors",
    "ImageArtifactType": "prime_sandboxes.models",
    "ImageBuild": "prime_sandboxes.models",
    "ImageBuildArtifact": "prime_sandboxes.models",
    "ImageBuildError": "prime_sandboxes.errors",
    "ImageBuildListResponse": "prime_sandboxes.models",
    "ImageBuildStatus": "prime_sandboxes.models",
    "ImageBuildTimeoutError": "prime_sandboxes.errors",
    "ImageClient": "prime_sandboxes._sync.image_client",
    "ImageCoordinateState": "prime_sandboxes.models",
    "ImageListItem": "prime_sandboxes.models",
    "ImageListResponse": "prime_sandboxes.models",
    "ImageMutationError": "prime_sandboxes.models",
    "ImageOwner": "prime_sandboxes.models",
    "ImageOwnerType": "prime_sandboxes.models",
    "ImageUpdateError": "prime_sandboxes.errors",
    "ImageUpdateItem": "prime_sandboxes.models",
    "ImageUpdatePatch": "prime_sandboxes.models",
    "ImageUpdateResult": "prime_sandboxes.models",
    "ImageUpdateSource": "prime_sandboxes.models",
    "ImageVisibility": "prime_sandboxes.models",
    "NotFoundError": "prime_core.errors",
    "OtherImageOwner": "prime_sandboxes.models",
    "Outcome": "prime_sandboxes.outcomes",
    "PaymentRequiredError": "prime_core.errors",
    "PersonalImageOwner": "prime_sandboxes.models",
    "PlatformImageOwner": "prime_sandboxes.models",
    "PrimeError": "prime_core.errors",
    "ProcessInfo": "prime_sandboxes.models",
    "ProcessOutput": "prime_sandboxes._sync.process_output",
    "QuotaExceededError": "prime_core.errors",
    "RateLimit": "prime_core.operations",
    "RateLimitError": "prime_core.errors",
    "ReadFileResponse": "prime_sandboxes.models",
    "SSHSession": "prime_sandboxes.models",
    "Sandbox": "prime_sandboxes.models",
    "SandboxCheckpoint": "prime_sandboxes.models",
    "SandboxClient": "prime_sandboxes._sync.sandbox_client",
    "SandboxEgressPolicy": "prime_sandboxes.models",
    "SandboxFileNotFoundError": "prime_sandboxes.errors",
    "SandboxFileTooLargeError": "prime_sandboxes.errors",
    "SandboxHandle": "prime_sandboxes._sync.fleet",
    "SandboxImagePullError": "prime_sandboxes.errors",
    "SandboxListResponse": "prime_sandboxes.models",
    "SandboxNotRunningError": "prime_sandboxes.errors",
    "SandboxOOMError": "prime_sandboxes.errors",
    "SandboxProcess": "prime_sandboxes._sync.processes",
    "SandboxStatus": "prime_sandboxes.models",
    "SandboxStatusLookupError": "prime_sandboxes.models",
    "SandboxStatusSnapshot": "prime_sandboxes.models",
    "SandboxTimeoutError": "prime_sandboxes.errors",
    "ServerError": "prime_core.errors",
    "StreamStateError": "prime_core.errors",
    "SourceImageBuildResult": "prime_sandboxes.models",
    "StartCommand": "prime_sandboxes.models",
    "TeamImageOwner": "prime_sandboxes.models",
    "Timings": "prime_sandboxes.outcomes",
    "UnauthorizedError": "prime_core.errors",
    "UnsafeArchiveError": "prime_core.errors",
    "UploadTimeoutError": "prime_sandboxes.errors",
    "UpdateImagesRequest": "prime_sandboxes.models",
    "UpdateImagesResponse": "prime_sandboxes.models",
    "UpdatedImageSource": "prime_sandboxes.models",
    "ValidationError": "prime_core.errors",
    "Volume": "prime_sandboxes.models",
    "VolumeListResponse": "prime_sandboxes.models",
    "VolumeMount": "prime_sandboxes.models",
    # The documented name, deprecated there: it hides the builtin where it is imported.
    "TimeoutError": "prime_core.errors:APITimeoutError",
}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
