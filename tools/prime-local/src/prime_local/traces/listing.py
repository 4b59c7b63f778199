"""Lists of traces, and the summary of one."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.traces.errors import traces_error
from prime_local.traces.query import Query
from prime_local.traces.sql import Order, Where, select
from prime_local.traces.times import format_time

BY_TIME = Order("created_at", "trace_id")


def list_traces(
    connection: sqlite3.Connection, query: Query, episode_id: str | None = None
) -> JsonObject:
    """Return a page of summaries, of one episode's traces if it is named."""
    page = query.page
    where = Where()
    where.add("owner = ? AND newest = 1", query.owner)
    if episode_id is not None:
        where.add("episode_id = ?", episode_id)
    query.filters.narrow(where)
    query.filters.narrow_context(where)
    sort = query.filters.get("sort")
    order = BY_TIME if sort in (None, "created_at") else Order("created_at", "trace_id", sort)
    if page.position is not None:
        order.begin_after(where, page.position)
    found = select(
        connection,
        f"SELECT * FROM traces WHERE {where} ORDER BY {order} LIMIT {page.limit + 1}",
        where.values,
    )
    rows, last = page.cut(found.fetchall())
    return {
        "items": [_summary(row) for row in rows],
        "next_cursor": last and page.cursor([last[column] for column in order.columns]),
    }


def get_trace(connection: sqlite3.Connection, query: Query) -> JsonObject | bytes:
    """Return the stored document of a trace, or its summary with all that a list leaves out.

    Raises:
        PlatformError: 404 `trace_not_found`.
    """
    row = find_trace(connection, query.owner, query.target)
    if query.filters.get("raw"):
        found = connection.execute("SELECT document FROM documents WHERE trace = ?", (row["id"],))
        return bytes(found.fetchone()[0])
    return {
        **_summary(row),
        "task_key": row["task_key"],
        "task_hash": row["task_hash"],
        "metrics": _parsed(row["metrics"]),
        "activity": _parsed(row["activity"]),
        "tool_definitions": _parsed(row["tool_definitions"]),
    }


def find_trace(connection: sqlite3.Connection, owner: str, trace_id: str) -> sqlite3.Row:
    """Return the newest copy's row.

    Raises:
        PlatformError: 404 `trace_not_found`.
    """
    row: sqlite3.Row | None = select(
        connection,
        "SELECT * FROM traces WHERE owner = ? AND trace_id = ? AND newest = 1",
        (owner, trace_id),
    ).fetchone()
    if row is None:
        raise trace_not_found(trace_id)
    return row


def trace_not_found(trace_id: str) -> PlatformError:
    return traces_error(404, "trace_not_found", f"No trace {trace_id!r}")


def _summary(row: sqlite3.Row) -> JsonObject:
    return {
        "trace_id": row["trace_id"],
        "upload_id": row["digest"],
        "episode_id": row["episode_id"],
        "created_at": format_time(row["created_at"]),
        "ingested_at": format_time(row["ingested_at"]),
        "run_id": row["run_id"],
        "run_step": row["run_step"],
        "environment_id": row["environment_id"],
        "model": {"provider": row["model_provider"], "id": row["model_id"]},
        "task_id": row["task_id"],
        "agent_name": row["agent_name"],
        "score": {"reward": row["reward"], "outcome": row["outcome"]},
        "execution": {
            "has_error": bool(row["has_error"]),
            "is_truncated": bool(row["is_truncated"]),
        },
        "duration_ms": row["duration_ms"],
        "total_tokens": row["total_tokens"],
        "size_bytes": row["size_bytes"],
        "context": json.loads(row["context"]),
        "user_id": row["user_id"],
    }


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
