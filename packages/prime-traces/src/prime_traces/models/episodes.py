"""Episodes: traces that were produced together."""

from __future__ import annotations

from pydantic import Field

from prime_core.models import ResponseModel, UtcDatetime


class EpisodeError(ResponseModel):
    """The error of an episode itself.

    Attributes:
        type: its kind, in the producer's words; `None` without an error.
        message: what it says.
    """

    type: str | None = None
    message: str | None = None


class EpisodeSummary(ResponseModel):
    """An episode, summed up.

    Follows the documented page "api-reference/traces/episodes/list-episodes".

    Attributes:
        episode_id: its id, the producer's.
        upload_id: the upload that brought it.
        schema_version: the format of that upload.
        created_at: when its earliest trace began.
        ingested_at: when it was stored, on the service's clock.
        run_id: the run that it belongs to.
        environment_id: the environment that produced it.
        outcome: what came of it, where the producer says so.
        has_error: whether it failed itself; its traces' errors are another matter.
        error: that error; its fields are `None` without one.
    """

    episode_id: str
    upload_id: str
    schema_version: int
    created_at: UtcDatetime
    ingested_at: UtcDatetime
    run_id: str | None = None
    environment_id: str | None = None
    outcome: str | None = None
    has_error: bool
    error: EpisodeError = Field(default_factory=EpisodeError)


class EpisodeTraceAggregate(ResponseModel):
    """Totals over the newest copies of an episode's traces; all empty without any.

    Attributes:
        trace_count: how many there are.
        total_tokens: tokens of all of them.
        total_duration_ms: the sum of their durations, in milliseconds.
        any_trace_error: whether one of them failed.
        agent_names: the agents that took part.
    """

    trace_count: int
    total_tokens: int
    total_duration_ms: int
    any_trace_error: bool
    agent_names: list[str]


class EpisodeDetail(EpisodeSummary):
    """An episode, with totals over its traces.

    Follows the documented page "api-reference/traces/episodes/get-an-episode".

    Attributes:
        traces: the totals.
    """

    traces: EpisodeTraceAggregate


class EpisodeListPage(ResponseModel):
    """A page of episodes, the latest first.

    Attributes:
        items: the episodes.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
    """

    items: list[EpisodeSummary]
    next_cursor: str | None = None
