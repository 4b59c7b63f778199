"""Requests as the bytes that are sent."""

from __future__ import annotations

import json

from prime_core.models import RequestBody, encode_request
from prime_inference.models import ChatCompletionRequest

__all__ = ["PATIENCE", "encode_chat", "encode_json"]

# Seconds for an answer: models that think can take minutes before they say a word.
PATIENCE = 600.0


def encode_chat(request: ChatCompletionRequest) -> bytes:
    """The body of a chat's request; what ``extra_body`` names wins."""
    extra = request.extra_body or {}
    if request.stream and request.stream_options is None and (request.usage or {}).get("include"):
        # Which of the two makes a stream end with totals is not documented; either may.
        options = {"include_usage": True}
        request = request.model_copy(update={"stream_options": options})
    body = encode_request(request, exclude={"extra_body", *extra})
    if not extra:
        return body
    rest = encode_json("extra_body", extra)[1:]
    return RequestBody((body[:-1] + b"," if len(body) > 2 else b"{") + rest)


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
