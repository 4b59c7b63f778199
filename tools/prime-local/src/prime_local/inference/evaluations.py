"""Evaluation models: typed questions, answered from hashes, so that the same ask gets the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from prime_local.calls import Call, Reply
from prime_local.contract.document import JsonObject
from prime_local.inference.calling import team_of
from prime_local.inference.catalogue import Model
from prime_local.inference.errors import refused
from prime_local.inference.questions import check_evaluation
from prime_local.inference.requests import find_model
from prime_local.inference.tally import BilledCall
from prime_local.inference.text import count_tokens

_DECIMALS = 4
_IMAGE_TOKENS = 256


async def create_inference_evaluation(call: Call) -> Reply:
    return _evaluate(call, call.body.get("model") if isinstance(call.body, dict) else None)


async def create_inference_evaluation_v4(call: Call) -> Reply:
    model_id = call.request.headers.get("ai-model-id")
    if isinstance(call.body, dict) and "model" in call.body:
        model_id = call.body["model"]
    return _evaluate(call, model_id)


def _evaluate(call: Call, model_id: object) -> Reply:
    if not isinstance(model_id, str) or not model_id:
        raise refused("model", "model must be the id of an evaluation model")
    model = find_model(call, model_id)
    if not model.evaluates:
        text = f"{model.id} is no evaluation model: use /chat/completions"
        raise refused("model", text, "unsupported_model")
    check_evaluation(call.body)
    with call.core.inference.under_way(team_of(call)):
        return Reply(_answer(call, model, call.body))


def _answer(call: Call, model: Model, body: JsonObject) -> JsonObject:
    questions, images = body["questions"], body.get("images", [])
    state = msgspec.json.encode([model.id, body["state"], images])
    seen = _tokens(body["state"]) + _IMAGE_TOKENS * len(images)
    # What is too long is cut without a word.
    tokens = min(seen, model.context or seen) + _tokens(questions)
    cost = model.cost(tokens, 0)
    billed = BilledCall(
        inference_id=call.inference_id,
        operation=call.operation.id,
        model=model.id,
        team_id=team_of(call),
        prompt_tokens=tokens,
        completion_tokens=0,
        cost_usd=float(cost),
    )
    call.core.inference.charge(billed, cost)
    digest = hashlib.sha256(state).digest()
    return {
        "answers": {name: _of(digest, name, asked) for name, asked in questions.items()},
        "usage": {"inputTokens": tokens, "outputTokens": 0},
        "warnings": [],
        "rounding": {"probabilityDecimals": _DECIMALS, "scoreDecimals": _DECIMALS},
    }


def _of(digest: bytes, name: str, question: JsonObject) -> JsonObject:
    """Return the answer to one question: a draw for each option, in proportion."""
    kind = question["type"]
    if kind == "boolean":
        chances = _chances(digest, name, ("true", "false"))
        return {"type": kind, "probability": chances["true"]}
    criteria = question["criteria"]
    if kind == "choice":
        chances = _chances(digest, name, criteria)
        choice = max(chances, key=chances.__getitem__)
        return {"type": kind, "choice": choice, "probabilities": chances}
    chances = _chances(digest, name, map(str, range(len(criteria))))
    mean = sum(int(level) * chance for level, chance in chances.items())
    return {"type": kind, "score": round(mean, _DECIMALS), "probabilities": chances}


def _chances(digest: bytes, name: str, options: Iterable[str]) -> dict[str, float]:
    """Return how likely each option is, rounded so that they add up to 1 exactly."""
    weights = {}
    for option in options:
        key = msgspec.json.encode([name, option])
        draw = hashlib.sha256(digest + key).digest()
        # The third power: one option stands out from many.
        weights[option] = (1 + int.from_bytes(draw[:4], "big")) ** 3
    scale = 10**_DECIMALS
    total = sum(weights.values())
    units = {option: weight * scale // total for option, weight in weights.items()}
    units[max(weights, key=weights.__getitem__)] += scale - sum(units.values())
    return {option: count / scale for option, count in units.items()}


def _tokens(value: object) -> int:
    return count_tokens(value if isinstance(value, str) else msgspec.json.encode(value).decode())
