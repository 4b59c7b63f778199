from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from datetime import datetime, timedelta, timezone
from typing import Any, ClassVar
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from prime_core.models import (
    OpenEnum,
    RequestModel,
    ResponseModel,
    ResponsePart,
    StrEnum,
    UtcDatetime,
    encode_request,
)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Paint(ResponseModel):
    colour: OpenEnum[Colour]
    made_at: UtcDatetime | None = Field(default=None, alias="madeAt")


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class Drop(ResponsePart):
    size: int | None = None
    inner: Drop | None = None


class Drops(ResponseModel):
    drops: list[Drop]


class Order(RequestModel):
    always_sent: ClassVar[frozenset[str]] = frozenset({"count", "tags"})

    paint_name: str | None = Field(default=None, alias="paintName")
    count: int = 1
    tags: list[str] = Field(default_factory=list)
    note: str | None = None


class NullFreeOrder(Order):
    omits_null: ClassVar[bool] = True

    part: Order | None = None


def sent(request: RequestModel, exclude: frozenset[str] = frozenset()) -> object:
    return json.loads(encode_request(request, exclude=exclude))


def test_only_set_fields_and_listed_defaults_are_sent_under_wire_names() -> None:
    assert sent(Order(paint_name="x")) == {"paintName": "x", "count": 1, "tags": []}


def test_an_explicit_none_is_sent_as_null() -> None:
    assert sent(Order(note=None)) == {"note": None, "count": 1, "tags": []}


def test_none_is_left_out_where_the_body_allows_no_null() -> None:
    request = NullFreeOrder(note=None, part=Order(note=None))
    assert sent(request) == {"count": 1, "tags": [], "part": {"note": None, "count": 1, "tags": []}}
    request.part = None
    assert sent(request) == {"count": 1, "tags": []}


def test_appending_to_a_default_list_is_sent() -> None:
    request = Order()
    request.tags.append("new")
    assert sent(request) == {"count": 1, "tags": ["new"]}
    assert sent(Order()) == {"count": 1, "tags": []}


def test_excluded_fields_are_not_sent_and_stay_on_the_request() -> None:
    request = Order(note="kept")
    assert sent(request, frozenset({"note", "count"})) == {"tags": []}
    assert request.note == "kept"


def test_a_body_is_compact_utf_8() -> None:
    body = encode_request(Order(paint_name="grün"))
    assert body == '{"paintName":"grün","count":1,"tags":[]}'.encode()


def test_a_request_accepts_attribute_and_wire_names_and_nothing_else() -> None:
    assert Order.model_validate({"paintName": "x"}) == Order(paint_name="x")
    with pytest.raises(ValidationError, match="paint_nmae"):
        Order.model_validate({"paint_nmae": "x"})


def test_a_response_keeps_unknown_fields() -> None:
    paint = Paint.model_validate_json('{"colour": "red", "gloss": {"level": 3}}')
    assert paint.model_extra == {"gloss": {"level": 3}}


def test_both_spellings_of_a_response_field_are_read() -> None:
    for key in ("madeAt", "made_at"):
        paint = Paint.model_validate_json(f'{{"colour": "red", "{key}": "2026-01-02T03:04:05"}}')
        assert paint.made_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "body",
    [b'{"colour": 1, "token": "s3cret"}', b'{"colour": "red", "token": "s3cret"'],
    ids=["wrong type", "cut off"],
)
def test_a_validation_error_does_not_quote_the_reply(body: bytes) -> None:
    with pytest.raises(ValidationError) as caught:
        Paint.model_validate_json(body)
    assert "s3cret" not in str(caught.value) + repr(caught.value)


def test_a_known_word_reads_as_a_member_and_an_unknown_one_as_text() -> None:
    known = Paint.model_validate_json('{"colour": "red"}').colour
    assert known is Colour.RED
    unknown = Paint.model_validate_json('{"colour": "green"}').colour
    assert (unknown, type(unknown)) == ("green", str)


@given(st.text())
def test_every_word_survives_a_round_trip_through_an_open_enum(word: str) -> None:
    paint = Paint(colour=word)
    assert paint.colour == word
    assert json.loads(paint.model_dump_json(exclude_unset=True)) == {"colour": word}


def test_a_member_acts_as_its_word() -> None:
    word: str = Colour.RED
    assert word == "red"
    assert f"{Colour.RED} {Colour.RED:>5}" + str(Colour.RED) == "red   redred"
    assert {"red": 1}[Colour.RED] == 1
    assert json.dumps(Colour.RED) == '"red"'
    assert pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED


