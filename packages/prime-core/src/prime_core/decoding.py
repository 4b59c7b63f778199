"""Answers as models: bytes go straight to pydantic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

from prime_core.calls import Body, Reader
from prime_core.errors import APIResponseError
from prime_core.outcomes import HeldError, holds_error
from prime_core.repairs import repaired

__all__ = ["JSONObject", "NoBody", "model_reader", "read_object", "read_whole"]

M = TypeVar("M", bound=BaseModel)
JSONObject: TypeAlias = dict[str, Any]


MAX_ANSWER = 256 * 1024 * 1024


class NoBody:
    """The body of an answer that has none."""

    async def read(self) -> bytes:
        return b""

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield b""


def model_reader(response: type[M]) -> Reader[M]:
    """Makes what reads an answer as a model; see ``ResponseModel.essential``."""
    paid = getattr(response, "essential", None) is not None

    async def read(status: int, body: Body) -> M:
        data = await read_whole(body.iter_any())
        if paid and holds_error(data):
            raise HeldError(data)
        try:
            return response.model_validate_json(data)
        except InvalidData as error:
            mended = repaired(response, data.decode("utf-8", "replace"))
            if mended is not None:
                return mended
            raise _unreadable(status, data, _first_problem(error)) from None

    return read


async def read_object(status: int, body: Body) -> JSONObject:
    """Reads any JSON object; nothing at all reads as an empty one."""
    text = await read_whole(body.iter_any())
    if not text.strip():
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(status, text, str(error)) from None
    if not isinstance(data, dict):
        raise _unreadable(status, text, f"expected a JSON object, got {type(data).__name__}")
    return data


async def read_whole(body: AsyncIterable[bytes], most: int = MAX_ANSWER) -> bytes:
    """The whole body of an answer, up to a size; by default one that none of the platform's has."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in body:
        chunks.append(chunk)
        size += len(chunk)
        if size > most:
            raise APIResponseError(f"The answer is larger than {most >> 20} MiB.")
    return b"".join(chunks)


def _first_problem(error: InvalidData) -> str:
    problem = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"{where}: {problem['msg']}" if where else problem["msg"]


def _unreadable(status: int, body: bytes, why: str) -> APIResponseError:
    html = body.lstrip()[:1] == b"<"
    kind = "HTML; check the base URL" if html else f"{len(body)} bytes"
    error = APIResponseError(f"HTTP {status} with an answer that can't be read ({kind}): {why}")
    error.status_code = status
    return error
