"""Each route of the traces service, and what may be done with it."""

from __future__ import annotations

from prime_core.operations import Operation

# By these a 503 of the service says that it did not do what it was asked. A gateway's 503 says
# nothing of the kind, and what may have been deleted is not deleted again: somebody may have
# uploaded it anew.
REFUSAL_CODES = frozenset(
    {
        "auth_unavailable",
        "ingest_capacity_exceeded",
        "ingest_unavailable",
        "rate_limited",
        "storage_unavailable",
        "writer_pool_saturated",
    }
)

# Upload

UPLOAD_TRACES = Operation(
    id="upload_traces",
    method="POST",
    path="/api/v1/traces",
    safety="keyed",
    service="traces",
    key_header="Idempotency-Key",
)

# Traces

LIST_TRACES = Operation(
    id="list_traces", method="GET", path="/api/v1/traces", safety="safe", service="traces"
)
GET_TRACE = Operation(
    id="get_trace", method="GET", path="/api/v1/traces/{trace_id}", safety="safe", service="traces"
)
LIST_TRACE_NODES = Operation(
    id="list_trace_nodes",
    method="GET",
    path="/api/v1/traces/{trace_id}/nodes",
    safety="safe",
    service="traces",
)
LIST_TRACE_CALLS = Operation(
    id="list_trace_calls",
    method="GET",
    path="/api/v1/traces/{trace_id}/calls",
    safety="safe",
    service="traces",
)
DELETE_TRACE = Operation(
    id="delete_trace",
    method="DELETE",
    path="/api/v1/traces/{trace_id}",
    safety="unsafe",
    service="traces",
    refusal_codes=REFUSAL_CODES,
)
DELETE_RUN_TRACES = Operation(
    id="delete_run_traces",
    method="DELETE",
    path="/api/v1/traces",
    safety="unsafe",
    service="traces",
    refusal_codes=REFUSAL_CODES,
)

# Episodes

LIST_EPISODES = Operation(
    id="list_episodes", method="GET", path="/api/v1/episodes", safety="safe", service="traces"
)
GET_EPISODE = Operation(
    id="get_episode",
    method="GET",
    path="/api/v1/episodes/{episode_id}",
    safety="safe",
    service="traces",
)
LIST_EPISODE_TRACES = Operation(
    id="list_episode_traces",
    method="GET",
    path="/api/v1/episodes/{episode_id}/traces",
    safety="safe",
    service="traces",
)

# Runs

LIST_RUNS = Operation(
    id="list_runs", method="GET", path="/api/v1/runs", safety="safe", service="traces"
)
GET_RUN = Operation(
    id="get_run", method="GET", path="/api/v1/runs/{run_id}", safety="safe", service="traces"
)
LIST_RUN_STEPS = Operation(
    id="list_run_steps",
    method="GET",
    path="/api/v1/runs/{run_id}/steps",
    safety="safe",
    service="traces",
)
SEARCH_RUN = Operation(
    id="search_run",
    method="GET",
    path="/api/v1/runs/{run_id}/search",
    safety="safe",
    service="traces",
)
