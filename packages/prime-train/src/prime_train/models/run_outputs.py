"""What a training run shows besides its logs."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, Field

from prime_core.models import OpenEnum, ResponseModel, StrEnum, UtcDatetime

__all__ = [
    "HistogramBin",
    "RunCheckpoint",
    "RunCheckpointList",
    "RunCheckpointStatus",
    "RunDistribution",
    "RunMetrics",
    "RunProgress",
    "RunSample",
    "RunSamplePage",
]


class RunMetrics(ResponseModel):
    """The figures of a run, a flat record for each step."""

    metrics: list[dict[str, Any]] = Field(default_factory=list)


class RunProgress(ResponseModel):
    """How far a run is, and for which steps there is more to read.

    Attributes:
        latest_step: the last step that is done; None before the first.
        steps_with_samples: steps that `get_samples` knows.
        steps_with_distributions: steps that `get_distribution` knows.
        last_updated_at: when that changed last.
    """

    latest_step: int | None = Field(default=None, alias="latestStep")
    steps_with_samples: list[int] = Field(default_factory=list, alias="stepsWithSamples")
    steps_with_distributions: list[int] = Field(
        default_factory=list, alias="stepsWithDistributions"
    )
    last_updated_at: UtcDatetime | None = Field(default=None, alias="lastUpdatedAt")


class RunSample(ResponseModel):
    """A rollout of a step. Other fields of its row are kept, too.

    Attributes:
        sample_id: names it within its step.
        problem_id: the example that it is of.
        env_name: the environment.
        prompt: what the model was given, messages as JSON or text.
        completion: what came of it, likewise.
        reward: its score.
        advantage: its score beside that of its group.
    """

    sample_id: int | str | None = None
    problem_id: int | str | None = None
    env_name: str | None = None
    prompt: Any = None
    completion: Any = None
    reward: float | None = None
    advantage: float | None = None


class RunSamplePage(ResponseModel):
    """A page of a step's rollouts.

    Attributes:
        run_id: the run.
        samples: the rollouts.
        total: how many the step has.
        page: the number of this page, from 1.
        limit: most rollouts of a page.
        total_pages: how many pages there are.
    """

    run_id: str | None = None
    samples: list[RunSample] = Field(default_factory=list)
    total: int | None = None
    page: int | None = None
    limit: int | None = None
    total_pages: int | None = None


class HistogramBin(ResponseModel):
    """How many values are in a range.

    Attributes:
        bin_start: where it begins.
        bin_end: where it ends.
        count: how many values.
        range: both as text, such as ``0.000-0.200``.
    """

    bin_start: float | None = Field(default=None, alias="binStart")
    bin_end: float | None = Field(default=None, alias="binEnd")
    count: int = 0
    range: str | None = None


class HistogramChart(ResponseModel):
    """The form that a dashboard draws."""

    histogram_data: list[HistogramBin] = Field(default_factory=list, alias="histogramData")


class RunDistribution(ResponseModel):
    """How the rewards, or the advantages, of a step are spread.

    Attributes:
        step: the step; None where there is none yet.
        bins: the histogram, if it comes by itself.
        chart_data: the histogram as a dashboard draws it, if it comes so.
    """

    step: int | None = None
    bins: list[HistogramBin] | None = None
    chart_data: HistogramChart | None = Field(
        default=None, validation_alias=AliasChoices("chartData", "chart_data")
    )

    @property
    def histogram(self) -> list[HistogramBin]:
        """The ranges with their counts, in whichever form they came."""
        if self.bins is not None:
            return self.bins
        return [] if self.chart_data is None else self.chart_data.histogram_data


class RunCheckpointStatus(StrEnum):
    """States of a checkpoint; others may come."""

    PENDING = "PENDING"
    UPLOADING = "UPLOADING"
    READY = "READY"
    FAILED = "FAILED"


class RunCheckpoint(ResponseModel):
    """A saved checkpoint.

    Attributes:
        id: names it.
        run_id: the run.
        step: the step that it is of.
        storage_url: where it is on the run's volume, such as ``runs/<id>/checkpoints/step_50``.
        status: its state.
        size_bytes: its size.
        created_at: when it was saved.
        uploaded_at: when it was on the volume.
    """

    id: str
    run_id: str = Field(alias="rftRunId")
    step: int
    storage_url: str = Field(alias="storageUrl")
    status: OpenEnum[RunCheckpointStatus]
    size_bytes: int | None = Field(default=None, alias="sizeBytes")
    created_at: UtcDatetime = Field(alias="createdAt")
    uploaded_at: UtcDatetime | None = Field(default=None, alias="uploadedAt")


class RunCheckpointList(ResponseModel):
    """The checkpoints of a run."""

    checkpoints: list[RunCheckpoint] = Field(default_factory=list)
