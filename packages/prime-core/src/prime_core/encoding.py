"""Requests as bytes and URLs."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from yarl import URL

from prime_core.operations import Operation

__all__ = ["Encoded", "Query", "join_url", "splice"]

Query: TypeAlias = "Mapping[str, str | float | bool | Sequence[str] | None]"


class Encoded(str):
    """A path parameter that is sent as it is, such as the rest of a presigned URL."""


def splice(body: bytes, fields: Mapping[str, str]) -> bytes:
    """Puts fields into the bytes of a JSON object without parsing it.

    The name ``outer.inner`` makes an object of one field.
    """
    head = ",".join([_field(name, value) for name, value in fields.items()])
    rest = body.lstrip()[1:].lstrip()
    return f"{{{head}{'' if rest.startswith(b'}') else ','}".encode() + rest


def _field(name: str, value: str) -> str:
    outer, dot, inner = name.partition(".")
    if dot:
        return f'"{outer}":{{"{inner}":{json.dumps(value)}}}'
    return f'"{name}":{json.dumps(value)}'


def join_url(
    base_url: str,
    operation: Operation,
    path: Mapping[str, str] | None,
    query: Query | None,
    root: str = "",
) -> URL:
    """The address of a call.

    Args:
        base_url: address of the service.
        operation: the row of the route.
        path: values of the path's parameters, unencoded.
        query: query parameters.
        root: the beginning of most paths, where it stands in ``base_url`` already.
    """
    text = operation.path
    if text.startswith(root + "/"):
        text = text[len(root) :]
    else:
        base_url = base_url.removesuffix(root)
    if path:
        text = text.format_map(
            {name: _segment(name, value, operation) for name, value in path.items()}
        )
    if query:
        pairs = [pair for name, value in query.items() for pair in _pairs(name, value)]
        if pairs:
            text = f"{text}?{urllib.parse.urlencode(pairs)}"
    return URL(base_url + text, encoded=True)


def _segment(name: str, value: str, operation: Operation) -> str:
    """A path parameter, percent-encoded; one that would change the route is refused."""
    if isinstance(value, Encoded):
        return value
    raw = name in operation.raw and isinstance(value, str)
    parts = value.split("/") if raw else [value]
    if not isinstance(value, str) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{operation.id} needs a {name}, not {value!r}")
    return urllib.parse.quote(value, safe="/" if raw else "")


def _pairs(name: str, value: str | float | bool | Sequence[str] | None) -> list[tuple[str, str]]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [(name, "true" if value else "false")]
    if isinstance(value, (str, int, float)):
        return [(name, str(value))]
    return [(name, item) for item in value]
