"""Metrics and summaries in the form that they travel in."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["metrics_line", "summary_values"]


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
