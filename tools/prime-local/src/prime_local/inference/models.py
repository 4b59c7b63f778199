"""The routes of the catalogue."""

from __future__ import annotations

from prime_local.calls import Call, Reply
from prime_local.inference import catalogue
from prime_local.inference.requests import unknown_model


async def list_inference_models(call: Call) -> Reply:
    team_id, authorized = _caller(call)
    models = catalogue.listed(team_id, authorized=authorized)
    return Reply({"object": "list", "data": [model.to_wire() for model in models]})


async def get_inference_model(call: Call) -> Reply:
    model_id = call.parameters["model_id"]
    team_id, authorized = _caller(call)
    model = catalogue.find(model_id, team_id, authorized=authorized)
    if model is None:
        raise unknown_model(call, model_id)
    return Reply(model.to_wire())


def _caller(call: Call) -> tuple[str | None, bool]:
    headers = call.request.headers
    return headers.get("X-Prime-Team-ID") or None, "Authorization" in headers
