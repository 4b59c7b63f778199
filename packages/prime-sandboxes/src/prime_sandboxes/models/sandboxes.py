"""Sandboxes as the platform reports them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime
from prime_sandboxes.models.create import AdvancedConfigs, StartCommand
from prime_sandboxes.models.gateway import GatewayAuth


class SandboxStatus(StrEnum):
    """Lifecycle states. `ERROR`, `TERMINATED` and `TIMEOUT` are final."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"
    TIMEOUT = "TIMEOUT"


TERMINAL_STATUSES: frozenset[str] = frozenset(
    {SandboxStatus.ERROR, SandboxStatus.TERMINATED, SandboxStatus.TIMEOUT}
)
"""States a sandbox never leaves. A state that is not known here counts as live."""


def _only_known_start_fields(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key in StartCommand.model_fields}


def _without_internal_state(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if key != "vmEgressPolicy"}


class Sandbox(ResponseModel):
    """A sandbox. Follows the pages "sandboxes/lifecycle" and "sandboxes/overview".

    Attributes:
        id: names the sandbox in every other call.
        name: the name given at creation; not unique.
        docker_image: the image it was made from.
        start_command: the process started at boot; its exit stops the sandbox.
        cpu_cores: whole virtual CPUs.
        memory_gb: memory in GiB.
        disk_size_gb: disk in GiB.
        disk_mount_path: where the disk is mounted.
        gpu_count: number of GPUs.
        gpu_type: model of the GPUs.
        vm: whether it runs as a microVM; all new sandboxes do.
        network_allowlist: the only destinations it may reach; `[]` is no network.
        network_denylist: the destinations it may not reach.
        status: a `SandboxStatus`, or a plain `str` for a state that is not known here.
        timeout_minutes: lifetime from `started_at` in minutes; negative is none.
        idle_timeout_minutes: stops after so many minutes without use; `None` never does.
        termination_reason: set after an automatic stop, such as `idle_timeout`.
        environment_vars: plain variables. Left out of `repr`.
        secrets: never holds values: absent, or masked. Left out of `repr`.
        advanced_configs: server options.
        labels: labels to filter and delete by.
        created_at: time of creation.
        updated_at: time of the last change.
        started_at: when it began to run; the lifetime counts from here.
        terminated_at: when it ended.
        exit_code: exit status of the start command.
        error_type: kind of failure: `OOM_KILLED`, `TIMEOUT`, `IMAGE_PULL_FAILED` or another word.
        error_message: failure in words.
        user_id: owner.
        team_id: owning team; `None` is personal.
        region: where it runs.
        pending_image_build_id: set while the first use of an image builds its VM image.
    """

    id: str
    name: str
    docker_image: str = Field(alias="dockerImage")
    start_command: Annotated[StartCommand | None, BeforeValidator(_only_known_start_fields)] = (
        Field(default=None, alias="startCommand")
    )
    cpu_cores: float = Field(alias="cpuCores")
    memory_gb: float = Field(alias="memoryGB")
    disk_size_gb: float = Field(alias="diskSizeGB")
    disk_mount_path: str = Field(alias="diskMountPath")
    gpu_count: int = Field(alias="gpuCount")
    gpu_type: str | None = Field(default=None, alias="gpuType")
    vm: bool = False
    network_allowlist: list[str] | None = Field(default=None, alias="networkAllowlist")
    network_denylist: list[str] | None = Field(default=None, alias="networkDenylist")
    status: OpenEnum[SandboxStatus]
    timeout_minutes: int = Field(alias="timeoutMinutes")
    idle_timeout_minutes: int | None = Field(default=None, alias="idleTimeoutMinutes")
    termination_reason: str | None = Field(default=None, alias="terminationReason")
    environment_vars: dict[str, object] | None = Field(
        default=None, alias="environmentVars", repr=False
    )
    secrets: dict[str, object] | None = Field(default=None, repr=False)
    advanced_configs: Annotated[
        AdvancedConfigs | None, BeforeValidator(_without_internal_state)
    ] = Field(default=None, alias="advancedConfigs")
    labels: list[str] = Field(default_factory=list)
    created_at: UtcDatetime = Field(alias="createdAt")
    updated_at: UtcDatetime = Field(alias="updatedAt")
    started_at: UtcDatetime | None = Field(default=None, alias="startedAt")
    terminated_at: UtcDatetime | None = Field(default=None, alias="terminatedAt")
    exit_code: int | None = Field(default=None, alias="exitCode")
    error_type: str | None = Field(default=None, alias="errorType")
    error_message: str | None = Field(default=None, alias="errorMessage")
    user_id: str | None = Field(default=None, alias="userId")
    team_id: str | None = Field(default=None, alias="teamId")
    region: str | None = None
    pending_image_build_id: str | None = Field(default=None, alias="pendingImageBuildId")


class CreatedSandbox(Sandbox):
    """The reply to a creation: the sandbox, perhaps with a gateway token ready for use.

    Attributes:
        gateway_auth: neither printed nor dumped. The client takes it off before it hands the
            sandbox out, so that pickles of a sandbox hold no token.
    """

    gateway_auth: GatewayAuth | None = Field(
        default=None, alias="gatewayAuth", repr=False, exclude=True
    )


class SandboxListResponse(ResponseModel):
    """One page of sandboxes.

    Attributes:
        sandboxes: the rows of this page.
        total: rows that match the filter, on all pages.
        page: number of this page, from 1.
        per_page: rows a page holds.
        has_next: whether another page follows.
    """

    sandboxes: list[Sandbox]
    total: int
    page: int
    per_page: int = Field(alias="perPage")
    has_next: bool = Field(alias="hasNext")


class SandboxStatusSnapshot(ResponseModel):
    """The state of one sandbox in a batch look-up.

    Attributes:
        sandbox_id: the sandbox.
        status: a `SandboxStatus`, or a plain `str` for a state that is not known here.
        error_type: kind of failure, as in `Sandbox`.
        error_message: failure in words.
        pending_image_build_id: set while a VM image is being built.
    """

    sandbox_id: str
    status: OpenEnum[SandboxStatus]
    error_type: str | None = None
    error_message: str | None = None
    pending_image_build_id: str | None = None


class SandboxStatusLookupError(ResponseModel):
    """A sandbox whose state could not be looked up.

    Attributes:
        sandbox_id: the sandbox.
        code: why: `NOT_FOUND`, `FORBIDDEN`, `MANAGED` or a newer word.
        message: the same in words.
    """

    sandbox_id: str
    code: Literal["NOT_FOUND", "FORBIDDEN", "MANAGED"] | str
    message: str


class BatchSandboxStatusResponse(ResponseModel):
    """States of many sandboxes: each id asked for stands in exactly one of the lists.

    Attributes:
        statuses: the states that could be read, in the order asked for.
        errors: the sandboxes whose state could not be read.
    """

    statuses: list[SandboxStatusSnapshot]
    errors: list[SandboxStatusLookupError]


class ErrorContext(ResponseModel):
    """Why a sandbox is not running; all `None` when nothing is known.

    Attributes:
        status: a `SandboxStatus`, or a plain `str` for a state that is not known here.
        error_type: kind of failure, as in `Sandbox`.
        error_message: failure in words.
    """

    status: OpenEnum[SandboxStatus] | None = None
    error_type: str | None = Field(default=None, alias="errorType")
    error_message: str | None = Field(default=None, alias="errorMessage")


class SandboxLogsResponse(ResponseModel):
    """The whole log text of a sandbox."""

    logs: str
