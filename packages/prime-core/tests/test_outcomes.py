"""What an error answer means: its class, its text, and what it allows."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.errors import (
    APIError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
    UnauthorizedError,
    ValidationError,
)
from prime_core.outcomes import Failure, Outcome, error_of, parse_retry_after

NOW = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC


def failure(
    status: int,
    body: object = b"",
    *,
    reason: str | None = None,
    retry_after: float | None = None,
) -> Failure:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_of(status, data, reason=reason, retry_after=retry_after, request_id="r-1")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("0.001", 0.001),
        ("-3", 0.0),
        ("-0.5", 0.0),
        ("Fri, 15 Jan 2027 08:01:30 GMT", 90.0),
        ("Fri, 15 Jan 2027 08:01:30 -0000", 90.0),
        ("Fri, 15 Jan 2027 09:01:30 +0100", 90.0),
        ("Friday, 15-Jan-27 08:01:30 GMT", 90.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("999999999", 86_400.0),
        ("9" * 400, 86_400.0),
    ],
)
def test_a_time_to_wait_is_read_in_each_of_its_forms(text: str, seconds: float) -> None:
    assert parse_retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    "text", [None, "", "soon", "1e5", "inf", "nan", "1.", "Fri, 99 Foo 2027 08:00:00 GMT", "1,5"]
)
def test_a_time_to_wait_that_cannot_be_read_is_none(text: str | None) -> None:
    assert parse_retry_after(text, NOW) is None


def test_a_date_to_wait_for_counts_from_now() -> None:
    date = datetime.now(timezone.utc) + timedelta(seconds=60)
    seconds = parse_retry_after(format_datetime(date, usegmt=True))
    assert seconds is not None
    assert 57 < seconds <= 60


@given(st.decimals(0, 200_000, places=3))
def test_seconds_to_wait_are_read_with_their_fraction_and_cut_to_a_day(seconds: Decimal) -> None:
    assert parse_retry_after(f"{seconds}", NOW) == min(float(seconds), 86_400.0)
    assert parse_retry_after(f"-{seconds}", NOW) == 0.0
    assert parse_retry_after(f"{seconds:.0f}", NOW) == min(float(f"{seconds:.0f}"), 86_400.0)


@given(st.integers(-400_000, 400_000), st.integers(-23, 23))
def test_a_date_to_wait_for_is_read_in_each_of_its_spellings(ahead: int, hours: int) -> None:
    date = datetime.fromtimestamp(NOW + ahead, timezone.utc)
    elsewhere = date.astimezone(timezone(timedelta(hours=hours)))
    spellings = [
        format_datetime(date, usegmt=True),
        format_datetime(date.replace(tzinfo=None)),  # "-0000"
        format_datetime(elsewhere),
        date.strftime("%A, %d-%b-%y %H:%M:%S GMT"),  # RFC 850
        date.strftime("%a %b %e %H:%M:%S %Y"),  # asctime
    ]
    for text in spellings:
        assert parse_retry_after(text, NOW) == min(max(ahead, 0), 86_400), text


@given(st.text(max_size=40) | st.from_regex(r"-?[0-9]{1,400}(\.[0-9]{1,400})?", fullmatch=True))
def test_any_time_to_wait_is_none_or_within_a_day(text: str) -> None:
    seconds = parse_retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= 86_400


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequestError),
        (401, UnauthorizedError),
        (402, PaymentRequiredError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (405, APIError),
        (409, ConflictError),
        (418, APIError),
        (422, ValidationError),
        (429, RateLimitError),
        (500, ServerError),
        (503, ServerError),
        (599, ServerError),
    ],
)
def test_each_status_has_its_class(status: int, kind: type[APIError]) -> None:
    error = failure(status, {"detail": "why"}, retry_after=3.0).error
    assert type(error) is kind
    assert (error.status_code, error.request_id, error.retry_after) == (status, "r-1", 3.0)
    assert f"HTTP {status}: why" in str(error)


@pytest.mark.parametrize(
    ("status", "retry_after", "outcome"),
    [
        (304, None, Outcome.FINAL),
        (400, None, Outcome.FINAL),
        (404, 5.0, Outcome.FINAL),
        (408, None, Outcome.AMBIGUOUS),
        (422, None, Outcome.FINAL),
        (429, None, Outcome.REFUSED),
        (429, 0.0, Outcome.REFUSED),
        (500, 5.0, Outcome.AMBIGUOUS),
        (501, None, Outcome.FINAL),
        (502, None, Outcome.AMBIGUOUS),
        (503, None, Outcome.AMBIGUOUS),
        (503, 0.0, Outcome.REFUSED),
        (504, None, Outcome.AMBIGUOUS),
        (524, None, Outcome.AMBIGUOUS),
    ],
)
def test_a_status_says_whether_the_request_had_an_effect(
    status: int, retry_after: float | None, outcome: Outcome
) -> None:
    assert failure(status, {"detail": "x"}, retry_after=retry_after).outcome is outcome


@pytest.mark.parametrize(
    ("body", "quota"),
    [
        ({"detail": "Sandbox limit reached"}, True),
        ({"detail": "The limit has been exceeded for this team"}, True),
        ({"detail": "You have the maximum number of tunnels"}, True),
        ({"detail": "Your quota is used up"}, True),
        ({"error": {"code": "insufficient_quota", "message": "pay"}}, True),
        ({"code": "quota_exceeded"}, True),
        ({"detail": "Rate limit exceeded"}, False),
        ({"detail": "rate-limit reached: too fast"}, False),
        ({"detail": "Too many requests, quota per minute"}, False),
        ({"detail": "slow down"}, False),
        (b"", False),
        (b"<html>429</html>", False),
    ],
)
@pytest.mark.parametrize("retry_after", [None, 2.0])
def test_only_a_429_that_no_waiting_cures_is_a_quota(
    body: object, quota: bool, retry_after: float | None
) -> None:
    # With a time to wait the platform says itself that waiting helps.
    found = failure(429, body, retry_after=retry_after)
    final = quota and retry_after is None
    assert type(found.error) is (QuotaExceededError if final else RateLimitError)
    assert found.outcome is (Outcome.FINAL if final else Outcome.REFUSED)
    assert found.throttled is not final


def test_a_quota_text_beside_another_status_is_no_quota() -> None:
    found = failure(400, {"detail": "limit reached"})
    assert type(found.error) is BadRequestError


@pytest.mark.parametrize(
    ("status", "body", "unavailable"),
    [
        (502, b"", True),
        (503, b"<html>busy</html>", True),
        (504, {"detail": "late"}, True),
        (500, b"", False),
        (503, {"error": "sandbox_busy", "message": "m"}, False),
        (429, b"", False),
        (404, b"", False),
    ],
)
def test_only_a_gateway_without_a_code_of_its_own_looks_like_an_outage(
    status: int, body: object, unavailable: bool
) -> None:
    assert failure(status, body).unavailable is unavailable


@pytest.mark.parametrize("code", ["sandbox_not_found", "sandbox_terminated"])
def test_a_gateway_that_says_that_a_sandbox_is_gone_is_final(code: str) -> None:
    found = failure(502, {"error": code, "message": "no such sandbox"})
    assert found.outcome is Outcome.FINAL
    assert found.error.code == code


@pytest.mark.parametrize(
    "body",
    [
        {
            "detail": [
                {"loc": ["body", "pod", "gpuCount"], "msg": "too many", "type": "value_error"},
                {"loc": ["query", "page"], "msg": "not a number", "type": "int"},
            ]
        },
        {
            "errors": [
                {"param": "pod.gpuCount", "details": "too many"},
                {"param": "query.page", "details": "not a number"},
            ]
        },
    ],
    ids=["loc and msg", "param and details"],
)
def test_both_published_shapes_of_invalid_data_name_the_fields(body: object) -> None:
    error = failure(422, body).error
    assert isinstance(error, ValidationError)
    assert error.problems == [("pod.gpuCount", "too many"), ("query.page", "not a number")]
    assert "pod.gpuCount: too many; query.page: not a number" in str(error)


@pytest.mark.parametrize(
    ("body", "problems", "text"),
    [
        ({"detail": "no such image"}, [], "no such image"),
        ({"detail": [{"loc": ["body"], "msg": "bad"}]}, [("", "bad")], "HTTP 422: bad"),
        ({"detail": [{"loc": ["body", 0, "x"], "msg": "bad"}]}, [("0.x", "bad")], "0.x: bad"),
        ({"detail": [{"msg": 7}]}, [("", "7")], "HTTP 422: 7"),
        ({"detail": ["odd"]}, [], '["odd"]'),
        ({"detail": {"a": 1}}, [], '{"a": 1}'),
        ({"errors": {"param": "x"}}, [], "param"),
    ],
)
def test_an_odd_shape_of_invalid_data_keeps_its_text(
    body: object, problems: list[tuple[str, str]], text: str
) -> None:
    error = failure(422, body).error
    assert isinstance(error, ValidationError)
    assert error.problems == problems
    assert text in str(error)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"detail": "control plane"}, "control plane", None),
        ({"error": {"code": "not_indexed", "message": "traces"}}, "traces", "not_indexed"),
        (
            {"error": {"message": "inference", "type": "t", "code": "model_withdrawn"}},
            "inference",
            "model_withdrawn",
        ),
        ({"error": "gateway_error", "message": "gateway"}, "gateway", "gateway_error"),
        ({"error": "gateway_error"}, "gateway_error", "gateway_error"),
        ({"message": "plain", "code": 17}, "plain", "17"),
        ({"detail": "wins", "error": {"message": "loses"}}, "wins", None),
        (b"just text\n", "just text", None),
        (b"<html><style>p{}</style><h1>Bad\n gateway</h1></html>", "Bad gateway", None),
        (b"[1, 2]", "[1, 2]", None),
        (b"{}", "{}", None),
    ],
)
def test_the_message_is_found_in_each_published_shape(
    body: object, message: str, code: str | None
) -> None:
    error = failure(418, body).error
    assert error.args == (f"HTTP 418: {message}",)
    assert error.code == code


def test_without_a_body_the_reason_is_the_message() -> None:
    assert failure(418, reason="Teapot").error.args == ("HTTP 418: Teapot",)
    assert failure(418).error.args == ("HTTP 418: no explanation",)


def test_an_error_of_the_account_says_what_to_do_next() -> None:
    assert "PRIME_API_KEY" in str(failure(401, {"detail": "bad key"}).error)
    assert "balance" in str(failure(402, {"detail": "no money"}).error)
    full = str(failure(402, {"detail": "over the storage limit of 5 bytes"}).error)
    assert ("balance" in full, "ask for a higher limit" in full) == (False, True)


def test_a_long_message_is_cut_and_the_body_kept() -> None:
    error = failure(400, {"detail": "x" * 60_000}).error
    assert len(str(error)) < 2_100
    assert error.body is not None
    assert len(error.body) > 60_000


@pytest.mark.parametrize("unit", [b"<script", b"<style", b"<", b"<a "])
def test_markup_that_never_ends_is_read_in_no_time(unit: bytes) -> None:
    body = unit * (64_000 // len(unit))
    started = time.process_time()
    failure(502, body)
    assert time.process_time() - started < 0.2


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["detail", "error", "errors", "code", "message", "loc", "msg", "param"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(
    st.integers(300, 599),
    st.binary(max_size=300) | JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    st.none() | st.floats(0, 100),
)
def test_any_body_makes_an_error(status: int, body: bytes, retry_after: float | None) -> None:
    error = failure(status, body, retry_after=retry_after).error
    assert error.status_code == status
    assert str(error).startswith(f"HTTP {status}: ")
    str(error).encode()  # it can be printed
    assert error.body is not None
    error.body.encode()


@pytest.mark.parametrize(
    "template", ['{"detail": %s}', '{"detail": [{"loc": %s, "msg": %s}]}', "%s"]
)
def test_deeply_nested_bodies_make_an_error(template: str) -> None:
    for depth in [*range(900, 1000), 5_000, 9_000, 30_000]:
        nested = "[" * depth + "]" * depth
        body = template.replace("%s", nested).encode()
        assert failure(400, body).error.status_code == 400


def test_a_message_with_half_a_character_can_be_printed() -> None:
    error = failure(400, b'{"detail": "a\\ud800b", "code": "\\udfff"}').error
    str(error).encode()
    assert error.code is not None
    error.code.encode()
