"""What the service would refuse is named before it is sent, and what it takes passes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_traces import InvalidRecordError
from prime_traces.record_checks import LONGEST_CHECKED, check_line
from prime_traces.records import encode_record

TRACE = b'{"id":"tr-1","timing":{"start":1785600000.25}}'
EPISODE = b'{"id":"ep-1","traces":[%b]}'
SESSION = b'[{"type":"session","id":"s"},{"type":"message"}]'


@pytest.mark.parametrize(
    ("line", "form"),
    [
        (TRACE, "trace"),
        (TRACE + b"\r\n", "trace"),
        (b' { "timing" : {"start":1} , "id":"x" } \n', "trace"),
        (b'{"id":"x","timing":{"start":-1e9},"big":123456789012345678901234567890}', "trace"),
        (b'{"id":"x","timing":{"start":1},"text":"NaN and Infinity"}', "trace"),
        (b'{"id":"x","timing":{"start":1},"deep":' + b"[" * 300 + b"]" * 300 + b"}", "trace"),
        (b'{"id":"x","timing":{"start":1},"half":"\\ud800"}', "trace"),
        (b'{"id":"x","timing":{"start":1},"a":' + b"1" * 5000 + b"}", "trace"),
        (EPISODE % TRACE, "episode"),
        (EPISODE % b"", "episode"),
        (SESSION, "prime_agent"),
        (b"{" + b"x" * LONGEST_CHECKED, "trace"),
    ],
)
def test_what_the_documentation_demands_is_enough(line: bytes, form: str) -> None:
    check_line(line, line_format=form)


@pytest.mark.parametrize(
    ("line", "form", "reason"),
    [
        (b"\xef\xbb\xbf" + TRACE, "trace", "byte order mark"),
        (TRACE.decode().encode("utf-16"), "trace", "byte order mark"),
        (b'{"id":"\xff"}', "trace", "byte 8 of the line is not UTF-8"),
        (b'{"id":"x","timing":{"start":1},"a":"\xed\xa0\x80"}', "trace", "not UTF-8"),
        (b'{"id":"x","timing":{"start":NaN}}', "trace", "NaN is no number"),
        (b'{"id":"x","timing":{"start":1},"a":NaN}', "trace", "NaN is no number"),
        (b'{"id":"x","timing":{"start":1},"a":-Infinity}', "trace", "Infinity is no number"),
        (b"{not JSON", "trace", "no JSON"),
        (TRACE + TRACE, "trace", "no JSON"),
        (b"[1]", "trace", "no JSON object but a list"),
        (b'{"timing":{"start":1}}', "trace", "id must be a string"),
        (b'{"id":"","timing":{"start":1}}', "trace", "id must be a string"),
        (b'{"id":7,"timing":{"start":1}}', "trace", "id must be a string"),
        (b'{"id":"x"}', "trace", r"timing\.start must be a finite number"),
        (b'{"id":"x","timing":{"start":"1"}}', "trace", r"timing\.start must be"),
        (b'{"id":"x","timing":{"start":true}}', "trace", r"timing\.start must be"),
        (b'{"id":"x","timing":{"start":1e400}}', "trace", r"timing\.start must be"),
        (b'{"prompt":"p","completion":"c","reward":1.0}', "trace", "legacy sample"),
        (b'{"id":1,"prompt":"p","completion":"c","reward":1.0}', "episode", "legacy sample"),
        (EPISODE % TRACE, "trace", r"LineFormat\.EPISODE"),
        (TRACE, "episode", r"LineFormat\.TRACE"),
        (EPISODE % b'{"id":"x"}', "episode", r"traces\[0\]: timing\.start"),
        (EPISODE % (TRACE + b"," + TRACE), "episode", r"traces\[1\]: .* another trace of the id"),
        (b"", "trace", "it is empty"),
        (b"{" + b"1" * 5000, "trace", "no JSON: Expecting property"),
        (EPISODE % b"1", "episode", r"traces\[0\] must be an object"),
        (b'{"id":"x"}', "episode", "needs traces"),
        (TRACE, "prime_agent", "header first"),
        (b"[]", "prime_agent", "header first"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: bytes, form: str, reason: str) -> None:
    with pytest.raises(InvalidRecordError, match=f"^line 5: .*{reason}") as caught:
        check_line(line, line_format=form, line_number=5)
    assert caught.value.line_number == 5


TEXT = st.text(max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON | TEXT,
        "timing": JSON | st.fixed_dictionaries({"start": JSON | st.floats()}),
        "traces": JSON,
    },
)


@settings(max_examples=60)
@given(FIELDS)
def test_a_line_and_its_record_are_judged_alike(record: dict[str, object]) -> None:
    line = json.dumps(record).encode()
    assert refused_line(line) == refused_record(record)


def refused_line(line: bytes) -> bool:
    try:
        check_line(line)
    except InvalidRecordError:
        return True
    return False


def refused_record(record: dict[str, object]) -> bool:
    try:
        encode_record(record)
    except InvalidRecordError:
        return True
    return False
