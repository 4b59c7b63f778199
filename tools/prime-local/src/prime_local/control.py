"""Routes of the control plane."""

from __future__ import annotations

from collections.abc import Sequence

from prime_local.calls import Call, Handler, Reply
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.record import Owner, Sandbox


async def create_sandbox(call: Call) -> Reply:
    core = call.core
    life, new = core.sandboxes.create(call.body, Owner(core.user_id, team_of(call, call.body)))
    record = life.record
    auth = None
    if record.live and call.assumptions.create_token == "included":
        auth = core.tokens.issue(record, call.gateway_url)
    wire = {**_wire(call, record), "gatewayAuth": auth}
    await core.saved()
    status = 201 if new else call.assumptions.replayed_create
    return Reply(wire, status, contract_status=201)


async def list_sandboxes(call: Call) -> Reply:
    query = call.parameters
    owner = scope_of(call, query)
    status, labels = query.get("status"), query.get("labels", ())

    def wanted(record: Sandbox) -> bool:
        return (
            (status is None or record.status == status)
            and (record.live or not query.get("is_active"))
            and _carries(record, labels)
        )

    found = call.core.sandboxes.select(owner, wanted)
    page, per_page = query["page"], query["per_page"]
    first, last = (page - 1) * per_page, page * per_page
    camel = call.assumptions.list_paging == "camelCase"
    return Reply(
        {
            "sandboxes": [_wire(call, life.record) for life in found[first:last]],
            "total": len(found),
            "page": page,
            "perPage" if camel else "per_page": per_page,
            "hasNext" if camel else "has_next": last < len(found),
        }
    )


async def get_sandbox(call: Call) -> Reply:
    return Reply(_wire(call, life_of(call).record))


async def delete_sandbox(call: Call) -> Reply:
    await call.core.sandboxes.delete([life_of(call)])
    await call.core.saved()
    return Reply({"success": True, "message": "Sandbox deleted"})


async def bulk_delete_sandboxes(call: Call) -> Reply:
    body = call.body
    ids, labels = body.get("sandbox_ids"), body.get("labels", ())
    if ids is not None and labels:
        raise PlatformError(400, "Give sandbox_ids or labels, not both")
    if body.get("all_users") and body.get("team_id") is None:
        raise PlatformError(400, "all_users needs team_id")
    owner = scope_of(call, body)
    registry = call.core.sandboxes
    failed = []
    if ids is None:
        chosen = registry.select(owner, lambda record: record.live and _carries(record, labels))
    else:
        found = {sandbox_id: registry.find(sandbox_id) for sandbox_id in ids}
        chosen = [life for life in found.values() if life is not None]
        failed = [
            {"sandbox_id": sandbox_id, "error": "Sandbox not found"}
            for sandbox_id, life in found.items()
            if life is None
        ]
    await registry.delete(chosen)
    await call.core.saved()
    total = len(chosen) + len(failed)
    return Reply(
        {
            "succeeded": [life.record.id for life in chosen],
            "failed": failed,
            "message": f"Deleted {len(chosen)} of {total}",
        }
    )


async def batch_get_sandbox_statuses(call: Call) -> Reply:
    statuses: list[JsonObject] = []
    errors: list[JsonObject] = []
    for sandbox_id in call.body["sandbox_ids"]:
        life = call.core.sandboxes.find(sandbox_id)
        if life is None:
            error = {"code": "NOT_FOUND", "message": "Sandbox not found"}
            errors.append({"sandbox_id": sandbox_id, **error})
        else:
            statuses.append(life.record.to_status_wire())
    return Reply({"statuses": statuses, "errors": errors})


async def get_sandbox_logs(call: Call) -> Reply:
    return Reply({"logs": life_of(call).log})


async def get_sandbox_error_context(call: Call) -> Reply:
    record = life_of(call).record
    return Reply(
        {
            "status": record.status.value,
            "errorType": record.error_type,
            "errorMessage": record.error_message,
        }
    )


async def create_sandbox_auth_token(call: Call) -> Reply:
    record = call.core.sandboxes.running(call.parameters["sandbox_id"]).record
    return Reply(call.core.tokens.issue(record, call.gateway_url))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_sandbox,
        list_sandboxes,
        get_sandbox,
        delete_sandbox,
        bulk_delete_sandboxes,
        batch_get_sandbox_statuses,
        get_sandbox_logs,
        get_sandbox_error_context,
        create_sandbox_auth_token,
    )
}


def life_of(call: Call) -> SandboxLife:
    return call.core.sandboxes.get(call.parameters["sandbox_id"])


def _wire(call: Call, record: Sandbox) -> JsonObject:
    wire = record.to_wire()
    if call.assumptions.secrets == "masked":
        wire["secrets"] = dict.fromkeys(record.secrets, "***")
    return wire


def scope_of(call: Call, asked: JsonObject) -> Owner:
    """Return whose sandboxes are meant; there is only one user here to be allowed."""
    core = call.core
    if asked.get("user_id") not in (None, core.user_id):
        raise PlatformError(403, "Team admin required")
    return Owner(core.user_id, team_of(call, asked))


def team_of(call: Call, asked: JsonObject) -> str | None:
    team: str | None = asked.get("team_id")
    if team is None and call.assumptions.team_header == "honoured":
        team = call.request.headers.get("X-Prime-Team-ID") or None
    return team


def _carries(record: Sandbox, labels: Sequence[str]) -> bool:
    return all(label in record.labels for label in labels)
