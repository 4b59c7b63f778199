"""GPUs, disks, clusters and accounts on the Prime Intellect platform, async and sync."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_compute._async.account import AsyncAccount as AsyncAccount
    from prime_compute._async.availability import AsyncAvailability as AsyncAvailability
    from prime_compute._async.compute_client import AsyncComputeClient as AsyncComputeClient
    from prime_compute._async.factory import AsyncFactory as AsyncFactory
    from prime_compute._async.feedback import AsyncFeedback as AsyncFeedback
    from prime_compute._async.secrets import AsyncSecrets as AsyncSecrets
    from prime_compute._async.sessions import AsyncDiskSession as AsyncDiskSession
    from prime_compute._async.sessions import AsyncPodSession as AsyncPodSession
    from prime_compute._async.slurm import AsyncSlurm as AsyncSlurm
    from prime_compute._async.ssh_keys import AsyncSshKeys as AsyncSshKeys
    from prime_compute._async.teams import AsyncTeams as AsyncTeams
    from prime_compute._async.tokens import AsyncTokens as AsyncTokens
    from prime_compute._sync.account import Account as Account
    from prime_compute._sync.availability import Availability as Availability
    from prime_compute._sync.compute_client import ComputeClient as ComputeClient
    from prime_compute._sync.factory import Factory as Factory
    from prime_compute._sync.feedback import Feedback as Feedback
    from prime_compute._sync.secrets import Secrets as Secrets
    from prime_compute._sync.sessions import DiskSession as DiskSession
    from prime_compute._sync.sessions import PodSession as PodSession
    from prime_compute._sync.slurm import Slurm as Slurm
    from prime_compute._sync.ssh_keys import SshKeys as SshKeys
    from prime_compute._sync.teams import Teams as Teams
    from prime_compute._sync.tokens import Tokens as Tokens
    from prime_compute.choosing import PricedOffer as PricedOffer
    from prime_compute.errors import DiskNotActiveError as DiskNotActiveError
    from prime_compute.errors import DiskWaitTimeoutError as DiskWaitTimeoutError
    from prime_compute.errors import NoOfferError as NoOfferError
    from prime_compute.errors import PodGoneError as PodGoneError
    from prime_compute.errors import PodInstallationError as PodInstallationError
    from prime_compute.errors import PodNotActiveError as PodNotActiveError
    from prime_compute.errors import PodWaitTimeoutError as PodWaitTimeoutError
    from prime_compute.errors import SlurmNotRunningError as SlurmNotRunningError
    from prime_compute.errors import SlurmResizeUnverifiedError as SlurmResizeUnverifiedError
    from prime_compute.errors import SlurmUnavailableError as SlurmUnavailableError
    from prime_compute.errors import SlurmWaitTimeoutError as SlurmWaitTimeoutError
    from prime_compute.filters import DiskFilters as DiskFilters
    from prime_compute.filters import GpuFilters as GpuFilters
    from prime_compute.limits import EffectiveLimits as EffectiveLimits
    from prime_compute.limits import effective_limits as effective_limits
    from prime_compute.models import AccountLimits as AccountLimits
    from prime_compute.models import ApiToken as ApiToken
    from prime_compute.models import ApiTokenList as ApiTokenList
    from prime_compute.models import AttachedResource as AttachedResource
    from prime_compute.models import AttachmentStatus as AttachmentStatus
    from prime_compute.models import BillingEntry as BillingEntry
    from prime_compute.models import Currency as Currency
    from prime_compute.models import Disk as Disk
    from prime_compute.models import DiskInfo as DiskInfo
    from prime_compute.models import DiskList as DiskList
    from prime_compute.models import DiskOffer as DiskOffer
    from prime_compute.models import DiskOfferPage as DiskOfferPage
    from prime_compute.models import DiskRequest as DiskRequest
    from prime_compute.models import DiskStatus as DiskStatus
    from prime_compute.models import EnvironmentImage as EnvironmentImage
    from prime_compute.models import FactoryAllocation as FactoryAllocation
    from prime_compute.models import FactoryCluster as FactoryCluster
    from prime_compute.models import FactoryNode as FactoryNode
    from prime_compute.models import FactoryNodeCluster as FactoryNodeCluster
    from prime_compute.models import FactoryNodes as FactoryNodes
    from prime_compute.models import FactoryOwner as FactoryOwner
    from prime_compute.models import FactorySource as FactorySource
    from prime_compute.models import FactoryStatus as FactoryStatus
    from prime_compute.models import FactoryUtilization as FactoryUtilization
    from prime_compute.models import FactoryWorkload as FactoryWorkload
    from prime_compute.models import FactoryWorkloads as FactoryWorkloads
    from prime_compute.models import GpuOffer as GpuOffer
    from prime_compute.models import GpuOfferPage as GpuOfferPage
    from prime_compute.models import GpuSocket as GpuSocket
    from prime_compute.models import GpuType as GpuType
    from prime_compute.models import InstallationStatus as InstallationStatus
    from prime_compute.models import KeyLimits as KeyLimits
    from prime_compute.models import LegacyOffers as LegacyOffers
    from prime_compute.models import LowestPrices as LowestPrices
    from prime_compute.models import NodeState as NodeState
    from prime_compute.models import Permission as Permission
    from prime_compute.models import Pod as Pod
    from prime_compute.models import PodHistory as PodHistory
    from prime_compute.models import PodHistoryEntry as PodHistoryEntry
    from prime_compute.models import PodList as PodList
    from prime_compute.models import PodRequest as PodRequest
    from prime_compute.models import PodResources as PodResources
    from prime_compute.models import PodStatus as PodStatus
    from prime_compute.models import PodStatusSnapshot as PodStatusSnapshot
    from prime_compute.models import PortMapping as PortMapping
    from prime_compute.models import Prices as Prices
    from prime_compute.models import PriceSummary as PriceSummary
    from prime_compute.models import ProviderType as ProviderType
    from prime_compute.models import Region as Region
    from prime_compute.models import RenamedDisk as RenamedDisk
    from prime_compute.models import ResourceSpec as ResourceSpec
    from prime_compute.models import RunPricing as RunPricing
    from prime_compute.models import RunUsage as RunUsage
    from prime_compute.models import SecurityType as SecurityType
    from prime_compute.models import SlurmCluster as SlurmCluster
    from prime_compute.models import SlurmConnection as SlurmConnection
    from prime_compute.models import SlurmMember as SlurmMember
    from prime_compute.models import SlurmResize as SlurmResize
    from prime_compute.models import SlurmStatus as SlurmStatus
    from prime_compute.models import SshKey as SshKey
    from prime_compute.models import SshKeyChange as SshKeyChange
    from prime_compute.models import SshKeyList as SshKeyList
    from prime_compute.models import StockStatus as StockStatus
    from prime_compute.models import StoredSecret as StoredSecret
    from prime_compute.models import StoredSecretList as StoredSecretList
    from prime_compute.models import Team as Team
    from prime_compute.models import TeamList as TeamList
    from prime_compute.models import TeamMember as TeamMember
    from prime_compute.models import TeamMemberList as TeamMemberList
    from prime_compute.models import TeamRole as TeamRole
    from prime_compute.models import TokenUsage as TokenUsage
    from prime_compute.models import User as User
    from prime_compute.models import Wallet as Wallet
    from prime_compute.models import Whoami as Whoami
    from prime_compute.models import WorkloadState as WorkloadState
    from prime_compute.models import WorkloadType as WorkloadType
    from prime_compute.models import known_sum as known_sum
    from prime_compute.pricing import HourlyCost as HourlyCost
    from prime_compute.pricing import StepFit as StepFit
    from prime_compute.pricing import check_amount as check_amount
    from prime_compute.pricing import disk_cost as disk_cost
    from prime_compute.pricing import hourly_cost as hourly_cost
    from prime_compute.pricing import resource_cost as resource_cost
    from prime_compute.pricing import step_fit as step_fit
    from prime_compute.pricing import token_cost as token_cost
    from prime_compute.ssh import SSHConnection as SSHConnection
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
    "Account": "prime_compute._sync.account",
    "AccountLimits": "prime_compute.models",
    "ApiToken": "prime_compute.models",
    "ApiTokenList": "prime_compute.models",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncAccount": "prime_compute._async.account",
    "AsyncAvailability": "prime_compute._async.availability",
    "AsyncComputeClient": "prime_compute._async.compute_client",
    "AsyncDiskSession": "prime_compute._async.sessions",
    "AsyncFactory": "prime_compute._async.factory",
    "AsyncFeedback": "prime_compute._async.feedback",
    "AsyncPodSession": "prime_compute._async.sessions",
    "AsyncSecrets": "prime_compute._async.secrets",
    "AsyncSlurm": "prime_compute._async.slurm",
    "AsyncSshKeys": "prime_compute._async.ssh_keys",
    "AsyncTeams": "prime_compute._async.teams",
    "AsyncTokens": "prime_compute._async.tokens",
    "AttachedResource": "prime_compute.models",
    "AttachmentStatus": "prime_compute.models",
    "Availability": "prime_compute._sync.availability",
    "BadRequestError": "prime_core.errors",
    "BillingEntry": "prime_compute.models",
    "ComputeClient": "prime_compute._sync.compute_client",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "Currency": "prime_compute.models",
    "Disk": "prime_compute.models",
    "DiskFilters": "prime_compute.filters",
    "DiskInfo": "prime_compute.models",
    "DiskList": "prime_compute.models",
    "DiskNotActiveError": "prime_compute.errors",
    "DiskOffer": "prime_compute.models",
    "DiskOfferPage": "prime_compute.models",
    "DiskRequest": "prime_compute.models",
    "DiskSession": "prime_compute._sync.sessions",
    "DiskStatus": "prime_compute.models",
    "DiskWaitTimeoutError": "prime_compute.errors",
    "EffectiveLimits": "prime_compute.limits",
    "EnvironmentImage": "prime_compute.models",
    "Factory": "prime_compute._sync.factory",
    "FactoryAllocation": "prime_compute.models",
    "FactoryCluster": "prime_compute.models",
    "FactoryNode": "prime_compute.models",
    "FactoryNodeCluster": "prime_compute.models",
    "FactoryNodes": "prime_compute.models",
    "FactoryOwner": "prime_compute.models",
    "FactorySource": "prime_compute.models",
    "FactoryStatus": "prime_compute.models",
    "FactoryUtilization": "prime_compute.models",
    "FactoryWorkload": "prime_compute.models",
    "FactoryWorkloads": "prime_compute.models",
    "Feedback": "prime_compute._sync.feedback",
    "ForbiddenError": "prime_core.errors",
    "GpuFilters": "prime_compute.filters",
    "GpuOffer": "prime_compute.models",
    "GpuOfferPage": "prime_compute.models",
    "GpuSocket": "prime_compute.models",
    "GpuType": "prime_compute.models",
    "HourlyCost": "prime_compute.pricing",
    "InstallationStatus": "prime_compute.models",
    "KeyLimits": "prime_compute.models",
    "LegacyOffers": "prime_compute.models",
    "LowestPrices": "prime_compute.models",
    "NoOfferError": "prime_compute.errors",
    "NodeState": "prime_compute.models",
    "NotFoundError": "prime_core.errors",
    "PaymentRequiredError": "prime_core.errors",
    "Permission": "prime_compute.models",
    "Pod": "prime_compute.models",
    "PodGoneError": "prime_compute.errors",
    "PodHistory": "prime_compute.models",
    "PodHistoryEntry": "prime_compute.models",
    "PodInstallationError": "prime_compute.errors",
    "PodList": "prime_compute.models",
    "PodNotActiveError": "prime_compute.errors",
    "PodRequest": "prime_compute.models",
    "PodResources": "prime_compute.models",
    "PodSession": "prime_compute._sync.sessions",
    "PodStatus": "prime_compute.models",
    "PodStatusSnapshot": "prime_compute.models",
    "PodWaitTimeoutError": "prime_compute.errors",
    "PortMapping": "prime_compute.models",
    "PriceSummary": "prime_compute.models",
    "PricedOffer": "prime_compute.choosing",
    "Prices": "prime_compute.models",
    "PrimeError": "prime_core.errors",
    "ProviderType": "prime_compute.models",
    "QuotaExceededError": "prime_core.errors",
    "RateLimitError": "prime_core.errors",
    "Region": "prime_compute.models",
    "RenamedDisk": "prime_compute.models",
    "ResourceSpec": "prime_compute.models",
    "RunPricing": "prime_compute.models",
    "RunUsage": "prime_compute.models",
    "SSHConnection": "prime_compute.ssh",
    "Secrets": "prime_compute._sync.secrets",
    "SecurityType": "prime_compute.models",
    "ServerError": "prime_core.errors",
    "Slurm": "prime_compute._sync.slurm",
    "SlurmCluster": "prime_compute.models",
    "SlurmConnection": "prime_compute.models",
    "SlurmMember": "prime_compute.models",
    "SlurmNotRunningError": "prime_compute.errors",
    "SlurmResize": "prime_compute.models",
    "SlurmResizeUnverifiedError": "prime_compute.errors",
    "SlurmStatus": "prime_compute.models",
    "SlurmUnavailableError": "prime_compute.errors",
    "SlurmWaitTimeoutError": "prime_compute.errors",
    "SshKey": "prime_compute.models",
    "SshKeyChange": "prime_compute.models",
    "SshKeyList": "prime_compute.models",
    "SshKeys": "prime_compute._sync.ssh_keys",
    "StepFit": "prime_compute.pricing",
    "StockStatus": "prime_compute.models",
    "StoredSecret": "prime_compute.models",
    "StoredSecretList": "prime_compute.models",
    "Team": "prime_compute.models",
    "TeamList": "prime_compute.models",
    "TeamMember": "prime_compute.models",
    "TeamMemberList": "prime_compute.models",
    "TeamRole": "prime_compute.models",
    "Teams": "prime_compute._sync.teams",
    "TokenUsage": "prime_compute.models",
    "Tokens": "prime_compute._sync.tokens",
    "UnauthorizedError": "prime_core.errors",
    "User": "prime_compute.models",
    "ValidationError": "prime_core.errors",
    "Wallet": "prime_compute.models",
    "Whoami": "prime_compute.models",
    "WorkloadState": "prime_compute.models",
    "WorkloadType": "prime_compute.models",
    "check_amount": "prime_compute.pricing",
    "disk_cost": "prime_compute.pricing",
    "effective_limits": "prime_compute.limits",
    "hourly_cost": "prime_compute.pricing",
    "known_sum": "prime_compute.models",
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
