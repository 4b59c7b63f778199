"""Records as the lines that are uploaded.

With orjson, from the extra ``fast``, they are made several times faster. The bytes are those of the
standard library in any case, since the key of an upload is made of them: a batch that was uploaded
without it must not be stored again with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import re
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias, runtime_checkable

from prime_traces.errors import InvalidRecordError, RecordTypeError
from prime_traces.record_checks import HALF, LONG_INTEGER, is_encodable, record_problem

__all__ = ["Records", "SupportsToRecord", "TraceRecord", "encode_record", "load_encoder"]


@runtime_checkable
class SupportsToRecord(Protocol):
    """An object that gives its record, such as the traces and episodes of verifiers."""

    def to_record(self) -> Mapping[str, Any]:
        """The record, as it is uploaded."""


TraceRecord: TypeAlias = Mapping[str, Any] | SupportsToRecord
Records: TypeAlias = Iterable[TraceRecord] | AsyncIterable[TraceRecord]

Encode: TypeAlias = "Callable[[object], bytes]"

DEEPEST = 500
# Python writes no integer of more digits.
LONG = 10**4300
_STANDARD = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
# What orjson writes as the standard library does, as long as the numbers are ordinary.
_PLAIN = frozenset({dict, list, str, int, float, bool, type(None)})
# The numbers that orjson writes in another notation; in compact JSON nothing else looks like this,
# but text may.
_SCIENTIFIC = re.compile(rb"(?<=[\[,:])-?(?:0\.0000[0-9]+|[0-9.]+e[-+]?[0-9]+)(?=[\],}])")


def encode_record(
    record: TraceRecord | Sequence[Any], *, line_format: str = "trace", line_number: int = 1
) -> bytes:
    """A record as a line: compact JSON in UTF-8, and a line feed.

    Args:
        record: a mapping, or an object whose ``to_record()`` gives one; for ``prime_agent`` the
            list of the session's lines, header first.
        line_format: what it is.
        line_number: what to call it in an error.

    Raises:
        InvalidRecordError: it lacks what the service demands, or holds NaN, an infinity or half a
            character.
        RecordTypeError: a TypeError, too: it is none of these, or holds what JSON can't.
    """
    plain = _plain(record, line_format, line_number)
    if (problem := record_problem(plain, line_format)) is not None:
        raise InvalidRecordError(line_number, problem)
    try:
        return _encoder()(plain) + b"\n"
    except TypeError:
        raise RecordTypeError(line_number, _unwritable(plain)) from None
    except (ValueError, RecursionError) as error:  # a Unicode error is a ValueError
        raise InvalidRecordError(line_number, _unwritable(plain, error)) from None


def _plain(record: object, line_format: str, line_number: int) -> object:
    """What is encoded: a dict, or a list of a session's lines."""
    if not isinstance(record, (Mapping, list, tuple)) and isinstance(record, SupportsToRecord):
        given = f"to_record() of {type(record).__name__} gave"
        record = record.to_record()
    else:
        given = "it is"
    if isinstance(record, Mapping):
        return record if isinstance(record, dict) else dict(record)
    if line_format == "prime_agent" and isinstance(record, (list, tuple)):
        return record
    raise RecordTypeError(
        line_number,
        f"a record is a mapping or has to_record(), which gives one; {given} "
        f"{type(record).__name__}",
    )


def load_encoder() -> None:
    """Imports what encodes; a fork in the middle of an import in a thread hangs the child."""
    _encoder()


@cache
def _encoder() -> Encode:
    try:
        orjson = importlib.import_module("orjson")
    except ImportError:
        return _encode_standard
    options = (
        orjson.OPT_PASSTHROUGH_SUBCLASS
        | orjson.OPT_PASSTHROUGH_DATACLASS
        | orjson.OPT_PASSTHROUGH_DATETIME
    )
    dumps: Callable[..., bytes] = orjson.dumps

    def encode(record: object) -> bytes:
        try:
            data = dumps(record, None, options)
        except TypeError:  # also of what is nested deeply, too large an integer, half a character
            return _encode_standard(record)
        return _as_standard(record, data) or _encode_standard(record)

    return encode


def _encode_standard(record: object) -> bytes:
    data = _STANDARD.encode(record).encode()
    # What was encoded is a finite tree.
    level = [record]
    while level:
        following: list[object] = []
        for value in level:
            if isinstance(value, dict):
                if _doubled_key(value) is not None:
                    raise ValueError
                following += value.values()
            elif isinstance(value, (list, tuple)):
                following += value
        level = following
    return data


def _doubled_key(value: dict[Any, Any]) -> str | None:
    """A key that JSON, whose keys are text, would have twice, such as 1 and "1"."""
    if set(map(type, value)) <= {str}:
        return None
    seen: set[str] = set()
    for key in value:
        text = key if isinstance(key, str) else json.dumps(key)
        if text in seen:
            return repr(text)
        seen.add(text)
    return None


def _as_standard(record: object, data: bytes) -> bytes | None:
    """What orjson wrote, in the standard library's notation; None if it is to write it itself."""
    unusual = 0
    # A record that orjson has written is a finite tree. Level by level in C, since a walk through
    # each value costs more than orjson does.
    level = [record]
    while level:
        kinds = set(map(type, level))
        if not kinds <= _PLAIN:
            return None
        if float in kinds:
            for value in level:
                if type(value) is float and not (
                    1e-4 <= value < 1e16 or -1e16 < value <= -1e-4 or value == 0.0
                ):
                    if not math.isfinite(value):
                        return None
                    unusual += 1
        level = gc.get_referents(*level)
    if not unusual:
        return data
    # As many as there are such numbers: none of them is text.
    rewritten, found = _SCIENTIFIC.subn(lambda match: repr(float(match[0])).encode(), data)
    return rewritten if found == unusual else None


def _unwritable(record: object, error: Exception | None = None) -> str:
    """Why a record can't be written as JSON, and where."""
    try:
        problem = _problem(record, "", 0)
    except RecursionError:
        return "it is nested too deeply, or contains itself"
    return problem or (str(error) if error is not None else "it holds something that JSON has not")


def _problem(value: object, path: str, depth: int) -> str | None:
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, (str, int, float, type(None))):
                return f"a key of {path or 'it'} is a {type(key).__name__}, which JSON has not"
            if isinstance(key, str) and not is_encodable(key):
                return f"a key of {path or 'it'} holds {HALF}"
            problem = _problem(inner, f"{path}.{key}" if path else str(key), depth + 1)
            if problem is not None:
                return problem
        if (doubled := _doubled_key(value)) is not None:
            return f"{path or 'it'} has the key {doubled} twice, once as text"
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            if (problem := _problem(inner, f"{path}[{index}]", depth + 1)) is not None:
                return problem
    elif isinstance(value, str):
        return None if is_encodable(value) else f"{path} holds {HALF}"
    elif isinstance(value, float):
        if not math.isfinite(value):
            return f"{path} is {value!r}, which JSON has not; leave it out, or write null"
    elif isinstance(value, int):
        return f"{path} is {LONG_INTEGER}" if abs(value) >= LONG else None
    elif value is not None:
        return f"{path} is a {type(value).__name__}, which JSON has not"
    return None
