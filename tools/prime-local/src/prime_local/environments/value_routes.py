"""Routes of environments' secrets and variables."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.control import team_of
from prime_local.environments.record import Value
from prime_local.environments.values import EnvironmentValues


async def list_environment_secrets(call: Call) -> Reply:
    return _list(call, "secret")


async def create_environment_secret(call: Call) -> Reply:
    return await _create(call, "secret")


async def update_environment_secret(call: Call) -> Reply:
    return await _update(call, _value(call, "secret"))


async def delete_environment_secret(call: Call) -> Reply:
    return await _delete(call, _value(call, "secret"))


async def link_environment_secret(call: Call) -> Reply:
    environment_id = _environment_id(call)
    secrets = call.core.account.secrets
    secret = secrets.get(call.parameters["global_secret_id"], team_of(call, {}))
    made = _values(call).link(environment_id, secret.id, secret.name)
    await call.core.saved()
    return Reply(
        {
            "data": {
                "id": made.id,
                "secretId": made.link,
                "secretName": made.name,
                "environmentId": environment_id,
                "createdAt": made.created_at,
            }
        }
    )


async def unlink_environment_secret(call: Call) -> Reply:
    _values(call).unlink(_environment_id(call), call.parameters["global_secret_id"])
    await call.core.saved()
    return Reply({})


async def list_environment_variables(call: Call) -> Reply:
    return _list(call, "variable")


async def create_environment_variable(call: Call) -> Reply:
    return await _create(call, "variable")


async def update_environment_variable(call: Call) -> Reply:
    return await _update(call, _value(call, "variable"))


async def delete_environment_variable(call: Call) -> Reply:
    return await _delete(call, _value(call, "variable"))


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_environment_secrets,
        create_environment_secret,
        update_environment_secret,
        delete_environment_secret,
        link_environment_secret,
        unlink_environment_secret,
        list_environment_variables,
        create_environment_variable,
        update_environment_variable,
        delete_environment_variable,
    )
}


def _values(call: Call) -> EnvironmentValues:
    return call.core.recording.environments.values


def _environment_id(call: Call) -> str:
    environments = call.core.recording.environments
    environment = environments.by_id(call.parameters["environment_id"])
    environments.check_owned(environment)
    return environment.id


def _value(call: Call, kind: str) -> Value:
    return _values(call).get(kind, _environment_id(call), call.parameters[f"{kind}_id"])


def _list(call: Call, kind: str) -> Reply:
    found = _values(call).all_of(kind, _environment_id(call))
    return Reply({"data": [each.to_wire() for each in found]})


async def _create(call: Call, kind: str) -> Reply:
    made = _values(call).create(kind, _environment_id(call), call.body)
    await call.core.saved()
    return Reply({"data": made.to_wire()})


async def _update(call: Call, value: Value) -> Reply:
    _values(call).update(value, call.body)
    await call.core.saved()
    return Reply({"data": value.to_wire()})


async def _delete(call: Call, value: Value) -> Reply:
    _values(call).delete(value)
    await call.core.saved()
    return Reply({})
