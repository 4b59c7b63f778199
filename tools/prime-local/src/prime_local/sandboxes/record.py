"""The record of a sandbox and its two wire forms."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from prime_local.contract.document import JsonObject
from prime_local.limits import Resources


class Status(str, Enum):
    """Lifecycle states; the last three are final."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"
    TIMEOUT = "TIMEOUT"

    @property
    def final(self) -> bool:
        return self in (Status.ERROR, Status.TERMINATED, Status.TIMEOUT)


@dataclass(frozen=True)
class Owner:
    """Whose a sandbox is: a user, alone or in a team."""

    user_id: str
    team_id: str | None


@dataclass(frozen=True)
class StartCommand:
    executable: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attachment:
    """A volume in a sandbox.

    Args:
        volume_id: the volume.
        name: its name.
        path: where it is mounted.
        read_only: whether the sandbox may not write to it.
        base: the checkpoint that the sandbox's copy was taken from, or last published as; None
            for an empty volume.
    """

    volume_id: str
    name: str
    path: str
    read_only: bool
    base: str | None


@dataclass
class Sandbox:
    """A sandbox as the control plane knows it. Dates are UTC, memory and disk GiB."""

    id: str
    job_id: str
    owner: Owner
    name: str
    docker_image: str
    resources: Resources
    workspace: str
    created_at: datetime
    updated_at: datetime
    timeout_minutes: int
    idle_timeout_minutes: int | None = None
    start_command: StartCommand | None = None
    environment_vars: dict[str, str] | None = None
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    labels: tuple[str, ...] = ()
    network_allowlist: list[str] | None = None
    network_denylist: list[str] | None = None
    egress_generation: int = 0
    egress_applied: int = -1
    advanced_configs: JsonObject | None = None
    region: str | None = None
    vm: bool = True
    status: Status = Status.PENDING
    started_at: datetime | None = None
    terminated_at: datetime | None = None
    termination_reason: str | None = None
    exit_code: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    pending_image_build_id: str | None = None
    idempotency_key: str | None = None
    deleted: bool = False
    checkpoint_id: str | None = None
    attachments: tuple[Attachment, ...] = ()

    @property
    def live(self) -> bool:
        return not self.status.final

    def to_wire(self) -> JsonObject:
        """Return the `Sandbox` object of the contract; secrets are never read back."""
        start = self.start_command
        return {
            "id": self.id,
            "name": self.name,
            "dockerImage": self.docker_image,
            "startCommand": start and {"executable": start.executable, "args": list(start.args)},
            "cpuCores": self.resources.cpu,
            "memoryGB": self.resources.memory,
            "diskSizeGB": self.resources.disk,
            "diskMountPath": self.workspace,
            "gpuCount": 0,
            "gpuType": None,
            "vm": self.vm,
            "networkAllowlist": self.network_allowlist,
            "networkDenylist": self.network_denylist,
            "status": self.status.value,
            "timeoutMinutes": self.timeout_minutes,
            "idleTimeoutMinutes": self.idle_timeout_minutes,
            "terminationReason": self.termination_reason,
            "environmentVars": self.environment_vars,
            "secrets": None,
            "advancedConfigs": self.advanced_configs,
            "labels": list(self.labels),
            "createdAt": wire_date(self.created_at),
            "updatedAt": wire_date(self.updated_at),
            "startedAt": self.started_at and wire_date(self.started_at),
            "terminatedAt": self.terminated_at and wire_date(self.terminated_at),
            "exitCode": self.exit_code,
            "errorType": self.error_type,
            "errorMessage": self.error_message,
            "userId": self.owner.user_id,
            "teamId": self.owner.team_id,
            "region": self.region,
            "pendingImageBuildId": self.pending_image_build_id,
        }

    def to_egress_wire(self) -> JsonObject:
        """Return the `EgressPolicyStatus` object of the contract."""
        return {
            "policy": {"allowlist": self.network_allowlist, "denylist": self.network_denylist},
            "generation": self.egress_generation,
            "applied_generation": self.egress_applied,
            "applied": self.egress_applied == self.egress_generation,
        }

    def to_status_wire(self) -> JsonObject:
        """Return the `SandboxStatusSnapshot` object of the contract."""
        return {
            "sandbox_id": self.id,
            "status": self.status.value,
            "error_type": self.error_type,
            "error_message": self.error_message,
            "pending_image_build_id": self.pending_image_build_id,
        }


def wire_date(moment: datetime) -> str:
    """Write a UTC date as the platform does, with `Z`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
