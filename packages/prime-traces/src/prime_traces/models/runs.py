"""Runs: traces that share a run id."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import ConfigDict

from prime_core.models import ResponseModel, UtcDatetime

RunType: TypeAlias = Literal["eval", "train", "unknown"]
"""What a run is for, by the ``run_type`` in the upload context of its newest trace."""


class RunSummary(ResponseModel):
    """A run, with totals over its traces.

    Follows the documented page "api-reference/traces/runs/get-a-run".

    Attributes:
        run_id: its id.
        first_trace_created_at: when its earliest trace began.
        last_trace_created_at: when its latest trace began.
        last_trace_ingested_at: when the last of them was stored; lists are sorted by it.
        trace_count: its traces.
        episode_count: their episodes.
        avg_reward: the mean reward of the scored ones; `None` if none is.
        step_min: the first training step; `None` without steps.
        step_max: the last one.
        step_count: how many different ones there are.
        has_error: whether one of its traces failed.
        first_user_id: who uploaded the earliest trace.
        environment_ids: the environments that it used.
        model_ids: the models that it used.
        context: the upload context of its newest trace.
    """

    # Names that begin with "model_" are the platform's, and hide nothing of pydantic's.
    model_config = ConfigDict(protected_namespaces=())

    run_id: str
    first_trace_created_at: UtcDatetime
    last_trace_created_at: UtcDatetime
    last_trace_ingested_at: UtcDatetime
    trace_count: int
    episode_count: int
    avg_reward: float | None = None
    step_min: int | None = None
    step_max: int | None = None
    step_count: int
    has_error: bool
    first_user_id: str | None = None
    environment_ids: list[str]
    model_ids: list[str]
    context: dict[str, str]


class RunListPage(ResponseModel):
    """A page of runs, those whose traces arrived last first.

    Attributes:
        items: the runs.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
    """

    items: list[RunSummary]
    next_cursor: str | None = None


class RunStep(ResponseModel):
    """A training step of a run.

    Attributes:
        step: its number.
        trace_count: its traces.
        episode_count: their episodes.
        avg_reward: the mean reward of the scored ones; `None` if none is.
    """

    step: int
    trace_count: int
    episode_count: int
    avg_reward: float | None = None


class RunStepList(ResponseModel):
    """All training steps of a run, the first first; none of a run that is not known.

    Follows the documented page "api-reference/traces/runs/list-run-steps".

    Attributes:
        step_min: the first step; `None` without any.
        step_max: the last one.
        step_count: how many there are.
        items: the steps.
    """

    step_min: int | None = None
    step_max: int | None = None
    step_count: int
    items: list[RunStep]
