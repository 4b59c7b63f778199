"""Requests as the bytes that are sent."""

from __future__ import annotations

import json

from pydantic import BaseModel

from prime_core.models import RequestBody, encode_request
from prime_inference.models import ChatCompletionRequest

__all__ = ["PATIENCE", "check_model", "encode_chat", "encode_json"]

# Seconds for an answer: models that think can take minutes before they say a word.
PATIENCE = 600.0


def encode_chat(request: ChatCompletionRequest) -> bytes:
    """The body of a chat's request.

    Raises:
        ValueError: it holds what JSON has no form for; it names the place.
    """
    extra = request.extra_body or {}
    if request.stream and request.stream_options is None and (request.usage or {}).get("include"):
        # Which of the two makes a stream end with totals is not documented; either may.
        options = {"include_usage": True}
        request = request.model_copy(update={"stream_options": options})
    try:
        body = encode_request(request, exclude={"extra_body"})
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(_problem_of(request, error)) from None
    if not extra:
        return body
    rest = encode_json("extra_body", extra)[1:]
    return RequestBody((body[:-1] + b"," if len(body) > 2 else b"{") + rest)


def _problem_of(request: ChatCompletionRequest, error: Exception) -> str:
    """What can't be sent, by its place."""
    for name in sorted(request.model_fields_set - {"extra_body"}):
        value = getattr(request, name)
        items = enumerate(value) if isinstance(value, list) else [("", value)]
        for number, item in items:
            place = f"{name}.{number}".rstrip(".")
            try:
                encode_json(place, dict(item) if isinstance(item, BaseModel) else item)
            except ValueError as problem:
                return str(problem)
    return f"the request can't be sent as JSON: {error}"


def check_model(model: str) -> str:
    """A model's id, which may have slashes; what would change the route is refused."""
    parts = model.split("/") if isinstance(model, str) else [""]
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"model is an id such as z-ai/glm-5.3, not {model!r}")
    return model


def encode_json(name: str, value: object) -> bytes:
    """Something of the caller's as JSON.

    Args:
        name: what to call it in errors.
        value: what to encode.

    Raises:
        ValueError: it holds what JSON has no form for.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return RequestBody(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} can't be sent as JSON: {error}") from None
