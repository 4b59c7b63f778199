"""How a batch goes on that the platform refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.errors import APIError, BadRequestError
from prime_traces import LineFormatConflictError
from prime_traces.spool.rejections import cut_for

Line = tuple[str, bool]  # an id, and whether it is a good record


def refusal(lines: list[Line], *, names_lines: bool) -> APIError | None:
    """What a platform says to a batch that is to be stored whole or not at all."""
    seen = set()
    for number, (identity, good) in enumerate(lines, 1):
        code = "duplicate_trace_id" if identity in seen else "invalid_trace"
        if identity in seen or not good:
            message = f"line {number}: it is wrong" if names_lines else "a line is wrong"
            return BadRequestError(message, status_code=400, code=code)
        seen.add(identity)
    return None


@given(
    st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), min_size=1, max_size=40),
    st.booleans(),
)
def test_every_good_record_is_stored_in_order_and_each_bad_one_set_aside(
    lines: list[Line], names_lines: bool
) -> None:
    stored: list[Line] = []
    rejected: list[Line] = []
    waiting = [lines]
    requests = 0
    while waiting:
        batch = waiting.pop(0)
        requests += 1
        error = refusal(batch, names_lines=names_lines)
        if error is None:
            stored += batch
            continue
        cut = cut_for(error, len(batch))
        assert cut is not None
        rejected += [batch[index] for index in cut.rejected]
        waiting = [[batch[index] for index in group] for group in cut.groups] + waiting
    assert stored == [each for each in lines if each[1]]
    assert sorted(rejected) == sorted(each for each in lines if not each[1])
    assert requests <= 4 * len(lines)


def test_a_named_record_alone_is_set_aside_and_the_rest_goes_on_in_halves() -> None:
    error = BadRequestError("line 2: no id", status_code=400, code="invalid_trace")
    cut = cut_for(error, 10)
    assert cut is not None
    assert list(cut.rejected) == [1]
    assert cut.groups == (range(0, 1), range(2, 5), range(5, 10))


def test_a_code_that_is_not_known_yet_is_followed_when_it_names_a_line() -> None:
    error = BadRequestError("line 1: too shiny", status_code=400, code="too_shiny")
    cut = cut_for(error, 1)
    assert cut is not None
    assert list(cut.rejected) == [0]


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("line 1: of the header is too long", status_code=400),  # a proxy's
        BadRequestError("the key does not fit", status_code=400, code="digest_mismatch"),
        BadRequestError("bad gzip", status_code=400, code="malformed_encoding"),
        BadRequestError("line 99: none", status_code=400, code="too_shiny"),
        APIError("not found", status_code=404),
        APIError("teapot", status_code=418),
    ],
    ids=str,
)
def test_records_are_not_blamed_for_what_is_not_their_fault(error: APIError) -> None:
    assert cut_for(error, 1) is None
    assert cut_for(error, 10) is None


@pytest.mark.parametrize(
    "error",
    [
        LineFormatConflictError("stored as trace", status_code=409, code="line_format_conflict"),
        BadRequestError("context", status_code=400, code="invalid_metadata"),
    ],
    ids=str,
)
def test_a_batch_that_can_never_be_stored_is_set_aside_whole(error: APIError) -> None:
    cut = cut_for(error, 10)
    assert cut is not None
    assert cut.groups == ()
    assert list(cut.rejected) == list(range(10))


def test_a_gateway_s_413_makes_batches_smaller() -> None:
    error = APIError("too large", status_code=413)
    cut = cut_for(error, 5)
    assert cut is not None
    assert cut.groups == (range(0, 2), range(2, 5))
    alone = cut_for(error, 1)
    assert alone is not None
    assert list(alone.rejected) == [0]