@given(st.datetimes())
def test_a_time_without_a_zone_reads_as_utc(moment: datetime) -> None:
    paint = Paint.model_validate_json(json.dumps({"colour": "red", "madeAt": moment.isoformat()}))
    assert paint.made_at == moment.replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("2026-01-02T03:04:05Z", timedelta()), ("2026-01-02T03:04:05+02:00", timedelta(hours=2))],
)
def test_the_zone_of_a_time_is_kept(text: str, offset: timedelta) -> None:
    made_at = Paint.model_validate({"colour": "red", "madeAt": text}).made_at
    assert made_at is not None
    assert made_at.utcoffset() == offset
    assert made_at.replace(tzinfo=None) == datetime(2026, 1, 2, 3, 4, 5)


def test_models_pickle_and_copy_with_what_was_set() -> None:
    request = Order(note=None)
    for same in (pickle.loads(pickle.dumps(request)), request.model_copy()):
        assert same == request
        assert encode_request(same) == encode_request(request)


DROPS: dict[str, list[Any]] = {"drops": [{"size": 1, "wet": True, "inner": {"of": [None, 2]}}]}


def test_a_part_keeps_unknown_fields_wherever_it_goes() -> None:
    drops = Drops.model_validate_json(json.dumps(DROPS))
    (drop,) = drops.drops
    assert (drop.size, drop.model_extra) == (1, {"wet": True})
    assert drop.inner is not None
    assert drop.inner.model_extra == {"of": [None, 2]}
    assert repr(drop.inner) == "Drop(size=None, inner=None, of=[None, 2])"
    assert drops.model_dump(exclude_unset=True) == DROPS
    assert json.loads(drops.model_dump_json(exclude_none=True)) == DROPS
    assert drop.model_dump(exclude_none=True) == DROPS["drops"][0]
    assert json.loads(drop.inner.model_dump_json()) == {
        "size": None,
        "inner": None,
        "of": [None, 2],
    }
    assert drops.model_dump(include={"drops": {0: {"wet"}}}) == {"drops": [{"wet": True}]}
    assert drops.model_dump(exclude={"drops": {0: {"wet", "inner"}}}) == {"drops": [{"size": 1}]}
    for same in (pickle.loads(pickle.dumps(drops)), copy.deepcopy(drops), drops.model_copy()):
        assert same == drops
        assert same.drops[0].model_extra == {"wet": True}


def test_a_part_is_dumped_as_it_is_asked_for() -> None:
    (drop,) = Drops.model_validate(DROPS).drops
    assert drop.model_dump(include={"wet"}) == {"wet": True}
    assert drop.model_dump(exclude={"wet", "inner"}) == {"size": 1}
    assert drop.model_dump(exclude_unset=True) == DROPS["drops"][0]
    assert drop.model_dump_json(indent=1, exclude={"inner"}) == '{\n "size": 1,\n "wet": true\n}'

    class Shelf(BaseModel):
        things: list[Any]

    assert Shelf(things=[drop]).model_dump(exclude_none=True) == {"things": DROPS["drops"]}
    assert json.loads(to_json(drop, exclude_none=True)) == DROPS["drops"][0]


def test_parts_of_other_values_are_not_equal() -> None:
    assert Drop(size=1) == Drop(size=1)
    assert Drop(size=1) != Drop(size=2)
    other = Drop(size=1)
    other.model_extra["wet"] = True
    assert other != Drop(size=1)
    assert Drop() != Drops(drops=[])
    assert other == ANY


def test_a_part_checks_its_fields() -> None:
    with pytest.raises(ValidationError, match=r"drops\.0\.inner\.size"):
        Drops.model_validate({"drops": [{"inner": {"size": "large"}}]})
    with pytest.raises(ValidationError, match="size"):
        Drop(size="large")  # type: ignore[arg-type]


def test_a_part_may_be_referred_to_weakly() -> None:
    held = [Drop()]
    reference = weakref.ref(held[0])
    held.clear()
    assert reference() is None


def test_the_garbage_collector_has_one_object_a_part_to_go_through() -> None:
    (drop,) = Drops.model_validate({"drops": [{"size": 1}]}).drops
    assert [item for item in gc.get_referents(drop) if gc.is_tracked(item)] == [Drop]
