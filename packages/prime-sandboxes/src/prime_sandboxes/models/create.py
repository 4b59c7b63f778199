"""The request that creates a sandbox."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from prime_core.models import RequestModel
from prime_sandboxes.models.egress import validate_egress_lists
from prime_sandboxes.models.networks import check_lan_tags

CREATE_TRANSPORT_FIELDS = frozenset({"idempotency_key", "team_id", "lan_network_id", "lan_tags"})
"""Fields of `CreateSandboxRequest` that its encoded body leaves out.

The transport places the key and the team; the network is joined by a call of its own.
"""

DEFAULT_DISK_SIZE_GB = 5.0

VOLUME_NAME = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
VolumeName = Annotated[str, Field(pattern=VOLUME_NAME)]


class StartCommand(RequestModel):
    """The process a sandbox runs at boot, without a shell. Its exit stops the sandbox.

    Follows the page "sandboxes/lifecycle", "Start command".

    Attributes:
        executable: program to run; not empty, no NUL character.
        args: arguments, passed unchanged; no NUL characters.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"args"})

    executable: str = Field(min_length=1)
    args: list[str] = Field(default_factory=list)

    @field_validator("executable", "args")
    @classmethod
    def _refuse_nul(cls, value: str | list[str]) -> str | list[str]:
        words = [value] if isinstance(value, str) else value
        if any("\0" in word for word in words):
            raise ValueError("a start command cannot hold a NUL character")
        return value


class AdvancedConfigs(RequestModel):
    """Server options without documented names; any field is accepted."""

    model_config = ConfigDict(extra="allow")


class VolumeMount(RequestModel):
    """A volume to attach at creation. Follows the page "sandboxes/volumes".

    Attributes:
        name: the volume, 1 to 40 characters out of `a-z`, `0-9` and inner `-`.
        mount_path: absolute path in the sandbox, not `/`, without `..`.
        read_only: attach without the right to write or publish.
    """

    name: VolumeName
    mount_path: str
    read_only: bool = False

    @field_validator("mount_path")
    @classmethod
    def _check_mount_path(cls, value: str) -> str:
        path = PurePosixPath(value)
        if not path.is_absolute() or path.parent == path or ".." in path.parts:
            raise ValueError("a volume is mounted at an absolute path below /, without '..'")
        return value


