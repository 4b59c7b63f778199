"""Checks of arguments that several methods take."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["check_id", "check_ids", "check_seconds"]


def check_id(name: str, value: str) -> str:
    """An id that can be sent; a wrong one must not spoil the batch that it travels in."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    if not value or not value.isprintable():
        raise ValueError(f"{name} is an id, not {value!r}")
    return value


def check_ids(name: str, values: Sequence[str]) -> list[str]:
    """Ids without repeats; a lone string, whose letters would be taken for ids, is refused."""
    if isinstance(values, str):
        raise ValueError(f"{name} is a list of ids, not one string")
    return list(dict.fromkeys(check_id(name, value) for value in values))


def check_seconds(name: str, value: float) -> float:
    """A finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is a number of seconds above 0, not {value!r}")
    return value
