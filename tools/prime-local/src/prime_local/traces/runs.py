"""Runs: figures over the traces that share a run id."""

from __future__ import annotations

import json
import sqlite3

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.traces.errors import traces_error
from prime_local.traces.query import Query
from prime_local.traces.sql import Order, Where, select
from prime_local.traces.times import format_time

_ORDER = Order("last_ingested", "run_id")
_RUNS = """
    WITH held AS NOT MATERIALIZED (SELECT * FROM traces WHERE {traces}), figures AS (
        SELECT run_id, min(created_at) AS first_created, max(created_at) AS last_created,
            max(ingested_at) AS last_ingested, count(*) AS traces,
            count(DISTINCT episode_id) AS episodes, avg(reward) AS reward,
            min(run_step) AS step_min, max(run_step) AS step_max,
            count(DISTINCT run_step) AS steps, max(has_error) AS has_error,
            json_group_array(DISTINCT user_id) AS users,
            json_group_array(DISTINCT environment_id)
                FILTER (WHERE environment_id IS NOT NULL) AS environments,
            json_group_array(DISTINCT model_id) FILTER (WHERE model_id IS NOT NULL) AS models
        FROM held GROUP BY run_id
    ), runs AS (
        SELECT *,
            (SELECT user_id FROM held WHERE held.run_id = figures.run_id
                ORDER BY created_at, id LIMIT 1) AS first_user,
            (SELECT context FROM held WHERE held.run_id = figures.run_id
                ORDER BY created_at DESC, id DESC LIMIT 1) AS context
        FROM figures
    )
    SELECT * FROM runs
"""
# Anything but the two known types counts as unknown.
_OF_TYPE = """
    CASE WHEN json_extract(context, '$.run_type') IN ('eval', 'train')
        THEN json_extract(context, '$.run_type') ELSE 'unknown' END
    IN (SELECT value FROM json_each(?))
"""
_BY_ONE_OF = (
    "EXISTS (SELECT 1 FROM json_each(users) AS user, json_each(?) AS wanted"
    " WHERE user.value = wanted.value)"
)
# A walk through the runs sees them as they were when it began: a run that grows meanwhile would
# move ahead of the cursor and be missed.
_AS_OF = """
    ingested_at <= ? AND (newest = 1 OR NOT EXISTS (
        SELECT 1 FROM traces AS later WHERE later.owner = traces.owner
        AND later.trace_id = traces.trace_id AND later.generation > traces.generation
        AND later.ingested_at <= ?))
"""
_STEPS = """
    SELECT run_step AS step, count(*) AS trace_count, count(DISTINCT episode_id) AS episode_count,
        avg(reward) AS avg_reward
    FROM traces WHERE owner = ? AND run_id = ? AND newest = 1 AND run_step IS NOT NULL
    GROUP BY run_step ORDER BY run_step
"""


def list_runs(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return a page of runs, the latest arrival first."""
    filters, page = query.filters, query.page
    as_of, *position = page.position or [query.now]
    traces = Where()
    traces.add("owner = ? AND run_id IS NOT NULL", query.owner)
    traces.add(_AS_OF, as_of, as_of)
    filters.narrow(traces, ("created_after", "created_before"))
    runs = Where()
    if filters.get("created_by") is not None:
        runs.add(_BY_ONE_OF, json.dumps(filters.get("created_by")))
    if filters.get("run_type") is not None:
        runs.add(_OF_TYPE, json.dumps(filters.get("run_type")))
    if position:
        _ORDER.begin_after(runs, position)
    narrowed = f"WHERE {runs}" if runs.clauses else ""
    found = select(
        connection,
        f"{_RUNS.format(traces=traces)} {narrowed} ORDER BY {_ORDER} LIMIT {page.limit + 1}",
        [*traces.values, *runs.values],
    )
    rows, last = page.cut(found.fetchall())
    return {
        "items": [_summary(row) for row in rows],
        "next_cursor": last and page.cursor([as_of, last["last_ingested"], last["run_id"]]),
    }


def get_run(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return the figures of one run.

    Raises:
        PlatformError: 404 `run_not_found`.
    """
    statement = _RUNS.format(traces="owner = ? AND run_id = ? AND newest = 1")
    row = select(connection, statement, (query.owner, query.target)).fetchone()
    if row is None:
        raise run_not_found(query.target)
    return _summary(row)


def list_steps(connection: sqlite3.Connection, query: Query) -> JsonObject:
    """Return the figures of each step of a run; of an unknown run there are none."""
    items = [dict(row) for row in select(connection, _STEPS, (query.owner, query.target))]
    return {
        "step_min": items[0]["step"] if items else None,
        "step_max": items[-1]["step"] if items else None,
        "step_count": len(items),
        "items": items,
    }


def run_not_found(run_id: str) -> PlatformError:
    return traces_error(404, "run_not_found", f"No traces in run {run_id!r}")


def _summary(row: sqlite3.Row) -> JsonObject:
    return {
        "run_id": row["run_id"],
        "first_trace_created_at": format_time(row["first_created"]),
        "last_trace_created_at": format_time(row["last_created"]),
        "last_trace_ingested_at": format_time(row["last_ingested"]),
        "trace_count": row["traces"],
        "episode_count": row["episodes"],
        "avg_reward": row["reward"],
        "step_min": row["step_min"],
        "step_max": row["step_max"],
        "step_count": row["steps"],
        "has_error": bool(row["has_error"]),
        "first_user_id": row["first_user"],
        "environment_ids": sorted(json.loads(row["environments"])),
        "model_ids": sorted(json.loads(row["models"])),
        "context": json.loads(row["context"]),
    }
