"""The query parameters of a read route: what was given, checked, and as conditions of SQL."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prime_local.errors import PlatformError
from prime_local.traces.errors import traces_error
from prime_local.traces.sql import Where
from prime_local.traces.times import parse_time

# How the contract names the family of filters by an entry of an upload's context.
CONTEXT_FAMILY = "context.<key>"
_CONTEXT_PREFIX = "context."
_TIMES = frozenset({"created_after", "created_before", "created_at"})
# Excludes a cursor, so none that follows it can name it.
_START = "after"
# SQLite's integers.
_INTEGERS = range(-(2**63), 2**63)

_CONDITIONS = {
    "run_id": "run_id = ?",
    "environment_id": "environment_id = ?",
    "model_id": "model_id = ?",
    "model_provider": "model_provider = ?",
    "task_id": "task_id = ?",
    "outcome": "outcome = ?",
    "has_error": "has_error = ?",
    "is_truncated": "is_truncated = ?",
    "run_step": "run_step = ?",
    "step_min": "run_step >= ?",
    "step_max": "run_step <= ?",
    "reward_min": "reward >= ?",
    "reward_max": "reward <= ?",
    "created_after": "created_at >= ?",
    "created_before": "created_at < ?",
    "upload_id": "digest IN (SELECT value FROM json_each(?))",
}


@dataclass(frozen=True)
class Filters:
    """What a request asks for, apart from the page.

    Args:
        values: the parameters given or defaulted, by name; times in seconds.
        context: wanted entries of the upload's context.
    """

    values: Mapping[str, Any]
    context: Mapping[str, str]

    def get(self, name: str) -> Any:
        return self.values.get(name)

    @property
    def scope(self) -> list[object]:
        """What a cursor is bound to, as JSON values: the same for every spelling of it.

        Where the list began is not part of it: a cursor has a place of its own.
        """
        values = {
            name: sorted(set(value)) if isinstance(value, list) else value
            for name, value in self.values.items()
            if name != _START
        }
        return [values, dict(self.context)]

    def narrow(self, where: Where, names: Collection[str] = tuple(_CONDITIONS)) -> None:
        """Add the conditions on columns that were asked for, of those with these names."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                listed = isinstance(value, list)
                where.add(_CONDITIONS[name], json.dumps(value) if listed else value)

    def narrow_to_one_of(self, where: Where, name: str) -> None:
        """Add the condition that a column of this name has one of the values asked for, if any."""
        if self.values.get(name) is not None:
            wanted = json.dumps(self.values[name])
            where.add(f"{name} IN (SELECT value FROM json_each(?))", wanted)

    def narrow_context(self, where: Where) -> None:
        """Add the conditions on the upload's context."""
        for key, value in self.context.items():
            where.add(
                "EXISTS (SELECT 1 FROM json_each(context) AS entry"
                " WHERE entry.key = ? AND entry.value = ?)",
                key,
                value,
            )


def read_filters(
    declared: Collection[str], parameters: Mapping[str, Any], query: Sequence[tuple[str, str]]
) -> Filters:
    """Read what the contract's checks let through.

    Args:
        declared: names of the route's query parameters; `CONTEXT_FAMILY` if it has that.
        parameters: checked values by name, `limit` and `cursor` left out.
        query: the pairs that the request gave.

    Raises:
        PlatformError: 400 `invalid_filter` for what the checks do not see: an unknown or repeated
            name, a number or time out of range.
    """
    context: dict[str, str] = {}
    counts = Counter(name for name, _ in query)
    for name, value in query:
        if _is_context(name) and CONTEXT_FAMILY in declared:
            context[name[len(_CONTEXT_PREFIX) :]] = value
        elif name not in declared:
            raise invalid_filter(f"unknown parameter {name!r}")
        if counts[name] > 1 and not isinstance(parameters.get(name), list):
            raise invalid_filter(f"{name!r} is given {counts[name]} times")
    values = {name: _checked(name, value) for name, value in parameters.items()}
    return Filters({name: value for name, value in values.items() if value != []}, context)


def invalid_filter(message: str) -> PlatformError:
    return traces_error(400, "invalid_filter", message)


def _is_context(name: str) -> bool:
    return name.startswith(_CONTEXT_PREFIX) and name != _CONTEXT_PREFIX


def _checked(name: str, value: Any) -> Any:
    if name in _TIMES:
        try:
            return parse_time(value)
        except ValueError as error:
            raise invalid_filter(f"{name}: {error}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_filter(f"{name}: not a finite number")
    if isinstance(value, int) and value not in _INTEGERS:
        raise invalid_filter(f"{name}: out of range")
    return value
