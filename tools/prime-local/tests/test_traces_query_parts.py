"""Cursors, filters and times of the traces service, without a platform."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.errors import PlatformError
from prime_local.traces.cursors import make_cursor, read_cursor
from prime_local.traces.filters import CONTEXT_FAMILY, read_filters
from prime_local.traces.times import format_time, parse_time

DECLARED = ("run_id", "limit", "reward_min", "created_after", "upload_id", "after", CONTEXT_FAMILY)
POSITIONS = st.lists(st.none() | st.integers() | st.floats(allow_nan=False) | st.text(), min_size=1)
SCOPES = st.lists(st.none() | st.text() | st.dictionaries(st.text(), st.integers() | st.booleans()))


@given(SCOPES, POSITIONS)
def test_a_cursor_gives_its_position_back(scope: list[object], position: list[object]) -> None:
    assert read_cursor(scope, make_cursor(scope, position)) == position


@given(SCOPES, SCOPES, POSITIONS)
def test_a_cursor_of_another_query_is_refused(
    scope: list[object], other: list[object], position: list[object]
) -> None:
    cursor = make_cursor([*scope, 1], position)
    with pytest.raises(ValueError, match="does not match"):
        read_cursor([*other, 2], cursor)


@given(st.text())
def test_junk_is_no_cursor(junk: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        read_cursor(["list_traces"], junk)


@given(POSITIONS, st.data())
def test_a_cursor_that_was_touched_is_refused(position: list[object], data: Any) -> None:
    cursor = make_cursor([], position)
    # The last character may hold bits that mean nothing.
    place = data.draw(st.integers(0, len(cursor) - 2))
    letter = "A" if cursor[place] != "A" else "B"
    with pytest.raises(ValueError, match="does not match"):
        read_cursor([], cursor[:place] + letter + cursor[place + 1 :])


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 2),
        max_value=datetime(2200, 1, 1),
        timezones=st.just(timezone.utc),
    )
)
def test_a_time_is_the_same_after_a_round_trip(moment: datetime) -> None:
    seconds = round(moment.timestamp(), 6)
    assert parse_time(format_time(seconds)) == seconds
    assert parse_time(moment.isoformat()) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01t00:00:01.5z", 1.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:00:00.0000019Z", 0.000001),
        ("0001-01-01T00:00:00Z", -62135596800.0),
    ],
)
def test_times_are_read_in_every_form_of_the_standard(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-11-30", "2026-11-30T00:00:00", "2026-13-01T00:00:00Z", "1"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|month"):
        parse_time(text)


def test_context_filters_are_a_family_of_names() -> None:
    filters = read_filters(
        DECLARED, {}, [("context.source", "nightly"), ("context.a.b", ""), ("context.ä", "ö")]
    )
    assert filters.context == {"source": "nightly", "a.b": "", "ä": "ö"}


@pytest.mark.parametrize(
    ("values", "query"),
    [
        ({}, [("colour", "red")]),
        ({}, [("context.", "x")]),
        ({}, [("context", "x")]),
        ({"run_id": "b"}, [("run_id", "a"), ("run_id", "b")]),
        ({}, [("context.a", "x"), ("context.a", "y")]),
        ({"reward_min": float("inf")}, [("reward_min", "inf")]),
        ({"after": 2**63}, [("after", str(2**63))]),
        ({"created_after": "2026-02-30T00:00:00Z"}, [("created_after", "2026-02-30T00:00:00Z")]),
    ],
)
def test_parameters_that_would_be_lost_or_cannot_be_meant_are_refused(
    values: dict[str, Any], query: list[tuple[str, str]]
) -> None:
    with pytest.raises(PlatformError) as raised:
        read_filters(DECLARED, values, query)
    assert (raised.value.status, raised.value.code) == (400, "invalid_filter")


def test_two_spellings_of_a_request_share_their_cursors() -> None:
    def scope(created: str, uploads: list[str]) -> list[object]:
        return read_filters(DECLARED, {"created_after": created, "upload_id": uploads}, []).scope

    one = scope("2026-11-30T01:00:00+01:00", ["a", "b"])
    assert one == scope("2026-11-30T00:00:00.000Z", ["b", "a", "a"])
    assert one != scope("2026-11-30T00:00:01Z", ["a", "b"])


def test_a_list_that_is_empty_is_no_filter() -> None:
    assert read_filters(DECLARED, {"upload_id": []}, []).values == {}
