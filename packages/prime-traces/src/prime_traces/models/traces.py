"""Traces: one rollout or request each, as the service sums it up."""

from __future__ import annotations

from pydantic import JsonValue

from prime_core.models import ResponseModel, UtcDatetime


class ModelInfo(ResponseModel):
    """The model that a trace used.

    Attributes:
        provider: who served it, such as ``prime``; `None` where that is not known.
        id: the model's name, such as ``acme/solver-8b``.
    """

    provider: str | None = None
    id: str | None = None


class Score(ResponseModel):
    """How a trace went.

    Attributes:
        reward: the weighted sum of its rewards; `None` means unscored, 0.0 is a score.
        outcome: why it stopped, in the producer's words.
    """

    reward: float | None = None
    outcome: str | None = None


class Execution(ResponseModel):
    """Whether a trace ran as it should.

    Attributes:
        has_error: an error ended it.
        is_truncated: a limit cut it short.
    """

    has_error: bool
    is_truncated: bool


class TraceActivity(ResponseModel):
    """What a trace holds, in numbers.

    Attributes:
        total_entries: its messages.
        user_messages: those of the user.
        model_turns: those that a model produced.
        tool_calls: calls of tools in them.
    """

    total_entries: int | None = None
    user_messages: int | None = None
    model_turns: int | None = None
    tool_calls: int | None = None


class TraceSummary(ResponseModel):
    """The newest copy of a trace, summed up.

    Follows the documented page "api-reference/traces/traces/get-a-trace".

    Attributes:
        trace_id: its id, the producer's.
        upload_id: the upload that brought this copy.
        episode_id: the episode that it is part of, if any.
        created_at: when it began, on the producer's clock.
        ingested_at: when it was stored, on the service's clock.
        run_id: the run that it belongs to.
        run_step: its training step; `None` outside of training.
        environment_id: the environment of its episode.
        model: what model it used.
        task_id: the task that it worked on.
        task_key: the task's key, where the producer gives one.
        task_hash: SHA-256 of the task's data, in hexadecimal digits.
        agent_name: the agent's name, such as ``solver``.
        score: reward and outcome.
        execution: whether it ran as it should.
        duration_ms: milliseconds from its beginning to its last phase's end; 0 if unknown.
        total_tokens: tokens of its model calls; context that calls share is counted once.
        size_bytes: bytes of the raw document.
        context: the labels that came with its upload.
        user_id: who uploaded it; `None` on old rows.
        metrics: the producer's named numbers; `None` where they are not given.
        activity: its messages in numbers.
        tool_definitions: the tools that it was offered, as the producer wrote them.
    """

    trace_id: str
    upload_id: str
    episode_id: str | None = None
    created_at: UtcDatetime
    ingested_at: UtcDatetime
    run_id: str | None = None
    run_step: int | None = None
    environment_id: str | None = None
    model: ModelInfo
    task_id: str | None = None
    task_key: str | None = None
    task_hash: str | None = None
    agent_name: str | None = None
    score: Score
    execution: Execution
    duration_ms: int
    total_tokens: int
    size_bytes: int
    context: dict[str, str]
    user_id: str | None = None
    metrics: dict[str, float | None] | None = None
    activity: TraceActivity | None = None
    tool_definitions: list[dict[str, JsonValue]] | None = None


class TraceListPage(ResponseModel):
    """A page of traces.

    Attributes:
        items: the traces, in the order that was asked for.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
    """

    items: list[TraceSummary]
    next_cursor: str | None = None
