"""Deletes: every copy of a trace, or of each trace of a run; episodes and receipts stay."""

from __future__ import annotations

import sqlite3

from prime_local.traces.listing import trace_not_found
from prime_local.traces.query import Query
from prime_local.traces.runs import run_not_found


def delete_trace(connection: sqlite3.Connection, query: Query) -> None:
    """Delete all copies of a trace, some copy of which has the time that was given, if one was.

    Raises:
        PlatformError: 404 `trace_not_found`.
    """
    key, created_at = (query.owner, query.target), query.filters.get("created_at")
    copies = connection.execute(
        "SELECT created_at FROM traces WHERE owner = ? AND trace_id = ?", key
    ).fetchall()
    if not copies or (created_at is not None and (created_at,) not in copies):
        raise trace_not_found(query.target)
    connection.execute("DELETE FROM traces WHERE owner = ? AND trace_id = ?", key)


def delete_run_traces(connection: sqlite3.Connection, query: Query) -> None:
    """Delete all copies of the traces that a run has now.

    Raises:
        PlatformError: 404 `run_not_found`.
    """
    run_id = query.filters.get("run_id")
    deleted = connection.execute(
        "DELETE FROM traces WHERE owner = ?1 AND trace_id IN"
        " (SELECT trace_id FROM traces WHERE owner = ?1 AND run_id = ?2 AND newest = 1)",
        (query.owner, run_id),
    )
    if not deleted.rowcount:
        raise run_not_found(run_id)
