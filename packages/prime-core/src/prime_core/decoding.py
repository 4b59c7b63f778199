"""Answers as models: bytes go straight to pydantic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

from prime_core.calls import Body, Reader
from prime_core.errors import APIResponseError

__all__ = ["JSONObject", "NoBody", "model_reader", "read_object"]

M = TypeVar("M", bound=BaseModel)
JSONObject: TypeAlias = dict[str, Any]


class NoBody:
    """The body of an answer that has none."""

    async def read(self) -> bytes:
        return b""

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b""


def model_reader(response: type[M]) -> Reader[M]:
    async def read(status: int, body: Body) -> M:
        data = await body.read()
        try:
            return response.model_validate_json(data)
        except InvalidData as error:
            raise _unreadable(status, data, _first_problem(error)) from None

    return read


async def read_object(status: int, body: Body) -> JSONObject:
    """Reads any JSON object; nothing at all reads as an empty one."""
    text = await body.read()
    if not text.strip():
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(status, text, str(error)) from None
    if not isinstance(data, dict):
        raise _unreadable(status, text, f"expected a JSON object, got {type(data).__name__}")
    return data


def _first_problem(error: InvalidData) -> str:
    problem = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]


def _unreadable(status: int, body: bytes, why: str) -> APIResponseError:
    kind = "HTML" if body.lstrip()[:1] == b"<" else f"{len(body)} bytes"
    error = APIResponseError(f"HTTP {status} with an answer that can't be read ({kind}): {why}")
    error.status_code = status
    return error
