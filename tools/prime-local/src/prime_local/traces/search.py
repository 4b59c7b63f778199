"""Literal search in the indexed nodes of one run."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from functools import partial

from prime_local.contract.document import JsonObject
from prime_local.traces.errors import traces_error
from prime_local.traces.filters import invalid_filter
from prime_local.traces.query import Query
from prime_local.traces.runs import run_not_found
from prime_local.traces.sql import SqlValue, Where, select
from prime_local.traces.store import TracesStore

_FIELDS = {
    "content": "node.content, node.content_kind AS representation",
    "reasoning_content": "node.reasoning_content, 'text' AS representation",
    "tool_calls": "node.tool_calls, 'json' AS representation",
}
_AROUND = 64
_LISTED_UNINDEXED = 256
# Characters that are read at a stretch; then others have their turn.
_STRETCH = 1024 * 1024
_TRACE_FILTERS = ("run_step", "has_error", "reward_min", "reward_max")


@dataclass
class _Walk:
    """How far a search has come: at the node after which it goes on."""

    trace_id: str
    node_idx: int
    read: int
    items: list[JsonObject] = field(default_factory=list)
    ended: bool = False


async def search_run(store: TracesStore, query: Query) -> JsonObject:
    """Return a page of matches, at most one a node, in the order of trace id and node.

    Raises:
        PlatformError: 404 `run_not_found`, 400 `invalid_filter` or `search_limit_exceeded`.
    """
    if not query.filters.get("query").strip():
        raise invalid_filter("query: must not be blank")
    page = query.page
    max_read, max_read_by_page = query.max_read
    coverage = await store.read(lambda connection: _look(connection, query))
    walk = _Walk(*(page.position or ("", -1, 0)))
    end_of_page = walk.read + max_read_by_page
    while not walk.ended and len(walk.items) < page.limit and walk.read < end_of_page:
        end = min(walk.read + _STRETCH, end_of_page, max_read + 1)
        await store.read(partial(_go_on, query=query, walk=walk, end=end))
        if walk.read > max_read:
            raise traces_error(
                400, "search_limit_exceeded", "the search reads too much; make it more specific"
            )
    cursor = page.cursor([walk.trace_id, walk.node_idx, walk.read])
    return {
        "items": walk.items,
        "next_cursor": None if walk.ended else cursor,
        "coverage": coverage,
    }


def _look(connection: sqlite3.Connection, query: Query) -> JsonObject | None:
    """Return the coverage that the first page tells, once the run is known to exist."""
    known = connection.execute(
        "SELECT 1 FROM traces WHERE owner = ? AND run_id = ? AND newest = 1",
        (query.owner, query.target),
    ).fetchone()
    if known is None:
        raise run_not_found(query.target)
    if query.page.position is not None:
        return None
    searched = _traces(query, "indexed_at <= ?")
    examined, capped = connection.execute(
        f"SELECT count(*), max(capped) FROM traces WHERE {searched}", searched.values
    ).fetchone()
    waiting = _traces(query, "indexed_at IS NULL OR indexed_at > ?")
    unindexed = connection.execute(
        f"SELECT trace_id FROM traces WHERE {waiting} ORDER BY trace_id LIMIT {_LISTED_UNINDEXED}",
        waiting.values,
    )
    return {
        "examined_traces": examined,
        "unindexed_trace_ids": [trace_id for (trace_id,) in unindexed],
        "partial_index": bool(capped),
    }


def _traces(query: Query, indexed: str) -> Where:
    """Return what holds for the run's traces that are asked for, and are indexed or not by now."""
    where = Where()
    where.add("owner = ? AND run_id = ? AND newest = 1", query.owner, query.target)
    where.add(indexed, query.now)
    query.filters.narrow(where, _TRACE_FILTERS)
    return where


def _go_on(connection: sqlite3.Connection, query: Query, walk: _Walk, end: int) -> None:
    """Read on until so many characters were read."""
    field_name, wanted = query.filters.get("field"), query.filters.get("query")
    for row in select(connection, *_nodes(query, walk, field_name)):
        walk.trace_id, walk.node_idx = row["trace_id"], row["node_idx"]
        text: str = row[field_name]
        walk.read += len(text)
        start = text.find(wanted)
        if start >= 0:
            walk.items.append(_match(row, field_name, text, start, start + len(wanted)))
        if walk.read >= end or len(walk.items) == query.page.limit:
            return
    walk.ended = True


def _nodes(query: Query, walk: _Walk, field_name: str) -> tuple[str, list[SqlValue]]:
    """Return the statement for the nodes that a walk has not seen yet, and its values."""
    traces = _traces(query, "indexed_at <= ?")
    traces.add("trace_id >= ?", walk.trace_id)
    nodes = Where()
    nodes.add(f"node.{field_name} IS NOT NULL")
    nodes.add("trace.trace_id > ? OR node.node_idx > ?", walk.trace_id, walk.node_idx)
    if query.filters.get("role") is not None:
        nodes.add("node.role = ?", query.filters.get("role"))
    # Traces go first whatever the planner thinks: in the order of its indexes nothing is sorted.
    statement = f"""
        SELECT trace.trace_id, trace.digest, trace.generation, trace.episode_id, node.node_idx,
            node.role, {_FIELDS[field_name]}
        FROM (SELECT * FROM traces WHERE {traces}) AS trace CROSS JOIN nodes AS node
            ON node.trace = trace.id
        WHERE {nodes} ORDER BY trace.trace_id, trace.id, node.node_idx
    """
    return statement, [*traces.values, *nodes.values]


def _match(row: sqlite3.Row, field_name: str, text: str, start: int, end: int) -> JsonObject:
    excerpt_start = max(0, start - _AROUND)
    return {
        "trace_id": row["trace_id"],
        "upload_id": row["digest"],
        "generation": row["generation"],
        "episode_id": row["episode_id"],
        "node_idx": row["node_idx"],
        "role": row["role"] or "",
        "field": field_name,
        "representation": row["representation"],
        "match_start": start,
        "match_end": end,
        "excerpt": text[excerpt_start : excerpt_start + end - start + 2 * _AROUND],
        "excerpt_start": excerpt_start,
    }
