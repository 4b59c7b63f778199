"""What is in a trace: its messages, and the model calls that made them."""

from __future__ import annotations

from pydantic import JsonValue

from prime_core.models import ResponseModel


class NodeMessage(ResponseModel):
    """A message, as the producer recorded it.

    Attributes:
        role: who speaks, such as ``system``, ``user``, ``assistant`` or ``tool``.
        content: a string, a list of parts, any other JSON, or `None`.
        reasoning_content: what the model thought before it answered.
        tool_calls: the tools that it calls, in any JSON.
        tool_call_id: the call that a tool's message answers.
        name: the speaker's name.
        tool_name: the tool's name.
    """

    role: str | None = None
    content: JsonValue = None
    reasoning_content: str | None = None
    tool_calls: JsonValue = None
    tool_call_id: str | None = None
    name: str | None = None
    tool_name: str | None = None


class TraceNode(ResponseModel):
    """A message of a trace, and its place in the trace.

    Attributes:
        node_idx: its position, from 0.
        parent_idx: the position of the message before it; `None` for a first one.
        timestamp: when it was made, in seconds since 1970.
        sampled: whether a model produced it, rather than a prompt.
        message: the message.
    """

    node_idx: int
    parent_idx: int | None = None
    timestamp: float | None = None
    sampled: bool
    message: NodeMessage


class TraceNodePage(ResponseModel):
    """A page of a trace's messages.

    Attributes:
        items: the messages, by position.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
        partial_index: the trace is so large that the rest stands in its raw document only.
    """

    items: list[TraceNode]
    next_cursor: str | None = None
    partial_index: bool


class TraceCall(ResponseModel):
    """A model call of a trace.

    Attributes:
        call_idx: its position, from 0.
        node_idx: the position of the message that it made; `None` when it names no valid one.
        time_start: when it began, in seconds since 1970; `None` together with ``time_end`` when
            one of them is missing or the end comes before the start.
        time_end: when it ended.
        model: the model that was called.
        endpoint: the path that was called, such as ``/chat/completions``.
        finish_reason: why the model stopped, such as ``stop``, ``length`` or ``tool_calls``.
    """

    call_idx: int
    node_idx: int | None = None
    time_start: float | None = None
    time_end: float | None = None
    model: str | None = None
    endpoint: str | None = None
    finish_reason: str | None = None


class TraceCallPage(ResponseModel):
    """A page of a trace's model calls.

    Attributes:
        items: the calls, by position.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
        partial_index: the trace is so large that the rest stands in its raw document only.
    """

    items: list[TraceCall]
    next_cursor: str | None = None
    partial_index: bool
