"""Search: where in a run's messages a text stands."""

from __future__ import annotations

from typing import Literal, TypeAlias

from prime_core.models import ResponseModel

SearchField: TypeAlias = Literal["content", "reasoning_content", "tool_calls"]
"""The part of a message that is searched."""


class TraceSearchMatch(ResponseModel):
    """The first place in a message where the text stands.

    Offsets count code points from 0, ends are exclusive. In the excerpt the text begins at
    ``match_start - excerpt_start``.

    Attributes:
        trace_id: the trace.
        upload_id: the upload that brought the copy that was searched.
        generation: the number of that copy.
        episode_id: the trace's episode, if any.
        node_idx: the message's position in the trace.
        role: who speaks in it.
        field: what was searched.
        representation: what the offsets count in: ``text`` is the string itself, ``json`` the
            JSON that was recorded, for tool calls and content that is no string.
        match_start: where the text begins.
        match_end: where it ends.
        excerpt: the text and what stands around it.
        excerpt_start: where the excerpt begins.
    """

    trace_id: str
    upload_id: str
    generation: int
    episode_id: str | None = None
    node_idx: int
    role: str
    field: str
    representation: str
    match_start: int
    match_end: int
    excerpt: str
    excerpt_start: int


class TraceSearchCoverage(ResponseModel):
    """What a search has looked at.

    Attributes:
        examined_traces: how many traces were searched.
        unindexed_trace_ids: some of those, at most 256, that could not be searched yet.
        partial_index: one of the searched traces is too large to be searched whole.
    """

    examined_traces: int
    unindexed_trace_ids: list[str]
    partial_index: bool


class TraceSearchPage(ResponseModel):
    """A page of matches, by trace id and position. It can be empty without being the last.

    Follows the documented page "api-reference/traces/runs/search-a-run".

    Attributes:
        items: the matches, one a message.
        next_cursor: where the next page begins, for the same filters; `None` on the last page.
        coverage: what was searched, on the first page only; `None` there means unknown.
    """

    items: list[TraceSearchMatch]
    next_cursor: str | None = None
    coverage: TraceSearchCoverage | None = None
