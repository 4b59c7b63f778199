"""The routes of the catalogue."""

from __future__ import annotations

import msgspec

from prime_local.calls import Call, Reply
from prime_local.contract.document import JsonObject
from prime_local.inference import catalogue
from prime_local.inference.calling import has_key, team_of
from prime_local.inference.requests import unknown_model


async def list_inference_models(call: Call) -> Reply:
    return _reply(call, {"object": "list", "data": await _entries(call)})


async def get_inference_model(call: Call) -> Reply:
    model_id = call.parameters["model_id"]
    for entry in await _entries(call):
        if entry["id"] == model_id:
            return _reply(call, entry)
    raise unknown_model(call, model_id)


def _reply(call: Call, body: JsonObject) -> Reply:
    """Return an answer, which is checked unless another server has a part in it."""
    own = call.core.inference.upstream is None
    return Reply(body if own else msgspec.json.encode(body))


async def _entries(call: Call) -> list[JsonObject]:
    """Return what the caller sees; an upstream server makes the text in place of our own."""
    models = catalogue.listed(team_of(call), authorized=has_key(call))
    upstream = call.core.inference.upstream
    if upstream is None:
        return [model.to_wire() for model in models]
    return await upstream.models() + [model.to_wire() for model in models if model.evaluates]
