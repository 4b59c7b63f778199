"""Handlers of the routes that read and delete."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.traces import deletion, episodes, listing, nodes, runs
from prime_local.traces.query import Query, read_query
from prime_local.traces.search import search_run


def _reads(read: Callable[[sqlite3.Connection, Query], JsonObject | bytes]) -> Handler:
    async def handle(call: Call) -> Reply:
        query = read_query(call)
        return Reply(await call.core.traces.store.read(lambda connection: read(connection, query)))

    return handle


def _deletes(delete: Callable[[sqlite3.Connection, Query], None]) -> Handler:
    async def handle(call: Call) -> Reply:
        query = read_query(call)
        await call.core.traces.store.write(lambda connection: delete(connection, query))
        return Reply(b"", 202)

    return handle


async def _search_run(call: Call) -> Reply:
    return Reply(await search_run(call.core.traces.store, read_query(call)))


async def _export_traces(call: Call) -> Reply:
    # So does the real service, as long as it has no export.
    return Reply({"detail": "Internal Server Error"}, 500)


HANDLERS: dict[str, Handler] = {
    "list_traces": _reads(listing.list_traces),
    "get_trace": _reads(listing.get_trace),
    "delete_trace": _deletes(deletion.delete_trace),
    "delete_run_traces": _deletes(deletion.delete_run_traces),
    "export_traces": _export_traces,
    "list_trace_nodes": _reads(nodes.list_nodes),
    "list_trace_calls": _reads(nodes.list_calls),
    "list_episodes": _reads(episodes.list_episodes),
    "get_episode": _reads(episodes.get_episode),
    "list_episode_traces": _reads(episodes.list_episode_traces),
    "list_runs": _reads(runs.list_runs),
    "get_run": _reads(runs.get_run),
    "list_run_steps": _reads(runs.list_steps),
    "search_run": _search_run,
}
