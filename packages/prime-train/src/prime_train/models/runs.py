"""Training runs: what the platform says of them."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime

__all__ = [
    "FINAL_RUN_STATUSES",
    "FailureAnalysis",
    "Run",
    "RunKind",
    "RunPage",
    "RunState",
    "RunStatus",
]


class RunStatus(StrEnum):
    """State of a run; newer ones are kept as plain strings."""

    QUEUED = "QUEUED"
    PENDING = "PENDING"
    CREATING = "CREATING"
    PULLING_IMAGE = "PULLING_IMAGE"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


FINAL_RUN_STATUSES = frozenset(
    {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.STOPPED, RunStatus.PAUSED}
)
"""States that a run does not leave; one that is PAUSED goes on as another run."""

# The states before its pods run.
STARTING_RUN_STATUSES = frozenset(
    {RunStatus.QUEUED, RunStatus.PENDING, RunStatus.CREATING, RunStatus.PULLING_IMAGE}
)


class RunKind(StrEnum):
    """What kind of run it is; newer ones are kept as plain strings."""

    DEDICATED_FULL_FT = "DEDICATED_FULL_FT"
    SHARED_RFT_HOSTED = "SHARED_RFT_HOSTED"
    EXTERNAL = "EXTERNAL"


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


Status: TypeAlias = Annotated[OpenEnum[RunStatus], BeforeValidator(_upper)]


class _CamelModel(ResponseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class FailureAnalysis(_CamelModel):
    """The platform's own diagnosis of a failed run.

    Attributes:
        root_cause: what it takes for the cause.
        evidence: what speaks for it.
        confidence: how sure it is, 0 to 1.
    """

    root_cause: str | None = None
    evidence: list[Any] | None = None
    confidence: float | None = None


class Run(_CamelModel):
    """A training run. Follows the page "hosted-training/hosted-rl", "Run lifecycle".

    Attributes:
        id: names it.
        name: display name.
        user_id: who dispatched it.
        team_id: the owning team; None is personal.
        status: its state.
        kind: hosted, shared or external.
        base_model: the model that it trains.
        environments: the environments, as configured.
        max_steps: its last step; None for one without.
        batch_size: of a step.
        rollouts_per_example: group size.
        seq_len: tokens of a sequence.
        max_tokens: of a completion.
        loss: ``rl`` or ``sft``.
        learning_rate: of the optimizer.
        gpu_count: GPUs of trainer and inference.
        volume_name: the volume that it mounts; lists leave it out.
        prime_cluster_id: the cluster of a hosted run.
        rft_cluster_id: the cluster of a shared run.
        source_commit: commit of prime-rl that is laid over the image.
        run_config: its config, as far as the platform shows it.
        eval_config: how it is evaluated meanwhile.
        val_config: how SFT is validated meanwhile.
        teacher: the model that it learns from, if there is one.
        wandb_entity: where it logs at Weights & Biases.
        wandb_project: likewise.
        wandb_run_name: likewise.
        runs_ahead: how many are before it, while it is QUEUED.
        queue_reason: why it is QUEUED.
        notice: the platform's remark.
        error_message: why it failed.
        failure_analysis: the platform's diagnosis, once it has FAILED.
        created_at: time of the dispatch.
        updated_at: time of the last change.
        started_at: time of the beginning of training.
        completed_at: time of its end.
    """

    id: str
    name: str | None = None
    user_id: str
    team_id: str | None = None
    status: Status
    kind: OpenEnum[RunKind] | None = None
    base_model: str | None = None
    environments: list[dict[str, Any]] = Field(default_factory=list)
    max_steps: int | None = None
    batch_size: int | None = None
    rollouts_per_example: int | None = None
    seq_len: int | None = None
    max_tokens: int | None = None
    loss: str | None = None
    learning_rate: float | None = None
    gpu_count: int | None = None
    volume_name: str | None = None
    prime_cluster_id: str | None = None
    rft_cluster_id: str | None = None
    source_commit: str | None = None
    run_config: dict[str, Any] | None = Field(default=None, repr=False)
    eval_config: dict[str, Any] | None = None
    val_config: dict[str, Any] | None = None
    teacher: dict[str, Any] | None = None
    wandb_entity: str | None = None
    wandb_project: str | None = None
    wandb_run_name: str | None = None
    runs_ahead: int | None = None
    queue_reason: str | None = None
    notice: str | None = None
    error_message: str | None = None
    failure_analysis: FailureAnalysis | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime
    started_at: UtcDatetime | None = None
    completed_at: UtcDatetime | None = None


class RunEnvelope(ResponseModel):
    """The answer that holds a run."""

    run: Run


class RunPage(ResponseModel):
    """A page of runs, the newest first.

    Attributes:
        runs: what it holds.
        total: how many all pages hold.
        page: its number, from 1.
        limit: runs of a page.
        total_pages: how many pages there are.
    """

    runs: list[Run]
    total: int | None = None
    page: int | None = None
    limit: int | None = None
    total_pages: int | None = None


class RunState(_CamelModel):
    """The state of a run after a change was accepted.

    Attributes:
        run_id: the run.
        status: its state.
    """

    run_id: str | None = None
    status: Status
