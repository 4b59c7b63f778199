"""Metrics and summaries in the form that they travel in."""

from __future__ import annotations

import json
import math
import operator
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["check_mapping", "check_step", "metrics_line", "summary_values"]

# What the platform counts steps in.
MAX_STEP = 2**63 - 1


def check_mapping(name: str, values: object) -> None:
    """Raises a TypeError for figures that have no names."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{name} maps names to values; it is no {type(values).__name__}")


def check_step(step: object) -> int:
    """A training step, out of any kind of integer.

    Raises:
        TypeError: it is no integer.
        ValueError: it is below 0, or too large.
    """
    try:
        if isinstance(step, bool):
            raise TypeError
        number = operator.index(step)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"step is a whole number from 0 on, not {type(step).__name__}") from None
    if not 0 <= number <= MAX_STEP:
        raise ValueError(f"step is a whole number from 0 to {MAX_STEP}, unlike this one")
    return number


def metrics_line(values: Mapping[str, object], step: int | None) -> tuple[bytes, list[Exception]]:
    """A step's metrics as a line of JSON, with ``step`` and ``_timestamp``.

    Values that are not finite are left out.

    Returns:
        The line, and what is wrong with the values that had to be left out of it.
    """
    row: dict[str, object] = {}
    problems: list[Exception] = []
    for name, value in {**values, **({} if step is None else {"step": step})}.items():
        try:
            plain = _plain(str(name), value)
        except (TypeError, ValueError) as error:
            problems.append(error)
            continue
        if not (isinstance(plain, float) and not math.isfinite(plain)):
            row[str(name)] = plain
    row.setdefault("_timestamp", time.time())
    return _encode(row), problems


def summary_values(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Exception]]:
    """The values of a summary that JSON has a form for, and what is wrong with the others."""
    good: dict[str, Any] = {}
    problems: list[Exception] = []
    for name, value in values.items():
        try:
            plain = _plain(str(name), value) if hasattr(value, "item") else value
            _encode({str(name): plain})
        except (TypeError, ValueError, RecursionError) as error:
            problems.append(ValueError(f"summary: {name} has no form in JSON: {error}"))
        else:
            good[str(name)] = plain
    return good, problems


def _plain(name: str, value: object) -> bool | int | float | str | None:
    """A single value, also out of the array or tensor that holds it."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"metrics: {name} is a number or a text, not a {type(value).__name__}")


def _encode(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"
