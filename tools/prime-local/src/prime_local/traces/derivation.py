"""What is derived from a record when it is uploaded; nothing of it is stored in the record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Raw

from prime_local.traces.records import Call, EpisodeRecord, Message, Node, Span, TraceRecord, Usage

INDEX_CAP = 10_000  # nodes, and calls, of one trace

_TRUNCATED = frozenset(
    {
        "max_turns",
        "max_input_tokens",
        "max_output_tokens",
        "max_total_tokens",
        "context_length",
        "compaction_failed",
    }
)
_LARGEST = 2**63 - 1
_STRING = msgspec.json.Decoder(str)
_ARRAY = msgspec.json.Decoder(list[Raw])


class NodeRow(NamedTuple):
    """A row of the table `nodes`, without its trace."""

    node_idx: int
    parent_idx: int | None
    timestamp: float | None
    sampled: bool
    role: str | None
    content: str | None
    content_kind: str | None
    reasoning_content: str | None
    tool_calls: str | None
    tool_call_id: str | None
    name: str | None
    tool_name: str | None


class CallRow(NamedTuple):
    """A row of the table `calls`, without its trace."""

    call_idx: int
    node_idx: int | None
    time_start: float | None
    time_end: float | None
    model: str | None
    endpoint: str | None
    finish_reason: str | None


class TraceFacts(NamedTuple):
    """What a trace says about itself: columns of the table `traces`."""

    trace_id: str
    created_at: float
    run_id: str | None = None
    run_step: int | None = None
    model_id: str | None = None
    model_provider: str | None = None
    task_id: str | None = None
    task_key: str | None = None
    task_hash: str | None = None
    agent_name: str | None = None
    reward: float | None = None
    outcome: str | None = None
    has_error: bool = False
    is_truncated: bool = False
    duration_ms: int = 0
    total_tokens: int = 0
    metrics: str | None = None
    activity: str = "{}"
    tool_definitions: str | None = None


@dataclass(frozen=True)
class Derived:
    """A trace's facts and its index; `capped` when the index stops before the trace does."""

    facts: TraceFacts
    nodes: Sequence[NodeRow]
    calls: Sequence[CallRow]
    capped: bool


class EpisodeFacts(NamedTuple):
    """What an envelope says: columns of the table `episodes`."""

    episode_id: str
    run_id: str | None
    environment_id: str | None
    outcome: str | None
    has_error: bool
    error_type: str | None
    error_message: str | None


def derive_trace(record: TraceRecord) -> Derived:
    """Derive summary, nodes and calls of a valid trace record."""
    nodes = [node or Node() for node in record.nodes or ()]
    calls = [call or Call() for call in record.calls or ()]
    node_rows = [_node(number, node) for number, node in enumerate(nodes)]
    call_rows = [_call(number, call, len(nodes)) for number, call in enumerate(calls)]
    agent, task, run = record.agent, record.task, record.run
    config = agent.config if agent else None
    assert record.timing is not None
    # To the microsecond, as summaries show it: a time that was read there finds its trace.
    created_at = round(float(record.timing.start), 6)
    facts = TraceFacts(
        trace_id=record.id,
        created_at=created_at,
        run_id=text(run.id) if run else None,
        run_step=whole(run.work.step) if run and run.work else None,
        model_id=(text(config.model) if config else None)
        or (calls and text(calls[0].model))
        or None,
        model_provider=_provider(config.client.base_url) if config and config.client else None,
        task_id=(text(task.data.id) or text(task.data.name)) if task and task.data else None,
        task_key=text(task.key) if task else None,
        task_hash=text(task.hash) if task else None,
        agent_name=text(agent.name) if agent else None,
        reward=_reward(record),
        outcome=text(record.stop_condition),
        has_error=has_error(record.ok, record.errors),
        is_truncated=_is_truncated(record.stop_condition, calls),
        duration_ms=milliseconds(created_at, _last_end(record)),
        total_tokens=_total_tokens(calls, call_rows, node_rows),
        metrics=_metrics(record.metrics),
        activity=_activity(nodes),
        tool_definitions=_tools(record.tools),
    )
    return capped(facts, node_rows, call_rows)


def derive_episode(record: EpisodeRecord, members: Iterable[TraceFacts]) -> EpisodeFacts:
    """Derive the summary of a valid envelope, with what only its members say."""
    runs = [member.run_id for member in members]
    own = text(record.run.id) if record.run else None
    errors = record.errors if isinstance(record.errors, list) else []
    last = errors[-1] if errors and isinstance(errors[-1], dict) else {}
    return EpisodeFacts(
        episode_id=record.id,
        run_id=next((run for run in runs if run is not None), None) if runs else own,
        environment_id=text(record.env.id) if record.env else None,
        outcome=text(record.outcome),
        has_error=has_error(record.ok, record.errors),
        error_type=text(last.get("type")),
        error_message=text(last.get("message")),
    )


def capped(facts: TraceFacts, nodes: Sequence[NodeRow], calls: Sequence[CallRow]) -> Derived:
    """Return facts with as much of the index as is kept."""
    too_long = len(nodes) > INDEX_CAP or len(calls) > INDEX_CAP
    return Derived(facts, nodes[:INDEX_CAP], calls[:INDEX_CAP], too_long)


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def number(value: object) -> float | None:
    """Return a finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(value: object) -> int | None:
    """Return an integer that the store can hold, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        return None
    return value


def has_error(ok: object, errors: object) -> bool:
    return bool(errors) if ok is UNSET else ok is not True


