"""Events out of bytes, however they are cut and their lines end."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pieces import pieces_of

import prime_core.sse
from prime_core.errors import APIResponseError
from prime_core.sse import ErrorData, EventParser


def parse(*pieces: bytes) -> list[bytes]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    last = parser.finish()
    return events if last is None else [*events, last]


def kinds_of(events: list[bytes]) -> list[tuple[type[bytes], bytes]]:
    """Errors and others apart, which compare as bytes do."""
    return [(type(event), event) for event in events]


@pytest.mark.parametrize(
    ("given", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\n\r\ndata:b\r\n\r\n", [b"a", b"b"]),
        (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
        (b": ping\n\n:\n\ndata: a\n\n", [b"a"]),
        (b"data: a\ndata:  b\ndata\n\n", [b"a\n b\n"]),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
        (b"id: 7\nretry: 10\ndata: a\nDATA: b\n\n", [b"a"]),
        (b"data\n\ndata:\n\ndata: \n\n", [b"", b"", b""]),
        (b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b'{"a":1}\n\n', [b'{"a":1}']),
        (b"data: \xff\xc3\n\n", [b"\xff\xc3"]),
        (b"data: a", [b"a"]),
        (b"", []),
        (b"\xef\xbb", []),
    ],
)
def test_the_rules_of_the_standard(given: bytes, events: list[bytes]) -> None:
    assert parse(given) == events


def test_a_type_belongs_to_one_event_even_to_one_without_data() -> None:
    text = b"event: x\ndata: a\n\nevent: error\n\ndata: b\n\nevent: error\ndata: c\n\n"
    assert kinds_of(parse(text)) == kinds_of([b"a", b"b", ErrorData(b"c")])


def test_a_line_end_that_is_cut_in_two_is_one() -> None:
    assert parse(b"data: a\r", b"\n\r\ndata: b\r\n\r", b"", b"\n") == [b"a", b"b"]


def test_an_event_comes_with_its_last_byte() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\r\n") == []
    assert parser.feed(b"\r") == [b"a"]
    assert parser.feed(b"\n") == []


LINES = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data",
        b"data: ",
        "data: é€😀".encode(),
        b"data: \xf0\x9f",
        b": comment",
        b":",
        b"event: error",
        b"event",
        b"id: 1",
        b'{"a": 1}',
        b"",
        b"",
        b"",
        b"\xef\xbb\xbfdata: late",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
TEXTS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(LINES, ENDS).map(b"".join), max_size=20).map(b"".join),
    st.sampled_from([b"", b"data: rest", b"\xef\xbb"]),
).map(b"".join)


def by_the_book(text: bytes) -> list[bytes]:
    """The same rules a line at a time, for comparison; its last event needs no blank line."""
    lines = text.removeprefix(b"\xef\xbb\xbf").splitlines()
    events, data, kind = [], [], b""
    for line in [*lines, b""]:
        name, _, value = line.partition(b":")
        if line.startswith(b"{"):
            data.append(line)
        elif name == b"data":
            data.append(value[1:] if value.startswith(b" ") else value)
        elif name == b"event":
            kind = value[1:] if value.startswith(b" ") else value
        elif not line:
            if data:
                whole = b"\n".join(data)
                events.append(ErrorData(whole) if kind == b"error" else whole)
            data, kind = [], b""
    return events


@given(TEXTS.flatmap(lambda text: st.tuples(st.just(text), pieces_of(text))))
@example((b"data: a\n\n\ndata: b\n\n", [b"data: a\n", b"\n\ndata: b\n", b"\n"]))
def test_pieces_of_any_kind_hold_what_the_whole_holds(cut: tuple[bytes, list[bytes]]) -> None:
    text, pieces = cut
    expected = kinds_of(by_the_book(text))
    assert kinds_of(parse(text)) == expected
    assert kinds_of(parse(*pieces)) == expected
    assert kinds_of(parse(*[bytes([byte]) for byte in text])) == expected


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_large_events_split_at_every_place_of_their_seams(end: bytes) -> None:
    large = b"x" * 1_000_000
    text = b"data: " + large + end + end + b"data: " + large + end + b"data: y" + end + end
    expected = [large, large + b"\ny"]
    for place in [1, 6, *range(1_000_004, 1_000_012), *range(len(text) - 4, len(text))]:
        assert parse(text[:place], text[place:]) == expected


@pytest.mark.parametrize("size", [4096, 65536])
def test_a_long_line_takes_time_in_line_with_its_length(size: int) -> None:
    text = b"data: " + b"x" * 5_000_000 + b"\n\n"
    places = [*range(0, len(text), size), len(text)]
    began = time.process_time()
    (event,) = parse(*[text[a:b] for a, b in pairwise(places)])
    assert len(event) == 5_000_000
    assert time.process_time() - began < 0.5  # copying it all for each piece takes seconds


def test_many_lines_of_one_event_take_time_in_line_with_their_number() -> None:
    began = time.process_time()
    (event,) = parse(*[b"data: x\n"] * 50_000)
    assert event.count(b"x") == 50_000
    assert time.process_time() - began < 2


def test_an_event_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prime_core.sse, "MAX_EVENT", 1000)
    for line in (b"data: x", b"data: x\n", b"x", b": comment"):
        parser = EventParser()
        with pytest.raises(APIResponseError, match="larger"):
            [parser.feed(line) for _ in range(2000)]
    assert parse(*[b": ping\n", b"data: x\n\n"] * 200) == [b"x"] * 200
