"""Routes of the Environments Hub."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.errors import not_simulated


async def resolve_environment(call: Call) -> Reply:
    environment, created = call.core.recording.environments.resolve(call.body)
    await call.core.saved()
    return Reply({"data": {**environment.identity(), "created": created}})


async def lookup_environment(call: Call) -> Reply:
    return Reply({"data": call.core.recording.environments.by_id(call.body["id"]).identity()})


async def get_environment(call: Call) -> Reply:
    environment = call.core.recording.environments.by_slug(
        call.parameters["owner"], call.parameters["name"]
    )
    if call.parameters["version"] != "latest":
        raise not_simulated("get_environment at another version than the latest")
    return Reply({"data": environment.to_wire()})


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (resolve_environment, lookup_environment, get_environment)
}
