"""Records become lines, the same bytes with the extra `fast` as without it."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import json
import math
import uuid
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_traces import InvalidRecordError, RecordTypeError, SupportsToRecord
from prime_traces.records import _encode_standard, encode_record

TRACE = {"id": "tr-1", "timing": {"start": 1785600000.25}}
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
# Where the two notations part, and text that looks like their numbers.
EDGES = st.sampled_from(
    [1e-4, 9.999e-5, 1e-5, 1e-7, 5e-324, 1e15, 9999999999999998.0, 1e16, 1e22, 1e300, -0.0, -1e-9]
)
LOOKALIKES = st.sampled_from([",1e-7,", "[1e-7]", ":0.00001,", "1e16", "\u2028\x00\x1f\x7f\\"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | EDGES | st.text() | LOOKALIKES,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=12,
)


class Colour(enum.Enum):
    RED = "red"


class Name(str):
    pass


class Names(dict[str, Any]):
    def items(self) -> Any:
        return {"other": 1}.items()


@dataclasses.dataclass
class Point:
    x: int = 1


class Number(float):
    pass


def standard(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def test_the_tests_have_the_fast_extra() -> None:
    assert encode_record(TRACE) == standard(TRACE) + b"\n"
    assert orjson.dumps(1e-7) != b"1e-07"  # what makes the comparisons below worth it


@given(VALUES)
def test_values_are_written_as_the_standard_library_does(value: object) -> None:
    record = {**TRACE, "value": value}
    assert encode_record(record) == standard(record) + b"\n"


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        2**64,
        -(2**63) - 1,
        10**400,
        {2: "a", None: "b", True: "c", 1.5: "d"},
        (1, (2,)),
        Name("x"),
        {Name("x"): 1},
        Names(a=1),
        collections.OrderedDict(b=1, a=2),
        Number(1.5),
        Number(1e-7),
        True,
        [[[[]]]],
        "\ud7ff\U0001f642\u2028",
        [1e-7, ",1e-7,", ":0.00001,"],
        [1e-7, 1e-7, {"a": 1e16}],
    ],
    ids=repr,
)
def test_what_orjson_would_change_or_refuse_is_written_as_the_standard_library_does(
    value: object,
) -> None:
    record = {**TRACE, "value": value}
    assert encode_record(record) == standard(record) + b"\n"


def test_nesting_that_orjson_refuses_is_written() -> None:
    value: list[object] = []
    for _ in range(400):
        value = [value]
    record = {**TRACE, "value": value}
    assert encode_record(record) == standard(record) + b"\n"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (math.nan, "value is nan"),
        (-math.inf, "value is -inf"),
        ([{"loss": Number("nan")}], r"value\[0\].loss is nan"),
        ("\ud800", "value holds half a character"),
        ({"\udfff": 1}, "a key of value holds half a character"),
    ],
)
def test_what_json_has_not_is_refused_with_its_place(value: object, where: str) -> None:
    with pytest.raises(InvalidRecordError, match=f"line 7: {where}") as caught:
        encode_record({**TRACE, "value": value}, line_number=7)
    assert caught.value.line_number == 7
    assert not isinstance(caught.value, TypeError)
    with pytest.raises(ValueError):  # noqa: PT011  # what it stands for
        _encode_standard(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 1, 1),
        datetime.date(2026, 1, 1),
        uuid.UUID(int=1),
        Colour.RED,
        Point(),
        {1, 2},
        b"bytes",
        orjson.Fragment(b"1"),
        {Colour.RED: 1},
        {(1, 2): 3},
        {uuid.UUID(int=1): 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_are_refused_as_the_standard_library_does(value: object) -> None:
    with pytest.raises(RecordTypeError, match="value") as caught:
        encode_record({**TRACE, "value": [value]})
    assert isinstance(caught.value, TypeError)
    with pytest.raises(TypeError):
        _encode_standard(value)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_a_record_that_contains_itself_or_is_too_deep_is_refused(depth: int) -> None:
    value: list[object] = []
    top = value
    for _ in range(depth):
        inner: list[object] = []
        value.append(inner)
        value = inner
    value.append(top)
    with pytest.raises(InvalidRecordError, match="nested too deeply, or contains itself"):
        encode_record({**TRACE, "value": top})


class Rollout:
    def __init__(self, record: Any) -> None:
        self._record = record

    def to_record(self) -> Mapping[str, Any]:
        record: Mapping[str, Any] = self._record
        return record


def test_objects_give_their_record() -> None:
    assert isinstance(Rollout(TRACE), SupportsToRecord)
    assert encode_record(Rollout(TRACE)) == encode_record(TRACE)
    assert encode_record(collections.ChainMap(TRACE)) == encode_record(TRACE)


@pytest.mark.parametrize("record", [None, 1, "text", b"{}", [TRACE], Rollout([TRACE])])
def test_what_is_no_record_is_a_type_error_that_names_it(record: Any) -> None:
    with pytest.raises(TypeError, match="line 3: a record is a mapping"):
        encode_record(record, line_number=3)


SESSION = [{"type": "session", "id": "s"}, {"type": "message"}]


def test_an_agent_session_is_a_list_of_its_lines() -> None:
    assert json.loads(encode_record(SESSION, line_format="prime_agent")) == SESSION
    with pytest.raises(InvalidRecordError, match=r"\[1\] must be an object"):
        encode_record([SESSION[0], 2], line_format="prime_agent")
    with pytest.raises(InvalidRecordError, match="header first"):
        encode_record([], line_format="prime_agent")


@pytest.mark.parametrize(
    "value", [{1: 2, "1": 3}, {"true": 1, True: 2}, {"null": 1, None: 2}, {1.0: 1, "1.0": 2}]
)
def test_keys_that_are_one_in_json_are_refused(value: dict[object, object]) -> None:
    with pytest.raises(InvalidRecordError, match=r"value\[0\] has the key .* twice"):
        encode_record({**TRACE, "value": [value]})
    assert json.loads(encode_record({**TRACE, "value": [{1: 2, "2": 3}]}))["value"] == [
        {"1": 2, "2": 3}
    ]


def test_an_integer_that_python_does_not_write_is_named() -> None:
    encode_record({**TRACE, "value": 10**4299})
    with pytest.raises(InvalidRecordError, match="value is an integer of more than 4,300 digits"):
        encode_record({**TRACE, "value": 10**4300})