class CreateSandboxRequest(RequestModel):
    """What to create. Follows the pages "sandboxes/lifecycle" and "sandboxes/overview".

    Give exactly one of `docker_image` and `checkpoint_id`; a restore takes its disk and its
    architecture from the checkpoint.

    Attributes:
        name: 1 to 100 characters; need not be unique.
        docker_image: image to run, a Docker Hub or a Prime image reference.
        checkpoint_id: checkpoint to restore, 1 to 64 characters.
        arch: `amd64` or `arm64`; the platform chooses `amd64`.
        start_command: process to run at boot; without one the sandbox stays up for commands.
        cpu_cores: virtual CPUs, above 0 and at most 16. The platform cuts fractions off and
            raises what is below 1.
        memory_gb: memory in GiB, 0.125 to 64.
        disk_size_gb: disk in GiB, 2 to 128; 5 when it is not given, none on a restore.
        gpu_count: GPUs, 0 to 8; needs a grant of the platform.
        gpu_type: model of the GPUs, such as `H100_80GB`; required with a GPU, else forbidden.
        network_allowlist: the only destinations to reach, at most 1,024; `[]` is no network.
        network_denylist: destinations not to reach, at most 1,024. Excludes an allowlist.
        timeout_minutes: lifetime in minutes, at least 1; negative is no limit.
        idle_timeout_minutes: stop after so many minutes without use, 1 to 1,440 and at most a
            positive lifetime; `None` never does.
        environment_vars: variables stored and shown in plain text. Left out of `repr`.
        secrets: variables stored encrypted and never shown again. Left out of `repr`.
        labels: labels to filter and delete by.
        team_id: owning team; `None` takes the client's.
        region: where to run.
        advanced_configs: server options.
        idempotency_key: 1 to 128 characters; creates that share it make one sandbox. `None` lets
            the client make a fresh one for each call.
        lan_network_id: private network that the client joins it to while it waits for the
            creation; see `wait_for_creation`. Never sent with the create.
        lan_tags: the sandbox's tags there, at most 16.
        volumes: volumes to attach, at most 8, at paths that are distinct and not nested.
        vm: always true; sandboxes are microVMs.

    Raises:
        pydantic.ValidationError: a `ValueError`; a limit above is not kept.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset(
        {"cpu_cores", "memory_gb", "gpu_count", "timeout_minutes", "labels", "vm"}
    )
    omits_null: ClassVar[bool] = True

    name: str = Field(min_length=1, max_length=100)
    docker_image: str | None = Field(default=None, min_length=1)
    checkpoint_id: str | None = Field(default=None, min_length=1, max_length=64)
    arch: Literal["amd64", "arm64"] | None = None
    start_command: StartCommand | None = None
    cpu_cores: float = Field(default=1.0, gt=0, le=16)
    memory_gb: float = Field(default=1.0, ge=0.125, le=64)
    disk_size_gb: float | None = Field(default=None, ge=2, le=128)
    gpu_count: int = Field(default=0, ge=0, le=8)
    gpu_type: str | None = Field(default=None, min_length=1)
    network_allowlist: list[str] | None = None
    network_denylist: list[str] | None = None
    timeout_minutes: int = 60
    idle_timeout_minutes: int | None = Field(default=None, ge=1, le=1440)
    environment_vars: dict[str, str] | None = Field(default=None, repr=False)
    secrets: dict[str, str] | None = Field(default=None, repr=False)
    labels: list[str] = Field(default_factory=list)
    team_id: str | None = None
    region: str | None = None
    advanced_configs: AdvancedConfigs | None = None
    idempotency_key: str | None = Field(default=None, min_length=1, max_length=128)
    lan_network_id: str | None = Field(default=None, min_length=1)
    lan_tags: list[str] | None = None
    volumes: list[VolumeMount] | None = Field(default=None, max_length=8)
    vm: Literal[True] = True

    @model_validator(mode="after")
    def _check_source(self) -> CreateSandboxRequest:
        if (self.docker_image is None) == (self.checkpoint_id is None):
            raise ValueError("give exactly one of docker_image and checkpoint_id")
        if self.checkpoint_id is None:
            if self.disk_size_gb is None:
                self.disk_size_gb = DEFAULT_DISK_SIZE_GB
        elif self.disk_size_gb is not None or self.arch is not None:
            raise ValueError("a restore takes disk_size_gb and arch from its checkpoint")
        return self

    @model_validator(mode="after")
    def _check_gpu(self) -> CreateSandboxRequest:
        if (self.gpu_count > 0) != (self.gpu_type is not None):
            raise ValueError("gpu_type is required when gpu_count is above 0 and forbidden at 0")
        return self

    @model_validator(mode="after")
    def _check_network(self) -> CreateSandboxRequest:
        validate_egress_lists(self.network_allowlist, self.network_denylist)
        return self

    @model_validator(mode="after")
    def _check_lan(self) -> CreateSandboxRequest:
        if self.lan_tags is not None:
            if self.lan_network_id is None:
                raise ValueError("lan_tags needs a lan_network_id")
            check_lan_tags(self.lan_tags)
        return self

    @model_validator(mode="after")
    def _check_timeouts(self) -> CreateSandboxRequest:
        if self.timeout_minutes == 0:
            raise ValueError("timeout_minutes is at least 1; a negative value is no limit")
        if 0 < self.timeout_minutes < (self.idle_timeout_minutes or 0):
            raise ValueError("idle_timeout_minutes cannot exceed timeout_minutes")
        return self

    @model_validator(mode="after")
    def _check_volumes(self) -> CreateSandboxRequest:
        paths = [PurePosixPath(mount.mount_path) for mount in self.volumes or ()]
        if len(set(paths)) < len(paths):
            raise ValueError("two volumes share a mount_path")
        if any(path in other.parents for path in paths for other in paths):
            raise ValueError("the mount_path of a volume lies inside that of another")
        return self
