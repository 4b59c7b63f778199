"""Slurm deployments of a team's dedicated clusters."""

from __future__ import annotations

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_compute.models.base import CamelModel
from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime


class SlurmStatus(StrEnum):
    """State of a Slurm deployment; newer ones are kept as plain strings."""

    PENDING = "PENDING"
    DEPLOYING = "DEPLOYING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    UNKNOWN = "UNKNOWN"
    TOMBSTONED = "TOMBSTONED"


class SlurmCluster(CamelModel):
    """A Slurm deployment. Follows the page "api-reference/slurm-clusters/list-clusters".

    Attributes:
        id: of the job that runs it, by which every call names it.
        prime_cluster_id: the dedicated cluster that it runs on.
        display_name: for people.
        status: its state.
        gpu_type: model of its GPUs.
        gpu_count: GPUs of all its nodes.
        created_at: when it was deployed.
        started_at: when it began to run.
    """

    id: str
    prime_cluster_id: str
    display_name: str
    status: OpenEnum[SlurmStatus]
    gpu_type: str | None = None
    gpu_count: int
    created_at: UtcDatetime
    started_at: UtcDatetime | None = None


class SlurmClusterList(ResponseModel):
    """All deployments of a team."""

    data: list[SlurmCluster]


class SlurmConnection(CamelModel):
    """How to reach a running deployment by SSH. What else the platform tells is kept.

    Attributes:
        connectable: whether it can be reached.
        ssh_host: the address.
        ssh_port: the port.
    """

    connectable: bool | None = None
    ssh_host: str | None = None
    ssh_port: int | None = None


class SlurmMember(CamelModel):
    """A Linux account of a deployment.

    Attributes:
        username: of the account.
        uid: its number.
        ssh_authorized_keys: whose private keys get in.
        sudo: whether it may become root.
        status: ``ACTIVE``, or a state that is not documented.
        linked_user_id: the user of the platform that it belongs to.
        linked_user_name: that user's name.
        linked_user_email: that user's address.
    """

    username: str
    uid: int
    ssh_authorized_keys: list[str]
    sudo: bool
    status: str
    linked_user_id: str | None = None
    linked_user_name: str | None = None
    linked_user_email: str | None = None


class SlurmMemberList(ResponseModel):
    """All Linux accounts of a deployment."""

    data: list[SlurmMember]


class SlurmMemberRequest(RequestModel):
    """A Linux account to make."""

    model_config = ConfigDict(alias_generator=to_camel)

    username: str = Field(min_length=1)
    ssh_authorized_keys: list[str]
    linked_user_id: str | None = None


class SlurmResize(CamelModel):
    """What a resize came to; it can fall short of what was asked for.

    Attributes:
        num_nodes: nodes now.
        added: names of nodes that came.
        removed: names of nodes that went.
    """

    num_nodes: int
    added: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)


class SlurmResizeRequest(RequestModel):
    """How many nodes there shall be."""

    model_config = ConfigDict(alias_generator=to_camel)

    num_nodes: int = Field(ge=1, strict=True)
