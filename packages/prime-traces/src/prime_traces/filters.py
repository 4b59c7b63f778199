"""What traces, episodes and runs can be asked for by, checked before it is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict, get_args

from prime_core.encoding import Encoded
from prime_traces.models.runs import RunType
from prime_traces.models.search import SearchField

__all__ = [
    "CallFilters",
    "EpisodeFilters",
    "EpisodeTraceFilters",
    "Moment",
    "NodeFilters",
    "RunFilters",
    "SearchFilters",
    "SortKey",
    "TraceFilters",
    "check_query",
    "check_text",
    "check_wait",
    "filter_query",
    "path_segment",
    "walk_query",
]

Moment: TypeAlias = datetime | str
"""An aware datetime, or RFC 3339 text with an offset such as ``2026-08-01T16:00:00Z``."""

SortKey: TypeAlias = Literal["created_at", "reward", "duration_ms", "run_step"]
"""What a list of traces is sorted by, each with its highest first."""

MOST_PER_PAGE = 100
SHORTEST_QUERY = 3
LONGEST_QUERY = 256

_UPLOAD_ID = re.compile(r"[0-9a-f]{64}")
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[Tt ](?P<time>\d\d:\d\d:\d\d)(\.\d+)?(?P<offset>[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)

Value: TypeAlias = str | float | bool | list[str] | None


class _Paged(TypedDict, total=False):
    limit: int | None
    cursor: str | None


class _Dated(_Paged, total=False):
    created_after: Moment | None
    created_before: Moment | None


class EpisodeTraceFilters(_Dated, total=False):
    """What the traces of an episode can be asked for by; see `TracesClient.list`."""

    run_id: str | None
    environment_id: str | None
    model_id: str | None
    model_provider: str | None
    task_id: str | None
    reward_min: float | None
    reward_max: float | None
    outcome: str | None
    has_error: bool | None
    is_truncated: bool | None
    context: Mapping[str, str] | None


class TraceFilters(EpisodeTraceFilters, total=False):
    """What traces can be asked for by; see `TracesClient.list`."""

    upload_id: str | Sequence[str] | None
    sort: SortKey | None


class EpisodeFilters(_Dated, total=False):
    """What episodes can be asked for by; see `TracesClient.list_episodes`."""

    run_id: str | None
    upload_id: str | Sequence[str] | None
    environment_id: str | None
    outcome: str | None
    has_error: bool | None
    run_step: int | None
    step_min: int | None
    step_max: int | None
    context: Mapping[str, str] | None


class RunFilters(_Dated, total=False):
    """What runs can be asked for by; see `TracesClient.list_runs`."""

    run_type: RunType | Sequence[RunType] | None
    created_by: str | Sequence[str] | None


class NodeFilters(_Paged, total=False):
    """What the messages of a trace can be asked for by; see `TracesClient.list_nodes`."""

    role: str | Sequence[str] | None
    sampled: bool | None
    after: int | None


class CallFilters(_Paged, total=False):
    """What the model calls of a trace can be asked for by; see `TracesClient.list_calls`."""

    model: str | Sequence[str] | None
    finish_reason: str | Sequence[str] | None


class SearchFilters(_Paged, total=False):
    """What a search can be narrowed by; see `TracesClient.search`."""

    field: SearchField
    role: str | None
    run_step: int | None
    has_error: bool | None
    reward_min: float | None
    reward_max: float | None


def path_segment(name: str, value: str) -> str:
    """An id as a segment of a path.

    A lone ``.`` or ``..`` would name another route, so it is encoded, which the core leaves to us.

    Raises:
        TypeError: it is no string.
        ValueError: it is empty, holds a slash, or is no UTF-8 text.
    """
    if not check_text(name, value) or "/" in value:
        raise ValueError(f"{name} is an id without '/', not {value!r}")
    return Encoded(value.replace(".", "%2E")) if value in (".", "..") else value


def check_query(query: str) -> str:
    """A text that can be searched for: 3 to 256 code points, not all of them blank."""
    if not SHORTEST_QUERY <= len(check_text("query", query)) <= LONGEST_QUERY or query.isspace():
        raise ValueError(
            f"query is {SHORTEST_QUERY} to {LONGEST_QUERY} characters, not all of them blank; "
            f"this one has {len(query)}"
        )
    return query


def check_wait(wait_for_index: float | None) -> float | None:
    """Seconds to wait for an index: above 0, or None."""
    if wait_for_index is not None and not _number("wait_for_index", wait_for_index) > 0:
        raise ValueError(f"wait_for_index is a number of seconds above 0, not {wait_for_index!r}")
    return wait_for_index


def filter_query(**filters: object) -> dict[str, Value]:
    """The query parameters of filters, by their names in the API; None and [] leave one out.

    Raises:
        TypeError: a value is of another type than its filter's.
        ValueError: a value is none that its filter can have, or two exclude each other.
    """
    if filters.get("after") is not None and filters.get("cursor") is not None:
        raise ValueError("pass after or cursor, not both: a cursor knows its place")
    context = filters.pop("context", None)
    query = {
        name: _KINDS[name](name, value) for name, value in filters.items() if value is not None
    }
    if context is not None:
        query.update(_context(context))
    return query


def walk_query(allowed: type, filters: Mapping[str, object]) -> dict[str, Value]:
    """The query parameters of a walk over all pages; as `filter_query`, of the filters it has.

    Args:
        allowed: the typed dict of the filters that there are.
        filters: those that were given.
    """
    for name in filters:
        if name not in allowed.__annotations__:
            there_are = ", ".join(sorted(allowed.__annotations__))
            raise TypeError(f"there is no filter {name!r} here, only {there_are}")
    return filter_query(**filters)


def check_text(name: str, value: object) -> str:
    """A string that can be sent."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is UTF-8 text, not {value!r}") from None
    return value


