"""Filters: what they become, and what is refused before anything is sent."""

from __future__ import annotations

import math
import urllib.parse
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.encoding import join_url
from prime_core.operations import Operation
from prime_traces.filters import check_query, check_text, check_wait, filter_query, path_segment

UPLOAD = "0f" * 32
ONE = Operation("get_thing", "GET", "/things/{id}/part", "safe")


def test_a_filter_that_is_not_set_is_left_out() -> None:
    unset: dict[str, object] = {
        "run_id": None,
        "upload_id": [],
        "created_by": (),
        "role": set(),
        "context": {},
    }
    assert {name: v for name, v in filter_query(**unset).items() if v is not None} == {}


def test_filters_travel_as_the_platform_reads_them() -> None:
    moment = datetime(2026, 8, 1, 18, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
    query = filter_query(
        run_id="run-1",
        upload_id=UPLOAD,
        created_by=["usr-1", "usr-2"],
        reward_min=0.5,
        has_error=False,
        created_after=moment,
        created_before="2026-08-01T16:00:00.5Z",
        context={"source": "nightly", "a.b c": ""},
        run_type=["eval", "unknown"],
        sort="duration_ms",
        limit=100,
        run_step=0,
    )
    url = join_url("http://h", Operation("list", "GET", "/traces", "safe"), None, query)
    assert urllib.parse.parse_qsl(
        url.raw_query_string, keep_blank_values=True, strict_parsing=True
    ) == [
        ("run_id", "run-1"),
        ("upload_id", UPLOAD),
        ("created_by", "usr-1"),
        ("created_by", "usr-2"),
        ("reward_min", "0.5"),
        ("has_error", "false"),
        ("created_after", "2026-08-01T18:00:00.250000+02:00"),
        ("created_before", "2026-08-01T16:00:00.5Z"),
        ("run_type", "eval"),
        ("run_type", "unknown"),
        ("sort", "duration_ms"),
        ("limit", "100"),
        ("run_step", "0"),
        ("context.source", "nightly"),
        ("context.a.b c", ""),
    ]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("run_id", 5, "run_id is a string, not int"),
        ("run_id", "\ud800", "run_id is UTF-8 text"),
        ("upload_id", "sha256:" + UPLOAD, "upload_id is what a receipt names"),
        ("upload_id", [UPLOAD, UPLOAD.upper()], "upload_id is what a receipt names"),
        ("created_by", 7, "created_by is a string or a list of them"),
        ("created_by", b"usr", "created_by is a string, not int"),
        ("role", {"user": 1}, "role is a string or a list of them"),
        ("run_type", "evaluation", "run_type is one of eval, train, unknown"),
        ("reward_min", math.nan, "reward_min is a finite number"),
        ("reward_max", "1", "reward_max is a number, not str"),
        ("reward_max", True, "reward_max is a number, not bool"),
        ("has_error", 1, "has_error is True or False, not int"),
        ("sampled", "true", "sampled is True or False, not str"),
        ("created_after", datetime(2026, 8, 1), "created_after needs a time zone"),
        ("created_before", "2026-08-01", "created_before is a time such as"),
        ("created_before", "2026-08-01T16:00:00", "created_before is a time such as"),
        ("created_after", "2026-13-01T16:00:00Z", "created_after is a time such as"),
        ("created_after", "2026-02-30T16:00:00.123456789Z", "created_after is a time such as"),
        ("created_after", "2026-08-01T25:00:00z", "created_after is a time such as"),
        ("created_after", "2026-08-01T16:00:00+24:00", "created_after is a time such as"),
        ("reward_min", 10**400, "reward_min is a finite number, not an integer of 1329 bits"),
        ("created_at", 1785600000.25, "created_at is a string"),
        ("sort", "size_bytes", "sort is one of created_at, reward, duration_ms, run_step"),
        ("field", "name", "field is one of content, reasoning_content, tool_calls"),
        ("limit", 0, "limit is 1 to 100"),
        ("limit", 101, "limit is 1 to 100"),
        ("limit", 20.0, "limit is a whole number"),
        ("limit", True, "limit is a whole number"),
        ("run_step", -1, "run_step is a training step, from 0"),
        ("after", "3", "after is a whole number"),
        ("context", ["a"], "context maps labels to strings"),
        ("context", {"a": 1}, r"context\['a'\] is a string, not int"),
        ("context", {1: "a"}, "a label of context is a string"),
        ("context", {"": "a"}, "a label of context is not empty"),
    ],
)
def test_what_a_filter_cannot_be_is_refused_by_its_name(
    name: str, value: object, words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        filter_query(**{name: value})


def test_a_place_to_begin_and_a_cursor_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="after or cursor, not both"):
        filter_query(after=0, cursor="c")


@pytest.mark.parametrize("query", ["abc", "\N{GRINNING FACE}" * 256, " a "])
def test_a_query_is_measured_in_code_points(query: str) -> None:
    assert check_query(query) == query


@pytest.mark.parametrize("query", ["ab", "\N{GRINNING FACE}" * 2, "x" * 257, "   ", "", "\ud800ab"])
def test_a_query_that_the_platform_would_refuse_is_not_sent(query: str) -> None:
    with pytest.raises(ValueError, match="query is"):
        check_query(query)


@pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan, "5", True, 10**400])
def test_a_wait_has_an_end(seconds: float) -> None:
    with pytest.raises((TypeError, ValueError), match="wait_for_index is"):
        check_wait(seconds)


@given(st.text(min_size=1, max_size=20).filter(lambda text: "/" not in text))
def test_an_id_is_one_segment_whatever_it_holds(value: str) -> None:
    path = join_url("http://h", ONE, {"id": path_segment("trace_id", value)}, None).raw_path
    before, _, rest = path.removeprefix("/things").partition("/")
    segment, _, after = rest.partition("/")
    assert (before, urllib.parse.unquote(segment), after) == ("", value, "part")
    assert segment not in (".", "..")


@pytest.mark.parametrize("value", ["a/b", "/", "", "\ud800"])
def test_an_id_that_is_no_segment_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="trace_id is"):
        path_segment("trace_id", value)
    with pytest.raises(TypeError, match="trace_id is a string, not bytes"):
        check_text("trace_id", b"a")


@pytest.mark.parametrize(
    "text",
    [
        "2026-08-01T16:00:00.123456789Z",
        "2026-08-01t16:00:00z",
        "2024-02-29 23:59:59.5-11:30",
    ],
)
def test_a_time_of_any_precision_travels_as_it_is(text: str) -> None:
    assert filter_query(created_after=text) == {"created_after": text}
