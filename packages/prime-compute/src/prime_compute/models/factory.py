"""What a team's dedicated clusters do. None is "not observed": never zero, never free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import Self

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime


class WorkloadType(StrEnum):
    """What kind of work runs on a cluster."""

    TRAINING = "training"
    INFERENCE = "inference"
    SLURM = "slurm"


class WorkloadState(StrEnum):
    """State of a job."""

    RUNNING = "running"
    QUEUED = "queued"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class NodeState(StrEnum):
    """State of a node; a cordoned one is under inspection."""

    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
    OFFLINE = "offline"
    UNKNOWN = "unknown"


class FactorySource(ResponseModel):
    """How fresh what one source tells is.

    Attributes:
        kind: ``capacity``, ``training``, ``inference`` or ``slurm``.
        status: ``ok``, ``stale`` or ``error``.
        observed_at: when it was read.
    """

    kind: str
    status: str
    observed_at: UtcDatetime | None = None

    @property
    def degraded(self) -> bool:
        """Whether it is anything but ``ok``."""
        return self.status != "ok"


class FactoryAnswer(ResponseModel):
    """Base of the answers; one of another version than 1 is not understood, and an error.

    Attributes:
        schema_version: 1.
        as_of: when the answer was put together.
    """

    schema_version: Literal[1]
    as_of: UtcDatetime | None = None


class FactoryAllocation(ResponseModel):
    """GPUs set aside for one kind of work.

    Attributes:
        type: the kind.
        reserved_gpus: set aside.
        in_use_gpus: of these, working.
        idle_inside_gpus: of these, idle.
        unknown_gpus: of these, not observed.
    """

    type: OpenEnum[WorkloadType]
    reserved_gpus: int | None = None
    in_use_gpus: int | None = None
    idle_inside_gpus: int | None = None
    unknown_gpus: int | None = None


class FactoryCluster(ResponseModel):
    """A dedicated cluster.

    Attributes:
        display_name: for people.
        gpu_type: model of its GPUs.
        total_gpus: GPUs in all.
        status: ``online`` or ``offline``.
        unassigned_gpus: set aside for nothing.
        unknown_gpus: not observed.
        allocations: what is set aside for what.
        sources: how fresh all this is.
    """

    display_name: str
    gpu_type: str | None = None
    total_gpus: int | None = None
    status: str | None = None
    unassigned_gpus: int | None = None
    unknown_gpus: int | None = None
    allocations: list[FactoryAllocation] = Field(
        validation_alias=AliasChoices("allocations", "pools")
    )
    sources: list[FactorySource]


class FactoryStatus(FactoryAnswer):
    """A team's clusters. Follows the page "api-reference/factory/get-factory-status".

    Attributes:
        clusters: the clusters.
    """

    clusters: list[FactoryCluster]

    @property
    def total_gpus(self) -> int | None:
        """GPUs of all clusters; None when one was not observed."""
        return known_sum(cluster.total_gpus for cluster in self.clusters)

    @property
    def unassigned_gpus(self) -> int | None:
        """GPUs of all clusters set aside for nothing; None when one was not observed."""
        return known_sum(cluster.unassigned_gpus for cluster in self.clusters)


class FactoryNode(ResponseModel):
    """A machine of a cluster.

    Attributes:
        name: names it.
        state: its state.
        gpu_type: model of its GPUs.
        gpus_total: how many it has.
        gpus_used: how many work.
        assigned_to: ``slurm``; None is not observed, which does not mean that it is free.
    """

    name: str
    state: OpenEnum[NodeState] | None = None
    gpu_type: str | None = None
    gpus_total: int | None = None
    gpus_used: int | None = None
    assigned_to: str | None = None


class FactoryNodeCluster(ResponseModel):
    """The machines of a cluster.

    Attributes:
        display_name: for people.
        status: ``online`` or ``offline``.
        nodes: the machines; not to be trusted where the cluster's source is degraded.
    """

    display_name: str
    status: str | None = None
    nodes: list[FactoryNode]


class FactoryNodes(FactoryAnswer):
    """The machines of a team's clusters. Follows "api-reference/factory/get-factory-nodes".

    Attributes:
        clusters: the clusters.
        sources: how fresh each cluster's machines are, in the same order.
    """

    clusters: list[FactoryNodeCluster]
    sources: list[FactorySource]

    @model_validator(mode="after")
    def _paired(self) -> Self:
        kinds = [source.kind for source in self.sources]
        if kinds != ["capacity"] * len(self.clusters):
            raise ValueError("sources are not one of capacity for each cluster")
        return self


class FactoryUtilization(FactoryAnswer):
    """How busy Slurm's nodes were. Follows "api-reference/factory/get-factory-utilization".

    The form of the curve is not documented: it is kept as attributes, as the platform names them.

    Attributes:
        sources: how fresh all this is.
    """

    sources: list[FactorySource]


class FactoryOwner(ResponseModel):
    """Whose a job is.

    Attributes:
        kind: ``prime``, ``slurm`` or ``unknown``.
        display_name: for people.
    """

    kind: str
    display_name: str | None = None


class FactoryWorkload(ResponseModel):
    """A job on a cluster.

    Attributes:
        id: names it.
        type: kind of work.
        cluster_display_name: the cluster.
        name: for people.
        state: its state.
        native_state: the scheduler's word for that.
        owner: whose it is.
        requested_gpus: asked for.
        allocated_gpus: had.
        created_at: when it was handed in.
        started_at: when it began.
        ended_at: when it ended.
        scheduler_display_name: the Slurm deployment that runs it.
        reason: why it waits, roughly.
        source: how fresh this is.
    """

    id: str
    type: OpenEnum[WorkloadType]
    cluster_display_name: str | None = None
    name: str | None = None
    state: OpenEnum[WorkloadState]
    native_state: str | None = None
    owner: FactoryOwner
    requested_gpus: int | None = None
    allocated_gpus: int | None = None
    created_at: UtcDatetime | None = None
    started_at: UtcDatetime | None = None
    ended_at: UtcDatetime | None = None
    scheduler_display_name: str | None = None
    reason: str | None = None
    source: FactorySource


class FactoryWorkloads(FactoryAnswer):
    """Jobs on a team's clusters. Follows "api-reference/factory/get-factory-workloads".

    Attributes:
        workloads: the jobs.
        sources: how fresh all this is.
        truncated: whether there are more than the answer holds; None is not known.
    """

    workloads: list[FactoryWorkload]
    sources: list[FactorySource]
    truncated: bool | None = None


def known_sum(values: Iterable[int | None]) -> int | None:
    """Adds up; None when a value was not observed."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