def _texts(name: str, value: object) -> list[str] | None:
    """One string or several; none at all is as good as unset."""
    if isinstance(value, str):
        return [check_text(name, value)]
    if not isinstance(value, Sequence | set | frozenset):
        raise TypeError(f"{name} is a string or a list of them, not {type(value).__name__}")
    return [check_text(name, item) for item in value] or None


def _upload_ids(name: str, value: object) -> list[str] | None:
    ids = _texts(name, value)
    for upload_id in ids or ():
        if not _UPLOAD_ID.fullmatch(upload_id):
            raise ValueError(
                f"{name} is what a receipt names, 64 hexadecimal digits, not {upload_id!r}"
            )
    return ids


def _run_types(name: str, value: object) -> list[str] | None:
    types = _texts(name, value)
    return None if types is None else [_word(name, each, RunType) for each in types]


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number, not {type(value).__name__}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        finite = False
    if not finite:
        raise ValueError(f"{name} is a finite number, not {_short(value)}")
    return value


def _short(value: float) -> str:
    return repr(value) if isinstance(value, float) else f"an integer of {value.bit_length()} bits"


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {type(value).__name__}")
    return value


def _step(name: str, value: object) -> int:
    if _whole(name, value) < 0:
        raise ValueError(f"{name} is a training step, from 0, not {value!r}")
    return _whole(name, value)


def _limit(name: str, value: object) -> int:
    if not 1 <= _whole(name, value) <= MOST_PER_PAGE:
        raise ValueError(f"{name} is 1 to {MOST_PER_PAGE}, not {value!r}")
    return _whole(name, value)


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {type(value).__name__}")
    return value


def _moment(name: str, value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"{name} needs a time zone, such as tzinfo=timezone.utc: {value!r}")
        return value.isoformat()
    found = _MOMENT.fullmatch(check_text(name, value))
    try:
        if found is None:
            raise ValueError("another form")
        # Python 3.10 reads neither a Z nor fractions of any length.
        offset = found["offset"].upper().replace("Z", "+00:00")
        datetime.fromisoformat(f"{found['day']}T{found['time']}{offset}")
    except ValueError:
        raise ValueError(f"{name} is a time such as 2026-08-01T16:00:00Z, not {value!r}") from None
    return str(value)


def _word(name: str, value: object, words: object) -> str:
    allowed = get_args(words)
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
    return str(value)


def _sort_key(name: str, value: object) -> str:
    return _word(name, value, SortKey)


def _search_field(name: str, value: object) -> str:
    return _word(name, value, SearchField)


def _context(context: object) -> dict[str, Value]:
    """A parameter for each label."""
    if not isinstance(context, Mapping):
        raise TypeError(f"context maps labels to strings; it is no {type(context).__name__}")
    labels: dict[str, Value] = {}
    for label, value in context.items():
        if not check_text("a label of context", label):
            raise ValueError("a label of context is not empty")
        labels[f"context.{label}"] = check_text(f"context[{label!r}]", value)
    return labels


_KINDS: Mapping[str, Callable[[str, object], Value]] = {
    "after": _whole,
    "created_after": _moment,
    "created_at": _moment,
    "created_before": _moment,
    "created_by": _texts,
    "cursor": check_text,
    "environment_id": check_text,
    "field": _search_field,
    "finish_reason": _texts,
    "has_error": _flag,
    "is_truncated": _flag,
    "limit": _limit,
    "model": _texts,
    "model_id": check_text,
    "model_provider": check_text,
    "outcome": check_text,
    "reward_max": _number,
    "reward_min": _number,
    "role": _texts,
    "run_id": check_text,
    "run_step": _step,
    "run_type": _run_types,
    "sampled": _flag,
    "sort": _sort_key,
    "step_max": _whole,
    "step_min": _whole,
    "task_id": check_text,
    "upload_id": _upload_ids,
}
