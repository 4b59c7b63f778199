"""A segment's file shows where its last whole record ends."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_traces import SpoolError
from prime_traces.spool.framing import Header, framed_size, frames, read_header, scan

HEADER = Header("trace", 1, {"source": "test"}, "team")
line = st.binary(min_size=1, max_size=300)


def segment(lines: list[bytes]) -> bytes:
    return frames([HEADER.encode(), *lines], 0)[0]


@given(st.lists(line, max_size=20))
def test_what_was_framed_is_read_back(lines: list[bytes]) -> None:
    data = segment(lines)
    found = scan(data)
    assert found.header == HEADER
    assert [bytes(each) for each in found.lines] == lines
    assert found.end == len(data)


@given(st.lists(line, max_size=5), line)
def test_a_last_record_torn_at_any_byte_is_cut_off_whole(lines: list[bytes], last: bytes) -> None:
    data = segment([*lines, last])
    whole = len(data) - framed_size(last)
    for size in range(whole, len(data)):
        found = scan(data[:size])
        assert (len(found.lines), found.end) == (len(lines), whole)


@given(st.lists(line, max_size=5), st.integers(1, 5000))
def test_zeros_behind_the_last_record_are_no_records(lines: list[bytes], count: int) -> None:
    data = segment(lines)
    assert scan(data + bytes(count)).end == len(data)


@given(st.lists(line, min_size=1, max_size=5), st.data())
def test_a_changed_byte_ends_what_is_whole_at_or_before_it(
    lines: list[bytes], choose: st.DataObject
) -> None:
    data = bytearray(segment(lines))
    at = choose.draw(st.integers(0, len(data) - 1))
    data[at] ^= choose.draw(st.integers(1, 255))
    assert scan(bytes(data)).end <= at


def test_records_of_another_segment_on_the_same_place_of_the_disk_are_no_records() -> None:
    # Both have the same records, so that all frames lie at the same offsets.
    old, new = segment([b"a\n", b"b\n"]), segment([b"a\n", b"b\n"])
    cut = len(new) - framed_size(b"b\n")
    assert scan(new[:cut] + old[cut:]).end == cut


@given(st.binary(max_size=200))
def test_what_is_no_segment_has_no_records(data: bytes) -> None:
    assert scan(data).lines == []
    assert read_header(io.BytesIO(data)) is None


def test_a_segment_of_another_version_is_refused() -> None:
    payload = HEADER.encode().replace(b'"version": 1', b'"version": 2')
    with pytest.raises(SpoolError, match="version 2"):
        scan(frames([payload], 0)[0])
