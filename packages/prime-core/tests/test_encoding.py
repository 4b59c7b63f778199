"""Requests as bytes and URLs: nothing is lost, nothing is added."""

from __future__ import annotations

import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import READ, READ_ONE

from prime_core.encoding import Encoded, join_url, splice
from prime_core.operations import Operation

NAMES = st.text(min_size=1, max_size=10)
FIELDS = st.sampled_from(["team_id", "idempotency_key", "teamId"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", " ", "\n\t "])


@given(
    st.dictionaries(NAMES | FIELDS, VALUES, max_size=4),
    st.dictionaries(FIELDS, st.text(max_size=20), min_size=1, max_size=2),
    BLANKS,
    BLANKS,
    st.booleans(),
)
def test_fields_are_put_into_a_body_as_if_it_had_been_parsed(
    body: dict[str, object], fields: dict[str, str], before: str, after: str, ascii_only: bool
) -> None:
    text = before + json.dumps(body, ensure_ascii=ascii_only) + after
    text = text.replace("{", "{" + before, 1)
    # Of a name that is in both, the body's own counts: the caller said it.
    assert json.loads(splice(text.encode(), fields)) == {**fields, **body}


def test_a_body_keeps_its_bytes() -> None:
    assert splice(b'{"a":1.0}', {"k": "v"}) == b'{"k":"v","a":1.0}'
    assert splice(b"{}", {"k": "v"}) == b'{"k":"v"}'


@given(st.text(min_size=1, max_size=30).filter(lambda text: text not in (".", "..")))
def test_a_path_parameter_comes_back_as_one_segment(value: str) -> None:
    url = join_url("http://h", READ_ONE, {"thing_id": value}, None)
    segments = url.raw_path.split("/")
    assert segments[:4] == ["", "api", "v1", "thing"]
    assert urllib.parse.unquote(segments[4]) == value
    assert segments[5:] == ["part"]
    assert url.raw_query_string == ""
    assert url.host == "h"


def test_slashes_of_a_raw_parameter_stay_and_nothing_else_does() -> None:
    row = Operation("drop", "DELETE", "/images/{name}/{tag}", "safe", raw=frozenset({"name"}))
    url = join_url("http://h", row, {"name": "prime/a b?/c", "tag": "v/1"}, None)
    assert url.raw_path == "/images/prime/a%20b%3F/c/v%2F1"
    for name in ("", "a/", "/a", "a//b", "a/../b", "."):
        with pytest.raises(ValueError, match="drop needs a name"):
            join_url("http://h", row, {"name": name, "tag": "v1"}, None)


def test_what_is_encoded_already_is_sent_as_it_is() -> None:
    row = Operation("put", "PUT", "/{presigned}", "safe")
    url = join_url("http://h", row, {"presigned": Encoded("a/b%2Fc?sig=x%2By&z=1")}, None)
    assert str(url) == "http://h/a/b%2Fc?sig=x%2By&z=1"


NUMBERS = st.integers() | st.floats(allow_nan=False)


@given(st.dictionaries(NAMES, st.text(max_size=20) | NUMBERS | st.lists(NAMES, max_size=3)))
def test_a_query_comes_back_as_it_was(query: dict[str, str | float | list[str]]) -> None:
    url = join_url("http://h", READ, None, query)
    expected = [
        (name, item)
        for name, value in query.items()
        for item in (value if isinstance(value, list) else [str(value)])
    ]
    found = urllib.parse.parse_qsl(url.raw_query_string, keep_blank_values=True)
    assert found == expected
    assert url.raw_path == "/api/v1/thing"


def test_a_parameter_that_is_missing_is_noticed() -> None:
    with pytest.raises(KeyError):
        join_url("http://h", READ_ONE, {"other": "x"}, None)
