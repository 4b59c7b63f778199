"""Pods: rented machines with GPUs."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field, RootModel, model_validator

from prime_compute.models.base import CamelModel
from prime_compute.models.listing import OffsetList
from prime_compute.ssh import SSHConnection, parse_ssh_connections
from prime_core.exact import ExactNumbers, Price
from prime_core.models import OpenEnum, StrEnum, UtcDatetime


class PodStatus(StrEnum):
    """State of a pod; newer ones are kept as plain strings. ERROR is not final."""

    PROVISIONING = "PROVISIONING"
    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    STOPPED = "STOPPED"
    ERROR = "ERROR"
    DELETING = "DELETING"
    UNKNOWN = "UNKNOWN"
    TERMINATED = "TERMINATED"


class InstallationStatus(StrEnum):
    """State of the installation of a pod's image."""

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    FINISHED = "FINISHED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"


class AttachmentStatus(StrEnum):
    """State of a disk on a pod."""

    UNATTACHED = "UNATTACHED"
    ATTACHED = "ATTACHED"
    MOUNTED = "MOUNTED"


class PortMapping(CamelModel):
    """A port that is open to the internet.

    Attributes:
        internal: number in the pod, as text, or ``*`` for every other.
        external: number outside, likewise.
        protocol: ``TCP`` or ``UDP``.
        used_by: what listens there, such as ``SSH``.
        description: for people.
    """

    internal: str
    external: str
    protocol: str
    used_by: str | None = None
    description: str | None = None


class AttachedResource(CamelModel):
    """A disk of a pod.

    Attributes:
        resource_type: ``DISK``.
        id: the disk, or a word such as ``ephemeral``.
        type: the provider's word for it.
        status: how far the attachment has come.
        is_detachable: whether the disk outlives the pod.
        mount_path: where the pod sees it.
        resource_path: its device there.
        size: GB.
        is_shared: whether several pods have it.
    """

    resource_type: str | None = None
    id: str | int | None = None
    type: str | None = None
    status: OpenEnum[AttachmentStatus] | None = None
    is_detachable: bool = True
    mount_path: str | None = None
    resource_path: str | None = None
    size: int | str | None = None
    is_shared: bool | None = None


class PodResources(CamelModel):
    """What a pod has.

    Attributes:
        memory: GB.
        disk: GB, ephemeral and attached disks together.
        shared_disk: GB.
        vcpus: virtual CPUs.
    """

    memory: int | str | None = None
    disk: int | str | None = None
    shared_disk: int | None = None
    vcpus: int | str | None = None


class _Reachable(CamelModel):
    """What tells whether a pod can be used.

    Attributes:
        status: the pod's state.
        installation_status: state of its image's installation.
        installation_failure: why that failed; the platform tries again by itself.
        installation_progress: percent.
        ssh_connection: as the platform writes it; use `ssh`.
        ip: address, or one a node.
    """

    status: OpenEnum[PodStatus]
    installation_status: OpenEnum[InstallationStatus] | None = None
    installation_failure: str | None = None
    installation_progress: int | None = None
    ssh_connection: str | list[str | None] | None = None
    ip: str | list[str | None] | None = None
    prime_port_mapping: list[PortMapping] | None = None

    @property
    def ssh(self) -> tuple[SSHConnection, ...]:
        """The SSH connections, one a node; none before all nodes are reachable.

        Raises:
            ValueError: the platform's text is no connection.
        """
        return parse_ssh_connections(self.ssh_connection)


class PodStatusSnapshot(_Reachable):
    """The state of a pod at one moment. Follows the page "api-reference/managing-pods".

    Attributes:
        pod_id: the pod.
        provider_type: who runs it.
        price_hr: USD an hour now.
    """

    pod_id: str
    provider_type: str
    price_hr: Price | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_either_price(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "costPerHr" not in data:
            return data
        rest = {name: value for name, value in data.items() if name != "costPerHr"}
        price = data["costPerHr"]
        return rest if price is None else {**rest, "priceHr": price}


class PodStatusList(CamelModel):
    """States of the pods that were asked for and exist."""

    data: list[PodStatusSnapshot] | None = None


class Pod(_Reachable):
    """A pod. Follows the pages "api-reference/managing-pods" and "provision-gpu".

    Attributes:
        id: names it.
        user_id: who made it.
        team_id: the owning team; None is personal.
        wallet_id: what it is paid from.
        name: as it was made, with the mark of `PodRequest.name`.
        type: ``HOSTED`` or ``EXTERNAL``; on its way out.
        provider_type: who runs it.
        created_at: time of creation.
        updated_at: time of the last change.
        terminated_at: time of its end.
        gpu_name: model of its GPUs.
        gpu_count: how many.
        socket: their form.
        price_hr: USD an hour while it runs.
        stopped_price_hr: USD an hour while it is stopped; None is `price_hr`.
        provisioning_price_hr: USD an hour while it is made; None is `price_hr`.
        environment_type: the image.
        custom_template_id: the template, if that is `custom_template`.
        cluster_id: the cluster of several nodes that it belongs to.
        jupyter_password: left out of `repr`.
        resources: what it has.
        attached_resources: its disks.
        is_spot: whether the provider may take it back.
        auto_restart: whether it restarts by itself.
    """

    id: str
    user_id: str
    team_id: str | None = None
    wallet_id: str | None = None
    name: str | None = None
    type: str | None = None
    provider_type: str
    created_at: UtcDatetime
    updated_at: UtcDatetime | None = None
    terminated_at: UtcDatetime | None = None
    gpu_name: str
    gpu_count: int
    socket: str | None = None
    price_hr: Price | None = None
    stopped_price_hr: Price | None = None
    provisioning_price_hr: Price | None = None
    environment_type: str | None = None
    custom_template_id: str | None = None
    cluster_id: str | None = None
    jupyter_password: str | None = Field(default=None, repr=False)
    resources: PodResources | None = None
    attached_resources: list[AttachedResource] | None = None
    is_spot: bool | None = None
    auto_restart: bool | None = None


class PodList(ExactNumbers, OffsetList):
    """A part of the list of live pods.

    Attributes:
        data: the pods.
    """

    data: list[Pod]


class PodHistoryEntry(CamelModel):
    """Something that has ended, and what it cost.

    Attributes:
        id: what it was.
        name: its name.
        provider_type: who ran it.
        provisioned_by: name of the user who made it.
        type: ``Instance``, ``Cluster``, ``Disk`` and others.
        created_at: time of creation.
        terminated_at: time of its end.
        gpu_name: model of its GPUs.
        gpu_count: how many.
        socket: their form.
        price_hr: USD an hour, on average.
        user_id: who made it.
        team_id: the owning team.
        total_billed_price: USD in all.
    """

    id: str
    name: str
    provider_type: str
    provisioned_by: str | None = None
    type: str
    created_at: UtcDatetime
    terminated_at: UtcDatetime | None = None
    gpu_name: str
    gpu_count: int
    socket: str | None = None
    price_hr: Price
    user_id: str
    team_id: str | None = None
    total_billed_price: Price


class PodHistory(ExactNumbers, OffsetList):
    """A part of the history.

    Attributes:
        data: what has ended.
    """

    data: list[PodHistoryEntry]


class PodLog(RootModel[Any]):
    """A pod's log, whose form no page tells."""

    @property
    def text(self) -> str:
        """The log as text, whether it came as text, as lines or in an object."""
        return _text_of(self.root)


def _text_of(value: object) -> str:
    if isinstance(value, dict):
        for name in ("logs", "log", "lines", "data"):
            if name in value:
                return _text_of(value[name])
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)
