"""The sandbox API at a glance: one row per route."""

from __future__ import annotations

from prime_core.operations import Operation, RateLimit, RateScope

# An account may create 192 sandboxes per 10 seconds ("sandboxes/overview", "Limits").
CREATE_SCOPE = RateScope("sandbox-create", RateLimit(192, 10))
READ_SCOPE = RateScope("sandbox-read")
DELETE_SCOPE = RateScope("sandbox-delete")
AUTH_SCOPE = RateScope("sandbox-auth")
GATEWAY_SCOPE = RateScope("sandbox-gateway")

CREATE_SANDBOX = Operation(
    "create_sandbox",
    "POST",
    "/api/v1/sandbox",
    "keyed",
    scope=CREATE_SCOPE,
    team="body",
    key_field="idempotency_key",
)
LIST_SANDBOXES = Operation(
    "list_sandboxes", "GET", "/api/v1/sandbox", "safe", scope=READ_SCOPE, team="query"
)
BULK_DELETE_SANDBOXES = Operation(
    "bulk_delete_sandboxes", "DELETE", "/api/v1/sandbox", "safe", scope=DELETE_SCOPE
)
BATCH_GET_SANDBOX_STATUSES = Operation(
    "batch_get_sandbox_statuses",
    "POST",
    "/api/v1/sandbox/status:batchGet",
    "safe",
    scope=READ_SCOPE,
)
GET_SANDBOX = Operation(
    "get_sandbox", "GET", "/api/v1/sandbox/{sandbox_id}", "safe", scope=READ_SCOPE
)
DELETE_SANDBOX = Operation(
    "delete_sandbox", "DELETE", "/api/v1/sandbox/{sandbox_id}", "safe", scope=DELETE_SCOPE
)
GET_SANDBOX_LOGS = Operation(
    "get_sandbox_logs", "GET", "/api/v1/sandbox/{sandbox_id}/logs", "safe", scope=READ_SCOPE
)
GET_SANDBOX_ERROR_CONTEXT = Operation(
    "get_sandbox_error_context",
    "GET",
    "/api/v1/sandbox/{sandbox_id}/error-context",
    "safe",
    scope=READ_SCOPE,
)
CREATE_SANDBOX_AUTH_TOKEN = Operation(
    "create_sandbox_auth_token",
    "POST",
    "/api/v1/sandbox/{sandbox_id}/auth",
    "safe",
    scope=AUTH_SCOPE,
)
# Starting again after an answer may have been lost attaches to the same session, but what it
# wrote in between is gone: a result with a hole is worse than an error, so this is unsafe.
COMMAND_SESSION_START = Operation(
    "command_session_start",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/Start",
    "unsafe",
    scope=GATEWAY_SCOPE,
    pool="stream",
)
COMMAND_SESSION_SEND_SIGNAL = Operation(
    "command_session_send_signal",
    "POST",
    "/{user_ns}/{job_id}/command_session.CommandSession/SendSignal",
    "keyed",
    scope=GATEWAY_SCOPE,
)