def milliseconds(start: float, end: float | None) -> int:
    """Return the time from start to end, at least 0; 0 when there is no end."""
    if end is None:
        return 0
    return max(0, min(round((end - start) * 1000), _LARGEST))


def recorded(source: Raw) -> str | None:
    """Return JSON as it was recorded, or None for null."""
    data = bytes(source)
    return None if data == b"null" else data.decode()


def content_of(source: Raw) -> tuple[str | None, str | None]:
    """Return a message's content in the form that is searched, and which form that is."""
    data = bytes(source)
    if data == b"null":
        return None, None
    if data.startswith(b'"'):
        return _STRING.decode(data), "text"
    return data.decode(), "json"


def _node(position: int, node: Node) -> NodeRow:
    message = node.message or Message()
    content, kind = content_of(message.content)
    return NodeRow(
        node_idx=position,
        parent_idx=_parent(node),
        timestamp=number(node.timestamp),
        sampled=node.sampled is True,
        role=text(message.role),
        content=content,
        content_kind=kind,
        reasoning_content=text(message.reasoning_content),
        tool_calls=recorded(message.tool_calls),
        tool_call_id=text(message.tool_call_id),
        name=text(message.name),
        tool_name=text(message.tool_name),
    )


def _parent(node: Node) -> int | None:
    parent = whole(node.parent)
    if parent is None and isinstance(node.semantic_parents, list) and node.semantic_parents:
        first = node.semantic_parents[0]
        parent = whole(first.get("node") if isinstance(first, dict) else first)
    return parent


def _call(position: int, call: Call, nodes: int) -> CallRow:
    node = whole(call.node)
    start = number(call.time.start) if call.time else None
    end = number(call.time.end) if call.time else None
    if start is None or end is None or end < start:
        start = end = None
    return CallRow(
        call_idx=position,
        node_idx=node if node is not None and 0 <= node < nodes else None,
        time_start=start,
        time_end=end,
        model=text(call.model),
        endpoint=text(call.endpoint),
        finish_reason=text(call.finish_reason),
    )


def _provider(base_url: object) -> str | None:
    try:
        host = urlsplit(text(base_url) or "").hostname or ""
    except ValueError:
        return None
    return "prime" if host == "pinference.ai" or host.endswith(".pinference.ai") else None


def _reward(record: TraceRecord) -> float | None:
    total, scored = 0.0, False
    for reward in (record.rewards or {}).values():
        score = number(reward.score) if reward else None
        if reward is None or score is None:
            continue
        weight = number(reward.weight)
        total += score * (1.0 if weight is None else weight)
        scored = True
    return number(total) if scored else None


def _is_truncated(stop_condition: object, calls: Sequence[Call]) -> bool:
    if isinstance(stop_condition, str) and stop_condition in _TRUNCATED:
        return True
    last = next((call for call in reversed(calls) if call.error is None), None)
    return last is not None and last.finish_reason == "length"


def _last_end(record: TraceRecord) -> float | None:
    timing = record.timing
    if timing is None:
        return None
    scoring = _end(timing.scoring)
    if scoring is not None:
        return scoring
    spans = (timing.boot, timing.setup, timing.agent, timing.finalize)
    return max((end for end in map(_end, spans) if end is not None), default=None)


def _end(span: Span | None) -> float | None:
    # 0 stands for a phase that was not reached.
    return (number(span.end) or None) if span else None


def _total_tokens(
    calls: Sequence[Call], call_rows: Sequence[CallRow], nodes: Sequence[NodeRow]
) -> int:
    """Sum up, over the leaves of the node graph, the last usage on the way there.

    A call's prompt repeats its context, so the last call of a branch has counted it all.
    """
    own: list[int | None] = [None] * len(nodes)
    loose: int | None = None
    for call, row in zip(calls, call_rows, strict=True):
        used = _usage(call.usage)
        if used is None:
            continue
        if row.node_idx is None:
            loose = used
        else:
            own[row.node_idx] = used
    last = list(own)
    is_leaf = [True] * len(nodes)
    for position, node in enumerate(nodes):
        parent = node.parent_idx
        # Parents come first; anything else is no branch that could be followed.
        if parent is not None and 0 <= parent < position:
            is_leaf[parent] = False
            if own[position] is None:
                last[position] = last[parent]
    ends = [used for used, leaf in zip(last, is_leaf, strict=True) if leaf]
    return min(sum(used or 0 for used in [*ends, loose]), _LARGEST)


def _usage(usage: Usage | None) -> int | None:
    if usage is None:
        return None
    total = whole(usage.total_tokens)
    if total is None:
        parts = (usage.prompt_tokens, usage.cached_input_tokens, usage.completion_tokens)
        known = [count for count in map(whole, parts) if count is not None]
        if not known:
            return None
        total = sum(known)
    return max(0, total)


def _metrics(metrics: object) -> str | None:
    if not isinstance(metrics, dict):
        return None
    kept = {
        name: value
        for name, value in metrics.items()
        if value is None or (number(value) is not None)
    }
    return json.dumps(kept, ensure_ascii=False)


def _activity(nodes: Sequence[Node]) -> str:
    messages = [node.message or Message() for node in nodes]
    return activity(
        total_entries=len(nodes),
        user_messages=sum(message.role == "user" for message in messages),
        model_turns=sum(node.sampled is True for node in nodes),
        tool_calls=sum(_length(message.tool_calls) for message in messages),
    )


def activity(**counts: int) -> str:
    return json.dumps(counts)


def _length(source: Raw) -> int:
    return len(_ARRAY.decode(source)) if bytes(source)[:1] == b"[" else 0


def _tools(tools: Any) -> str | None:
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return None
    return json.dumps(tools, ensure_ascii=False)
