from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pieces import pieces_of

from prime_core.text import TextDecoder

# Beginnings, ends and damage of characters of each length, more often than chance brings them.
WHOLE = (b"a", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80")
DAMAGED = (b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\x80", b"\xff", b"\xed\xa0\x80", b"\xf4\x90")
AWKWARD = st.lists(st.sampled_from(WHOLE + DAMAGED), max_size=12).map(b"".join)


def decode(pieces: list[bytes]) -> list[str]:
    decoder = TextDecoder()
    return [*(decoder.feed(piece) for piece in pieces), decoder.finish()]


@given(AWKWARD | st.binary(max_size=60) | st.text(max_size=30).map(str.encode), st.data())
def test_text_comes_back_whole_however_its_bytes_are_cut(
    content: bytes, data: st.DataObject
) -> None:
    expected = content.decode("utf-8", "replace")
    assert "".join(decode(data.draw(pieces_of(content)))) == expected
    assert "".join(decode([bytes([byte]) for byte in content])) == expected


def test_a_character_comes_with_its_last_byte() -> None:
    assert decode([b"\xe2", b"\x82", b"\xac", b"!"]) == ["", "", "€", "!", ""]


def test_what_is_surely_no_character_is_not_held_back() -> None:
    assert decode([b"\xe2", b"x", b"\xff"]) == ["", "\ufffdx", "\ufffd", ""]


def test_a_character_left_incomplete_is_replaced_at_the_end() -> None:
    assert decode([b"ok\xe2\x82"]) == ["ok", "\ufffd"]
