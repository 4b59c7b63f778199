"""The models of this package, a module per resource.

Requests refuse unknown fields and are checked before anything is sent. Responses keep fields and
states that a newer platform adds.
"""

from prime_sandboxes.models.bulk import (
    BatchSandboxStatusRequest,
    BulkDeleteSandboxRequest,
    BulkDeleteSandboxResponse,
)
from prime_sandboxes.models.commands import CommandResponse
from prime_sandboxes.models.create import (
    CREATE_TRANSPORT_FIELDS,
    AdvancedConfigs,
    CreateSandboxRequest,
    StartCommand,
    VolumeMount,
)
from prime_sandboxes.models.egress import (
    DOMAIN_RULE_PORTS,
    MAX_EGRESS_POLICY_ENTRIES,
    EgressPolicyStatus,
    SandboxEgressPolicy,
    SetEgressPolicyRequest,
    validate_egress_lists,
)
from prime_sandboxes.models.gateway import GatewayAuth
from prime_sandboxes.models.jobs import (
    BackgroundJob,
    BackgroundJobStatus,
    BackgroundJobStatusLookupError,
    BackgroundJobStatusSnapshot,
    BatchBackgroundJobStatusResponse,
)
from prime_sandboxes.models.networks import (
    CreateLanNetworkRequest,
    LanNetwork,
    LanNetworkList,
    LanNetworkMember,
    LanRule,
    PutLanMemberRequest,
    SetLanRulesRequest,
)
from prime_sandboxes.models.sandboxes import (
    TERMINAL_STATUSES,
    BatchSandboxStatusResponse,
    CreatedSandbox,
    ErrorContext,
    Sandbox,
    SandboxListResponse,
    SandboxLogsResponse,
    SandboxStatus,
    SandboxStatusLookupError,
    SandboxStatusSnapshot,
)
from prime_sandboxes.models.ssh import CreateSSHSessionRequest, SSHSession

__all__ = [
    "CREATE_TRANSPORT_FIELDS",
    "DOMAIN_RULE_PORTS",
    "MAX_EGRESS_POLICY_ENTRIES",
    "TERMINAL_STATUSES",
    "AdvancedConfigs",
    "BackgroundJob",
    "BackgroundJobStatus",
    "BackgroundJobStatusLookupError",
    "BackgroundJobStatusSnapshot",
    "BatchBackgroundJobStatusResponse",
    "BatchSandboxStatusRequest",
    "BatchSandboxStatusResponse",
    "BulkDeleteSandboxRequest",
    "BulkDeleteSandboxResponse",
    "CommandResponse",
    "CreateLanNetworkRequest",
    "CreateSSHSessionRequest",
    "CreateSandboxRequest",
    "CreatedSandbox",
    "EgressPolicyStatus",
    "ErrorContext",
    "GatewayAuth",
    "LanNetwork",
    "LanNetworkList",
    "LanNetworkMember",
    "LanRule",
    "PutLanMemberRequest",
    "SSHSession",
    "Sandbox",
    "SandboxEgressPolicy",
    "SandboxListResponse",
    "SandboxLogsResponse",
    "SandboxStatus",
    "SandboxStatusLookupError",
    "SandboxStatusSnapshot",
    "SetEgressPolicyRequest",
    "SetLanRulesRequest",
    "StartCommand",
    "VolumeMount",
    "validate_egress_lists",
]
