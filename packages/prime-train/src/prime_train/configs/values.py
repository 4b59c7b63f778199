"""What a config is made of."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import TypeAlias, Union

__all__ = ["DISABLED", "KeyPath", "Table", "Value", "dotted", "look_up", "unsendable", "with_nulls"]

Scalar: TypeAlias = str | int | float | bool | datetime | date | time | None
Value: TypeAlias = Union[Scalar, "list[Value]", "Table"]
Table: TypeAlias = dict[str, Value]
KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys from the root down; an element of a list stands under its index."""

DISABLED = "None"
"""The string that switches a table or a value off, since TOML has no null."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: KeyPath) -> str:
    """A path as one writes it, such as ``orchestrator.train.source.0.name``."""
    return ".".join(
        str(part) if isinstance(part, int) or _BARE_KEY.fullmatch(part) else f'"{part}"'
        for part in path
    )


def look_up(value: Value, path: KeyPath) -> tuple[Value, int]:
    """Follow a path as far as it goes; return what is there, and how many parts led to it."""
    for steps, part in enumerate(path):
        if isinstance(value, dict) and isinstance(part, str) and part in value:
            value = value[part]
            continue
        if isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
            continue
        return value, steps
    return value, len(path)


def with_nulls(table: Mapping[str, Value]) -> Table:
    """A copy in which what ``"None"`` switches off is null."""
    return {key: _with_nulls(value) for key, value in table.items()}


def _with_nulls(value: Value) -> Value:
    if isinstance(value, dict):
        return with_nulls(value)
    if isinstance(value, list):
        return [_with_nulls(element) for element in value]
    return None if value == DISABLED else value


def _is_text(value: str) -> bool:
    """Whether a string has no lone surrogates, which JSON as UTF-8 can't hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def unsendable(value: Value, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield where a value holds what JSON can't, and what it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not _is_text(key):
                yield path, "has a key that is not Unicode text"
            yield from unsendable(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from unsendable(inner, (*path, index))
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, "a number that is not finite can't be sent"
    elif isinstance(value, (date, time)):
        yield path, "a date or time can't be sent; write it as a string"
    elif isinstance(value, str) and not _is_text(value):
        yield path, "is not Unicode text"
    elif not isinstance(value, (str, int, float, bool)) and value is not None:
        yield path, f"a {type(value).__name__} can't be sent"
