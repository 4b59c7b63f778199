"""Routes of the account: people, teams, keys, secrets, feedback."""

from __future__ import annotations

from prime_local.account.keys import KEY_LIMITS
from prime_local.account.service import Account
from prime_local.calls import Call, Handler, Reply
from prime_local.pods.routes import offset_page
from prime_local.sandboxes.record import Owner

# What the real platform's documentation shows; nothing here enforces most of it.
_ACCOUNT_LIMITS = {
    "sandbox_total_cpu_limit": 4096,
    "vm_sandbox_creation_burst_limit": 50,
    "vm_sandbox_limit": 1024,
    "vm_sandbox_gpu_limit": 0,
    "tunnel_limit": 32,
    "tunnel_creations_per_hour_limit": 256,
    "tunnel_ttl_hours": 168,
}


async def list_ssh_keys(call: Call) -> Reply:
    return Reply(offset_page(call, _account(call).ssh_keys.all(), lambda key: key.to_wire()))


async def upload_ssh_key(call: Call) -> Reply:
    key = _account(call).ssh_keys.add(call.body["name"], call.body["publicKey"])
    await call.core.saved()
    return Reply(key.to_wire())


async def set_primary_ssh_key(call: Call) -> Reply:
    if call.body.get("isPrimary"):
        _account(call).ssh_keys.make_primary(call.parameters["key_id"])
    await call.core.saved()
    return Reply({"message": "SSH key updated", "updated_fields": call.body})


async def delete_ssh_key(call: Call) -> Reply:
    _account(call).ssh_keys.delete(call.parameters["key_id"])
    await call.core.saved()
    return Reply({"message": "SSH key deleted"})


async def list_team_members(call: Call) -> Reply:
    team = _account(call).people.team(call.parameters["team_id"])
    return Reply(offset_page(call, team.members, lambda member: member.to_wire()))


async def list_my_teams(call: Call) -> Reply:
    teams = list(_account(call).people.teams.values())
    return Reply(offset_page(call, teams, lambda team: team.to_wire()))


async def get_whoami(call: Call) -> Reply:
    account = _account(call)
    _team_of(call, call.parameters.get("teamId"))
    key = call.api_key
    limits = dict.fromkeys(KEY_LIMITS.values(), None) | key.limits
    caller = {
        **account.people.to_wire(),
        "scope": key.permissions(),
        "account_limits": _ACCOUNT_LIMITS,
        "key_limits": limits,
    }
    return Reply({"data": caller, "status": "success"})


async def set_user_slug(call: Call) -> Reply:
    people = _account(call).people
    people.choose_slug(call.body["slug"])
    await call.core.saved()
    return Reply({"data": people.to_wire(), "status": "success"})


async def list_tokens(call: Call) -> Reply:
    return Reply(offset_page(call, _account(call).keys.all(), lambda key: key.to_wire()))


async def disable_token(call: Call) -> Reply:
    _account(call).keys.disable(call.parameters["token_id"])
    await call.core.saved()
    return Reply(b"", 204)


async def delete_token(call: Call) -> Reply:
    _account(call).keys.delete(call.parameters["token_id"])
    await call.core.saved()
    return Reply(b"", 204)


async def list_secrets(call: Call) -> Reply:
    found = _account(call).secrets.select(_team_of(call, call.parameters.get("teamId")))
    return Reply(offset_page(call, found, lambda secret: secret.to_wire()))


async def create_secret(call: Call) -> Reply:
    owner = Owner(call.core.user_id, _team_of(call, call.body.get("teamId")))
    secret = _account(call).secrets.create(call.body, owner)
    await call.core.saved()
    return Reply({"data": secret.to_wire(), "status": "success"})


async def get_secret(call: Call) -> Reply:
    team_id = _team_of(call, call.parameters.get("teamId"))
    secret = _account(call).secrets.get(call.parameters["secret_id"], team_id)
    return Reply({"data": secret.to_wire(), "status": "success"})


async def update_secret(call: Call) -> Reply:
    secrets = _account(call).secrets
    team_id = _team_of(call, call.parameters.get("teamId"))
    secret = secrets.get(call.parameters["secret_id"], team_id)
    secrets.update(secret, call.body)
    await call.core.saved()
    return Reply({"data": secret.to_wire(), "status": "success"})


async def delete_secret(call: Call) -> Reply:
    secrets = _account(call).secrets
    team_id = _team_of(call, call.parameters.get("teamId"))
    secrets.delete(secrets.get(call.parameters["secret_id"], team_id))
    await call.core.saved()
    return Reply({"message": "Secret deleted"})


async def submit_feedback(call: Call) -> Reply:
    return Reply({"message": "Feedback submitted"}, 201)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_ssh_keys,
        upload_ssh_key,
        set_primary_ssh_key,
        delete_ssh_key,
        list_team_members,
        list_my_teams,
        get_whoami,
        set_user_slug,
        list_tokens,
        disable_token,
        delete_token,
        list_secrets,
        create_secret,
        get_secret,
        update_secret,
        delete_secret,
        submit_feedback,
    )
}


def _account(call: Call) -> Account:
    return call.core.account


def _team_of(call: Call, team_id: str | None) -> str | None:
    """Return the team that a call is about; the caller belongs to it."""
    return None if not team_id else _account(call).people.team(team_id).id
