"""What the documentation demands of a record, checked before its batch is sent.

The service checks more than this; what it refuses is a `ValidationRejectedError`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from prime_traces.errors import InvalidRecordError

if TYPE_CHECKING:
    from pydantic_core.core_schema import CoreSchema

__all__ = ["HALF", "LONG_INTEGER", "check_line", "is_encodable", "record_problem"]

Validate: TypeAlias = "Callable[[bytes], object]"

# A check takes several times the memory of the line. The service checks longer ones.
LONGEST_CHECKED = 8 * 1024 * 1024
HALF = "half a character (a lone surrogate), which UTF-8 has not"
LONG_INTEGER = "an integer of more than 4,300 digits; write it as text"
BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
LEGACY = (
    "it looks like a legacy sample (prompt, completion, reward), which the service does not take; "
    "upload the records that verifiers v1 writes"
)


def record_problem(record: object, line_format: str) -> str | None:
    """What is wrong with a record, or None."""
    if line_format == "prime_agent":
        return _session_problem(record)
    if not isinstance(record, Mapping):
        return f"it is no JSON object but a {type(record).__name__}"
    if line_format == "episode":
        return _episode_problem(record)
    return _trace_problem(record)


def _trace_problem(record: Mapping[str, object]) -> str | None:
    identity = record.get("id")
    timing = record.get("timing")
    start = timing.get("start") if isinstance(timing, Mapping) else None
    if isinstance(identity, str) and identity and _is_number(start):
        return None
    if "timing" not in record and isinstance(record.get("traces"), list):
        return "it looks like an episode; pass line_format=LineFormat.EPISODE"
    if "timing" not in record and "prompt" in record and "completion" in record:
        return LEGACY
    if not isinstance(identity, str) or not identity:
        return "id must be a string that is not empty"
    return "timing.start must be a finite number: seconds since 1970"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _episode_problem(record: Mapping[str, object]) -> str | None:
    traces = record.get("traces")
    if not isinstance(traces, (list, tuple)):
        if "timing" in record:
            return "it looks like a trace; pass line_format=LineFormat.TRACE"
        if "prompt" in record and "completion" in record:
            return LEGACY
        return "an episode needs traces, an array"
    identities: set[object] = set()
    for index, trace in enumerate(traces):
        if not isinstance(trace, Mapping):
            return f"traces[{index}] must be an object"
        problem = _trace_problem(trace)
        if problem is not None:
            return f"traces[{index}]: {problem}"
        if trace["id"] in identities:
            return f"traces[{index}]: the episode has another trace of the id {trace['id']!r}"
        identities.add(trace["id"])
    return None


def _session_problem(record: object) -> str | None:
    if not isinstance(record, (list, tuple)) or not record:
        return "a session is an array of its file's lines, header first"
    for index, line in enumerate(record):
        if not isinstance(line, Mapping):
            return f"[{index}] must be an object: each line of the session's file is one"
    return None


def check_line(line: bytes, *, line_format: str = "trace", line_number: int = 1) -> None:
    """Checks a line as it is uploaded; it costs a fraction of compressing it.

    Args:
        line: the line; one that is longer than 8 MiB is left to the service.
        line_format: what it holds.
        line_number: what to call it in an error.

    Raises:
        InvalidRecordError: it is no JSON in UTF-8, or lacks what the service demands.
    """
    if len(line) > LONGEST_CHECKED:
        return
    try:
        found = _validator(line_format)(line)
    except ValueError:
        pass
    else:
        doubtful = b"NaN" in line or b"Infinity" in line
        if not doubtful and not (line_format == "episode" and _has_doubles(found)):
            return
    # Something may be wrong. What it is only matters now, and so does who is stricter.
    if (problem := _line_problem(line, line_format)) is not None:
        raise InvalidRecordError(line_number, problem)


def _has_doubles(episode: Any) -> bool:
    identities = [trace["id"] for trace in episode["traces"]]
    return len(set(identities)) < len(identities)


def is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _line_problem(line: bytes, line_format: str) -> str | None:
    if line.startswith(BYTE_ORDER_MARKS):
        return "it begins with a byte order mark; save the file as UTF-8 without one"
    try:
        text = line.decode()
        if text.isspace() or not text:
            return "it is empty"
        record = json.loads(text, parse_constant=_no_constant, parse_int=_integer)
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} of the line is not UTF-8"
    except RecursionError:
        return None  # for the service to say
    except ValueError as error:
        return f"it is no JSON: {error}"
    return record_problem(record, line_format)


def _integer(digits: str) -> int | float:
    """A number; one that Python would not read is as good as any other here."""
    return int(digits) if len(digits) <= 4300 else float(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


@cache
def _validator(line_format: str) -> Validate:
    """Reads a line without making objects of what nobody looks at."""
    from pydantic_core import SchemaValidator, core_schema

    def typed_object(**fields: CoreSchema) -> CoreSchema:
        return core_schema.typed_dict_schema(
            {name: core_schema.typed_dict_field(schema) for name, schema in fields.items()},
            extra_behavior="ignore",
        )

    number = core_schema.float_schema(strict=True, allow_inf_nan=False)
    identity = core_schema.str_schema(strict=True, min_length=1)
    schema = typed_object(id=identity, timing=typed_object(start=number))
    if line_format == "episode":
        schema = typed_object(traces=core_schema.list_schema(schema))
    elif line_format == "prime_agent":
        schema = core_schema.list_schema(typed_object(), min_length=1)
    return SchemaValidator(schema).validate_json
