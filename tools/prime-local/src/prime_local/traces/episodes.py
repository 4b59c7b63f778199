"""Lists of episodes, and one with the totals of its traces."""

from __future__ import annotations

import json
import sqlite3

from prime_local.contract.document import JsonObject
from prime_local.traces.errors import traces_error
from prime_local.traces.listing import list_traces
from prime_local.traces.query import Query
from prime_local.traces.sql import Order, Where, select
from prime_local.traces.times import format_time

_ORDER = Order("created_at", "episode_id")
_OWN_FILTERS = (
    "run_id",
    "upload_id",
    "environment_id",
    "outcome",
    "has_error",
    "created_after",
    "created_before",
)
_MEMBER_FILTERS = ("run_step", "step_min", "step_max")
_TOTALS = """
    SELECT count(*) AS traces, total(total_tokens) AS tokens, total(duration_ms) AS duration,
        max(has_error) AS has_error,
        json_group_array(DISTINCT agent_name) FILTER (WHERE agent_name IS NOT NULL) AS agents
    FROM traces WHERE owner = ? AND episode_id = ? AND newest = 1
"""


def list_episodes(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return a page of episode summaries."""
    filters, page = query.filters, query.page
    where = Where()
    where.add("owner = ? AND newest = 1", query.owner)
    filters.narrow(where, _OWN_FILTERS)
    # One and the same trace must have all that is asked of the members.
    member = Where()
    filters.narrow(member, _MEMBER_FILTERS)
    filters.narrow_context(member)
    if member.clauses:
        where.add(
            "EXISTS (SELECT 1 FROM traces WHERE owner = episodes.owner AND newest = 1"
            f" AND episode_id = episodes.episode_id AND {member})",
            *member.values,
        )
    if page.position is not None:
        _ORDER.begin_after(where, page.position)
    found = select(
        connection,
        f"SELECT * FROM episodes WHERE {where} ORDER BY {_ORDER} LIMIT {page.limit + 1}",
        where.values,
    )
    rows, last = page.cut(found.fetchall())
    return {
        "items": [_summary(row) for row in rows],
        "next_cursor": last and page.cursor([last[column] for column in _ORDER.columns]),
    }


def get_episode(connection: sqlite3.Connection, query: Query) -> JsonObject | bytes:
    """Return the stored envelope of an episode, or its summary and totals.

    Raises:
        PlatformError: 404 `episode_not_found`.
    """
    row = _find(connection, query)
    if query.filters.get("raw"):
        return bytes(row["document"])
    totals = select(connection, _TOTALS, (query.owner, query.target)).fetchone()
    return {
        **_summary(row),
        "traces": {
            "trace_count": totals["traces"],
            "total_tokens": int(totals["tokens"]),
            "total_duration_ms": int(totals["duration"]),
            "any_trace_error": bool(totals["has_error"]),
            "agent_names": sorted(json.loads(totals["agents"])),
        },
    }


def list_episode_traces(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return a page of the summaries of an episode's traces.

    Raises:
        PlatformError: 404 `episode_not_found`.
    """
    return list_traces(connection, query, _find(connection, query)["episode_id"])


def _find(connection: sqlite3.Connection, query: Query) -> sqlite3.Row:
    row: sqlite3.Row | None = select(
        connection,
        "SELECT * FROM episodes WHERE owner = ? AND episode_id = ? AND newest = 1",
        (query.owner, query.target),
    ).fetchone()
    if row is None:
        raise traces_error(404, "episode_not_found", f"No episode {query.target!r}")
    return row


def _summary(row: sqlite3.Row) -> JsonObject:
    return {
        "episode_id": row["episode_id"],
        "upload_id": row["digest"],
        "schema_version": row["schema_version"],
        "created_at": format_time(row["created_at"]),
        "ingested_at": format_time(row["ingested_at"]),
        "run_id": row["run_id"],
        "environment_id": row["environment_id"],
        "outcome": row["outcome"],
        "has_error": bool(row["has_error"]),
        "error": {"type": row["error_type"], "message": row["error_message"]},
    }
