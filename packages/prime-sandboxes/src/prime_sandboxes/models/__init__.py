"""The models of this package, a module per resource.

Requests refuse unknown fields and are checked before anything is sent. Responses keep fields and
states that a newer platform adds.
"""

from prime_sandboxes.models.bulk import (
    BatchSandboxStatusRequest,
    BulkDeleteSandboxRequest,
    BulkDeleteSandboxResponse,
)
from prime_sandboxes.models.checkpoints import (
    BatchCheckpointRequest,
    BatchCheckpointResponse,
    CheckpointDeleteError,
    CheckpointList,
    CheckpointLookupError,
    DeleteSandboxCheckpointsResponse,
    SandboxCheckpoint,
)
from prime_sandboxes.models.commands import CommandResponse
from prime_sandboxes.models.create import (
    CREATE_TRANSPORT_FIELDS,
    VOLUME_NAME,
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
from prime_sandboxes.models.files import FileUploadResponse, ReadFileResponse
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
from prime_sandboxes.models.processes import ProcessInfo
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
from prime_sandboxes.models.volumes import (
    CreateVolumeRequest,
    PublishVolumeRequest,
    Volume,
    VolumeListResponse,
)

__all__ = [
    "CREATE_TRANSPORT_FIELDS",
    "DOMAIN_RULE_PORTS",
    "MAX_EGRESS_POLICY_ENTRIES",
    "TERMINAL_STATUSES",
    "VOLUME_NAME",
    "AdvancedConfigs",
    "BackgroundJob",
    "BackgroundJobStatus",
    "BackgroundJobStatusLookupError",
    "BackgroundJobStatusSnapshot",
    "BatchBackgroundJobStatusResponse",
    "BatchCheckpointRequest",
    "BatchCheckpointResponse",
    "BatchSandboxStatusRequest",
    "BatchSandboxStatusResponse",
    "BulkDeleteSandboxRequest",
    "BulkDeleteSandboxResponse",
    "CheckpointDeleteError",
    "CheckpointList",
    "CheckpointLookupError",
    "CommandResponse",
    "CreateLanNetworkRequest",
    "CreateSSHSessionRequest",
    "CreateSandboxRequest",
    "CreateVolumeRequest",
    "CreatedSandbox",
    "DeleteSandboxCheckpointsResponse",
    "EgressPolicyStatus",
    "ErrorContext",
    "FileUploadResponse",
    "GatewayAuth",
    "LanNetwork",
    "LanNetworkList",
    "LanNetworkMember",
    "LanRule",
    "ProcessInfo",
    "PublishVolumeRequest",
    "PutLanMemberRequest",
    "ReadFileResponse",
    "SSHSession",
    "Sandbox",
    "SandboxCheckpoint",
    "SandboxEgressPolicy",
    "SandboxListResponse",
    "SandboxLogsResponse",
    "SandboxStatus",
    "SandboxStatusLookupError",
    "SandboxStatusSnapshot",
    "SetEgressPolicyRequest",
    "SetLanRulesRequest",
    "StartCommand",
    "Volume",
    "VolumeListResponse",
    "VolumeMount",
    "validate_egress_lists",
]
