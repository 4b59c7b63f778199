"""Prices keep their digits from the wire to the user and back."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from prime_core.exact import ExactNumbers, Price
from prime_core.models import RequestModel, ResponseModel, UtcDatetime, encode_request

# A whole number has no negative zero.
NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?", fullmatch=True
).filter(lambda text: text != "-0")


class Part(ResponseModel):
    per_unit: Price | None = Field(default=None, alias="perUnit")


class Answer(ExactNumbers, ResponseModel):
    price: Price
    part: Part | None = None
    at: UtcDatetime | None = None


class Inner(RequestModel):
    max_price: Price = Field(alias="maxPrice")


class Request(ExactNumbers, RequestModel):
    inner: Inner
    name: str | None = None


class Plain(ResponseModel):
    value: Any
    at: UtcDatetime


class Exact(ExactNumbers, Plain):
    pass


@given(NUMBERS)
def test_a_number_has_the_digits_of_its_source(text: str) -> None:
    source = f'{{"price":{text},"part":{{"perUnit":{text},"newer":[{text}]}}}}'
    answer = Answer.model_validate_json(source)
    assert answer.part is not None
    assert answer.price == answer.part.per_unit == Decimal(text)
    text_again = answer.model_dump_json(by_alias=True, exclude_unset=True)
    written = json.loads(text_again, parse_float=str, parse_int=str)
    for number in (written["price"], written["part"]["perUnit"], written["part"]["newer"][0]):
        assert Decimal(number).as_tuple() == Decimal(text).as_tuple()


@pytest.mark.parametrize("text", ["2.69", "0.00014", "2.690", "100", "0.0", "0.0000001", "-0.5"])
def test_a_usual_number_is_written_as_it_was(text: str) -> None:
    source = f'{{"price":{text},"unknown":{text}}}'
    answer = Answer.model_validate_json(source)
    assert answer.model_dump_json(exclude_unset=True) == source


def test_a_request_sends_the_digits_it_was_given() -> None:
    digits = "1.1234567890123456789012345"
    request = Request(inner=Inner(max_price=Decimal(digits)))
    assert encode_request(request) == f'{{"inner":{{"maxPrice":{digits}}}}}'.encode()


@pytest.mark.parametrize("price", [2.69, True])
def test_a_price_is_never_a_float(price: Any) -> None:
    with pytest.raises(ValidationError, match=r"max_price\s+a price is a Decimal"):
        Inner(max_price=price)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 0, 2]),
)
def test_all_else_is_written_as_pydantic_does(value: Any, indent: int | None) -> None:
    fields = {"value": value, "at": "2025-01-01T00:00:00.5Z"}
    plain, exact = Plain.model_validate(fields), Exact.model_validate(fields)
    assert exact.model_dump_json(indent=indent) == plain.model_dump_json(indent=indent)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b'{"price":NaN}',
        b'{"price":-Infinity}',
        b'{"price":1e99999999999999999999}',
        b'{"price":' + b"1" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=range(8),
)
def test_what_is_no_json_is_invalid_data(text: bytes) -> None:
    with pytest.raises(ValidationError, match="Invalid JSON"):
        Answer.model_validate_json(text)


def test_a_number_that_is_not_finite_is_not_written() -> None:
    answer = Answer.model_construct(price=Decimal("NaN"))
    with pytest.raises(ValueError, match="NaN is no JSON number"):
        answer.model_dump_json()


def test_validation_errors_do_not_quote_the_answer() -> None:
    with pytest.raises(ValidationError) as caught:
        Answer.model_validate_json(b'{"price":"secret words"}')
    assert "secret" not in str(caught.value)
