"""Reads the JSON bodies of requests."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from prime_local.inference.errors import InferenceError, refused

MAX_BODY_BYTES = 16 * 1024 * 1024


async def read_json(request: web.Request) -> Any:
    """Read a body; one that is too large is read to its end, so that its sender can learn why.

    Raises:
        InferenceError: 400 or 413.
    """
    data = await request.read()
    if len(data) > MAX_BODY_BYTES:
        raise InferenceError(
            413,
            f"The body is longer than {MAX_BODY_BYTES} bytes",
            kind="invalid_request_error",
            code="request_too_large",
        )
    try:
        # Unlike the standard library's, this decoder knows no NaN.
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise refused(None, "The body is not valid JSON", "invalid_json") from None
