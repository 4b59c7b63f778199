"""What is derived from a Prime Agent session; how the service does it is not published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from prime_local.traces.derivation import (
    CallRow,
    Derived,
    NodeRow,
    TraceFacts,
    activity,
    capped,
    content_of,
    milliseconds,
    text,
    whole,
)
from prime_local.traces.records import SessionEntry, SessionMessage

_FAILED = frozenset({"error", "aborted"})


def derive_session(header: SessionEntry, entries: Sequence[SessionEntry]) -> Derived:
    """Derive summary, nodes and calls of a session.

    Its messages are the nodes, each answer of the model is a call, and the last answer tells
    model, provider, tokens and outcome.
    """
    nodes: list[NodeRow] = []
    calls: list[CallRow] = []
    placed: dict[str, int | None] = {}  # by entry id: its node, or that of the message before it
    last = SessionMessage()
    for entry in entries:
        parent = placed.get(entry.parent_id) if isinstance(entry.parent_id, str) else None
        place = parent
        if entry.type == "message" and entry.message is not None:
            message, place = entry.message, len(nodes)
            nodes.append(_node(place, parent, entry, message))
            if message.role == "assistant":
                calls.append(_call(len(calls), place, message))
                last = message
        if isinstance(entry.id, str):
            placed[entry.id] = place
    created_at = seconds(header.timestamp)
    assert created_at is not None
    ends = [end for end in (seconds(entry.timestamp) for entry in entries) if end is not None]
    stop = text(last.stop_reason)
    tokens = whole(last.usage.total_tokens) if last.usage else None
    facts = TraceFacts(
        trace_id=header.id,
        created_at=created_at,
        model_id=text(last.model),
        model_provider=text(last.provider),
        outcome=stop,
        has_error=stop in _FAILED,
        is_truncated=stop == "length",
        duration_ms=milliseconds(created_at, max(ends, default=None)),
        total_tokens=max(0, tokens or 0),
        activity=activity(
            total_entries=len(nodes),
            user_messages=sum(node.role == "user" for node in nodes),
            model_turns=len(calls),
            tool_calls=sum(node.role == "toolResult" for node in nodes),
        ),
    )
    return capped(facts, nodes, calls)


def seconds(date: datetime | None) -> float | None:
    """Return a date as seconds since 1970; one without a zone is UTC."""
    if date is None:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()


def _node(
    position: int, parent: int | None, entry: SessionEntry, message: SessionMessage
) -> NodeRow:
    content, kind = content_of(message.content)
    return NodeRow(
        node_idx=position,
        parent_idx=parent,
        timestamp=seconds(entry.timestamp),
        sampled=message.role == "assistant",
        role=text(message.role),
        content=content,
        content_kind=kind,
        reasoning_content=None,
        tool_calls=None,
        tool_call_id=text(message.tool_call_id),
        name=None,
        tool_name=text(message.tool_name),
    )


def _call(position: int, node: int, message: SessionMessage) -> CallRow:
    return CallRow(
        call_idx=position,
        node_idx=node,
        time_start=None,
        time_end=None,
        model=text(message.model),
        endpoint=None,
        finish_reason=text(message.stop_reason),
    )
