"""Records as JSON values, for the storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


def to_row(record: DataclassInstance) -> dict[str, Any]:
    """Return a record of plain values and dates as JSON values."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(record).items()
    }


def from_row(kind: type[R], row: Mapping[str, Any]) -> R:
    """Return the record that `to_row` wrote; names of its dates end in `_at`."""
    dates = [field.name for field in fields(kind) if field.name.endswith("_at")]
    values = {name: row[name] and datetime.fromisoformat(row[name]) for name in dates}
    return kind(**{**row, **values})
