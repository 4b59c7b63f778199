"""The indexed nodes and calls of one trace."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.traces.errors import traces_error
from prime_local.traces.filters import invalid_filter
from prime_local.traces.listing import find_trace
from prime_local.traces.paging import invalid_cursor
from prime_local.traces.query import Query
from prime_local.traces.sql import Where, select

_CALL = ("call_idx", "node_idx", "time_start", "time_end", "model", "endpoint", "finish_reason")


def list_nodes(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return a page of a trace's messages.

    Raises:
        PlatformError: 404 `trace_not_found`, 409 `trace_not_indexed`, 400 `invalid_cursor` or
            `invalid_filter`.
    """
    filters = query.filters
    where = Where()
    if filters.get("after") is not None:
        if query.page.position is not None:
            raise invalid_filter("'after' cannot be combined with 'cursor'")
        where.add("node_idx > ?", filters.get("after"))
    if filters.get("sampled") is not None:
        where.add("sampled = ?", filters.get("sampled"))
    filters.narrow_to_one_of(where, "role")
    rows, rest = _list(connection, query, where, "node")
    return {"items": [_node(row) for row in rows], **rest}


def list_calls(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return a page of a trace's model calls.

    Raises:
        PlatformError: 404 `trace_not_found`, 409 `trace_not_indexed` or 400 `invalid_cursor`.
    """
    where = Where()
    query.filters.narrow_to_one_of(where, "model")
    query.filters.narrow_to_one_of(where, "finish_reason")
    rows, rest = _list(connection, query, where, "call")
    return {"items": [{name: row[name] for name in _CALL} for row in rows], **rest}


def _list(
    connection: sqlite3.Connection, query: Query, where: Where, kind: str
) -> tuple[Sequence[sqlite3.Row], JsonObject]:
    """Return a page of a trace's `kind`s in their order, and what else the answer has."""
    page = query.page
    trace = find_trace(connection, query.owner, query.target)
    # The digest too: after a delete generations begin anew.
    version = [trace["digest"], trace["generation"]]
    if page.position is not None:
        *earlier, index = page.position
        if earlier != version:
            raise invalid_cursor("the trace was uploaded again: begin anew")
        where.add(f"{kind}_idx > ?", index)
    if trace["indexed_at"] is None or trace["indexed_at"] > query.now:
        raise traces_error(409, "trace_not_indexed", "the trace's index is not built yet")
    where.add("trace = ?", trace["id"])
    found = select(
        connection,
        f"SELECT * FROM {kind}s WHERE {where} ORDER BY {kind}_idx LIMIT {page.limit + 1}",
        where.values,
    )
    rows, last = page.cut(found.fetchall())
    return rows, {
        "next_cursor": last and page.cursor([*version, last[f"{kind}_idx"]]),
        "partial_index": bool(trace["capped"]),
    }


def _node(row: sqlite3.Row) -> JsonObject:
    return {
        "node_idx": row["node_idx"],
        "parent_idx": row["parent_idx"],
        "timestamp": row["timestamp"],
        "sampled": bool(row["sampled"]),
        "message": {
            "role": row["role"],
            "content": _content(row),
            "reasoning_content": row["reasoning_content"],
            "tool_calls": None if row["tool_calls"] is None else json.loads(row["tool_calls"]),
            "tool_call_id": row["tool_call_id"],
            "name": row["name"],
            "tool_name": row["tool_name"],
        },
    }


def _content(row: sqlite3.Row) -> Any:
    return json.loads(row["content"]) if row["content_kind"] == "json" else row["content"]
