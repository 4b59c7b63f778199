"""What an external run may record, checked before it is sent."""

from __future__ import annotations

import math
import operator
import os
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["PARQUET", "check_metrics", "check_parquet", "check_step"]

PARQUET = "application/parquet"
MAGIC = b"PAR1"


def check_step(step: int) -> int:
    """A training step, out of any kind of integer.

    Raises:
        TypeError: it is no integer.
        ValueError: it is below 0.
    """
    if isinstance(step, bool):
        raise TypeError("step is a whole number, not a bool")
    number = operator.index(step)
    if number < 0:
        raise ValueError(f"step is at least 0, not {number}")
    return number


def check_metrics(metrics: Mapping[str, Any], step: int) -> dict[str, Any]:
    """A step's row: its metrics, with ``step`` and ``_timestamp``.

    Raises:
        TypeError: metrics maps no names to values.
        ValueError: a value has no place in a row, or ``step`` is among them and another one.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics maps names to values; it is no {type(metrics).__name__}")
    number = check_step(step)
    row = {str(name): _single(str(name), value) for name, value in metrics.items()}
    if row.get("step", number) != number:
        raise ValueError(f"metrics has the step {row['step']}, not {number}")
    row["step"] = number
    row.setdefault("_timestamp", time.time())
    return row


def _single(name: str, value: object) -> bool | int | float | str | None:
    """A single value; a scalar of numpy or torch is taken out of its array."""
    if not isinstance(value, (bool, int, float, str, type(None))):
        item = getattr(value, "item", None)
        try:
            value = None if item is None else item()
        except (TypeError, ValueError, RuntimeError):
            value = item
        if item is None or not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"metrics: {name} is no single value")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"metrics: {name} is {value}; leave it out")
    return value


def check_parquet(parquet: str | os.PathLike[str] | bytes) -> None:
    """Makes sure that something can be a Parquet file: such a one begins and ends with its mark.

    Raises:
        OSError: it can't be read.
        TypeError: it is neither a path nor bytes.
        ValueError: it is none.
    """
    if isinstance(parquet, bytes):
        size, ends = len(parquet), (parquet[:4], parquet[-4:])
    elif isinstance(parquet, (str, os.PathLike)):
        with open(parquet, "rb") as file:
            first = file.read(len(MAGIC))
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(MAGIC)))
            ends = first, file.read(len(MAGIC))
    else:
        raise TypeError(f"parquet is a path or bytes, not {type(parquet).__name__}")
    if ends != (MAGIC, MAGIC) or size <= 2 * len(MAGIC):
        raise ValueError("parquet is no Parquet file")
