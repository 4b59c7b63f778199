"""Evaluations and their samples."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from prime_core.models import OpenEnum, RequestModel, ResponseModel, StrEnum, UtcDatetime

__all__ = [
    "FINAL_EVALUATION_STATUSES",
    "CreatedEvaluation",
    "DeletedEvaluations",
    "EnvironmentReference",
    "Evaluation",
    "EvaluationList",
    "EvaluationStatus",
    "EvaluationType",
    "FailedSamples",
    "FinalizedEvaluation",
    "PushedSamples",
    "SamplePage",
    "UpdatedEvaluation",
]


class EvaluationStatus(StrEnum):
    """State of an evaluation; newer ones are kept as plain strings."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


FINAL_EVALUATION_STATUSES = frozenset(
    {
        EvaluationStatus.COMPLETED,
        EvaluationStatus.FAILED,
        EvaluationStatus.TIMEOUT,
        EvaluationStatus.CANCELLED,
    }
)


class EvaluationType(StrEnum):
    """What an evaluation is about; newer kinds are kept as plain strings."""

    SUITE = "suite"
    TRAINING = "training"
    ENVIRONMENT = "environment"


class EnvironmentReference(RequestModel):
    """An environment to evaluate, by its id.

    Attributes:
        id: the environment.
        version_id: one of its versions; the latest without it.
    """

    id: str = Field(min_length=1)
    version_id: str | None = None


class Evaluation(ResponseModel):
    """An evaluation. Follows the page "api-reference/evals/get-evaluation".

    Attributes:
        evaluation_id: names it.
        name: what its maker calls it.
        status: its state.
        eval_type: what it is about.
        user_id: who made it.
        team_id: the owning team; None is personal.
        environment_ids: the environments that it evaluates.
        environment_names: their names.
        suite_id: its suite.
        run_id: the training run that it belongs to.
        version_id: the environment's version.
        is_hosted: whether the platform runs it.
        sandbox_id: where it runs, if it is hosted.
        inference_model: the model that it asks, if it is hosted.
        eval_config: how it runs, if it is hosted.
        error_message: why it failed.
        model_name: the model that was evaluated.
        dataset: the data set.
        framework: what ran it, such as ``verifiers``.
        task_type: the kind of its tasks.
        description: its maker's words.
        tags: its maker's labels.
        total_samples: how many samples it has.
        avg_score: mean of their scores.
        min_score: the lowest.
        max_score: the highest.
        started_at: time of its beginning.
        completed_at: time of its end.
        created_at: time of creation.
        updated_at: time of the last change.
        metadata: its maker's own document.
        metrics: its maker's own figures.
        viewer_url: where the dashboard shows it.
        is_public: whether whoever has the link can see it.
        show_on_leaderboard: whether it takes part in the leaderboard.
    """

    evaluation_id: str
    name: str
    status: OpenEnum[EvaluationStatus]
    eval_type: OpenEnum[EvaluationType] | None = None
    user_id: str | None = None
    team_id: str | None = None
    environment_ids: list[str] | None = None
    environment_names: list[str] | None = None
    suite_id: str | None = None
    run_id: str | None = None
    version_id: str | None = None
    is_hosted: bool = False
    sandbox_id: str | None = None
    inference_model: str | None = None
    eval_config: dict[str, Any] | None = None
    error_message: str | None = None
    model_name: str | None = None
    dataset: str | None = None
    framework: str | None = None
    task_type: str | None = None
    description: str | None = None
    tags: list[str] = Field(default_factory=list)
    total_samples: int | None = None
    avg_score: float | None = None
    min_score: float | None = None
    max_score: float | None = None
    started_at: UtcDatetime | None = None
    completed_at: UtcDatetime | None = None
    created_at: UtcDatetime | None = None
    updated_at: UtcDatetime | None = None
    metadata: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None
    viewer_url: str | None = None
    is_public: bool = False
    show_on_leaderboard: bool = False


class EvaluationList(ResponseModel):
    """A part of the list of evaluations.

    Attributes:
        evaluations: the evaluations, newest first.
        total: how many the whole list holds.
        skip: how many were skipped.
        limit: most evaluations of this part.
    """

    evaluations: list[Evaluation]
    total: int
    skip: int = 0
    limit: int = 0


class CreatedEvaluation(ResponseModel):
    """An evaluation that was created.

    Attributes:
        evaluation_id: names it.
        name: as it was given.
        status: its state, usually PENDING.
        eval_type: what it is about.
        environment_ids: the environments that it evaluates.
        suite_id: its suite.
        run_id: its training run.
        version_id: the environment's version.
        viewer_url: where the dashboard shows it.
        created_at: time of creation.
    """

    evaluation_id: str
    name: str | None = None
    status: OpenEnum[EvaluationStatus] | None = None
    eval_type: OpenEnum[EvaluationType] | None = None
    environment_ids: list[str] | None = None
    suite_id: str | None = None
    run_id: str | None = None
    version_id: str | None = None
    viewer_url: str | None = None
    created_at: UtcDatetime | None = None


class UpdatedEvaluation(ResponseModel):
    """An evaluation that was changed.

    Attributes:
        evaluation_id: the evaluation.
        name: its name now.
        status: its state now.
        updated_at: time of the change.
    """

    evaluation_id: str | None = None
    name: str | None = None
    status: OpenEnum[EvaluationStatus] | None = None
    updated_at: UtcDatetime | None = None


class FinalizedEvaluation(ResponseModel):
    """An evaluation that is complete, or being counted.

    Attributes:
        evaluation_id: the evaluation.
        status: COMPLETED, or PROCESSING while its figures are computed.
        message: the platform's words.
        total_samples: how many samples it has.
        avg_score: mean of their scores.
        min_score: the lowest.
        max_score: the highest.
        viewer_url: where the dashboard shows it.
    """

    evaluation_id: str
    status: OpenEnum[EvaluationStatus]
    message: str | None = None
    total_samples: int | None = None
    avg_score: float | None = None
    min_score: float | None = None
    max_score: float | None = None
    viewer_url: str | None = None


class DeletedEvaluations(ResponseModel):
    """What a bulk delete did.

    Attributes:
        successful_ids: these are gone.
        failed_ids: these are not, or never were.
    """

    successful_ids: list[str] = Field(default_factory=list)
    failed_ids: list[str] = Field(default_factory=list)


class SamplePage(ResponseModel):
    """A page of an evaluation's samples.

    Attributes:
        evaluation_id: the evaluation.
        samples: the samples, as they were pushed.
        total: how many there are.
        page: the number of this page, from 1.
        limit: most samples of a page.
        total_pages: how many pages there are.
    """

    evaluation_id: str | None = None
    samples: list[dict[str, Any]]
    total: int
    page: int
    limit: int
    total_pages: int | None = None


class PushedSamples(ResponseModel):
    """What a push of samples did.

    Attributes:
        samples_pushed: how many are stored.
        samples_skipped: how many were too large for a request of their own.
        skipped: their places among the samples, from 0.
        requests: how many requests carried them.
    """

    samples_pushed: int = 0
    samples_skipped: int = 0
    skipped: list[int] = Field(default_factory=list)
    requests: int = 0


class FailedSamples(ResponseModel):
    """A request with samples that failed.

    Attributes:
        indexes: the places of its samples among all of them, from 0.
        stored: whether the platform has stored them: ``no``, or ``unknown`` when no answer
            arrived; pushing those again may store them twice.
        error: what went wrong.
    """

    indexes: list[int]
    stored: str
    error: str
