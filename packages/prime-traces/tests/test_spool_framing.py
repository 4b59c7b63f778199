"""A segment's file shows where its last whole record ends."""

from __future__ import annotations

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_traces import SpoolError
from prime_traces.spool.framing import (
    Header,
    framed_size,
    header_frame,
    read_header,
    record_frames,
    scan,
)

HEADER = Header("trace", 1, {"source": "test"}, "team")
line = st.binary(max_size=300).map(lambda data: data.replace(b"\n", b"") + b"\n")


def segment(lines: list[bytes]) -> bytes:
    begin, seed = header_frame(HEADER)
    return begin + record_frames(lines, len(begin), seed)


@given(st.lists(line, max_size=20))
def test_what_was_framed_is_read_back(lines: list[bytes]) -> None:
    data = segment(lines)
    found = scan(data)
    assert found.header == HEADER
    assert [bytes(each) for each in found.lines] == lines
    assert (found.damaged, found.end) == ([], len(data))


@given(st.lists(line, max_size=5), line)
def test_a_last_record_torn_at_any_byte_is_cut_off_whole(lines: list[bytes], last: bytes) -> None:
    data = segment([*lines, last])
    whole = len(data) - framed_size(last)
    for size in range(whole, len(data)):
        found = scan(data[:size])
        assert (len(found.lines), found.damaged, found.end) == (len(lines), [], whole)


@given(st.lists(line, max_size=5), st.integers(1, 5000))
def test_zeros_behind_the_last_record_are_no_records(lines: list[bytes], count: int) -> None:
    data = segment(lines)
    assert scan(data + bytes(count)).end == len(data)


@given(st.lists(line, min_size=1, max_size=5), st.data())
def test_a_changed_byte_takes_no_record_with_it_but_its_own(
    lines: list[bytes], choose: st.DataObject
) -> None:
    data = bytearray(segment(lines))
    begin = len(data) - sum(map(framed_size, lines))
    at = choose.draw(st.integers(begin, len(data) - 1))
    data[at] ^= choose.draw(st.integers(1, 255))
    found = scan(bytes(data))
    hit, end = 0, begin + framed_size(lines[0])
    while end <= at:
        hit += 1
        end += framed_size(lines[hit])
    assert [bytes(each) for each in found.lines] == lines[:hit] + lines[hit + 1 :]
    torn = len(data) - found.end
    assert len(found.damaged) == 1 or (hit == len(lines) - 1 and torn)


@given(st.lists(line, min_size=1, max_size=5), st.data())
def test_a_changed_header_is_not_taken_for_one_and_its_records_are_found(
    lines: list[bytes], choose: st.DataObject
) -> None:
    data = bytearray(segment(lines))
    begin = len(data) - sum(map(framed_size, lines))
    at = choose.draw(st.integers(0, begin - 1))
    data[at] ^= choose.draw(st.integers(1, 255))
    found = scan(bytes(data))
    assert found.header in (None, HEADER)
    kept = [bytes(each) for each in found.lines]
    # A changed length hides where the first record begins.
    assert kept == (lines if at >= 4 else lines[len(lines) - len(kept) :])
    assert len(kept) >= len(lines) - 1


@given(st.lists(line, min_size=3, max_size=6), st.integers(0, 40))
def test_a_run_of_zeros_in_the_middle_takes_no_record_with_it_that_it_did_not_touch(
    lines: list[bytes], over: int
) -> None:
    data = bytearray(segment(lines))
    at = len(data) - sum(map(framed_size, lines[1:]))
    over = min(over, sum(map(framed_size, lines[1:-1]))) or 1
    data[at : at + over] = bytes(over)
    hit = 1
    while at + over > at + sum(map(framed_size, lines[1 : hit + 1])):
        hit += 1
    kept = [bytes(each) for each in scan(bytes(data)).lines]
    assert kept[0] == lines[0]
    # When the line feed of the last one that it touched is gone, so is the border behind it.
    assert kept[1:] in (lines[hit + 1 :], lines[hit + 2 :])


def test_records_of_another_segment_on_the_same_place_of_the_disk_are_no_records() -> None:
    # Both have the same records, so that all frames lie at the same offsets.
    old, new = segment([b"a\n", b"b\n"]), segment([b"a\n", b"b\n"])
    cut = len(new) - framed_size(b"b\n")
    found = scan(new[:cut] + old[cut:])
    assert [bytes(each) for each in found.lines] == [b"a\n"]


@given(st.binary(max_size=200))
def test_what_is_no_segment_has_no_records(data: bytes) -> None:
    assert scan(data).lines == []
    assert read_header(io.BytesIO(data)) is None


def test_a_segment_of_another_version_is_refused() -> None:
    payload = HEADER.encode().replace(b'"version": 1', b'"version": 2')
    with pytest.raises(SpoolError, match="version 2"):
        scan(struct.pack("<II", len(payload), zlib.crc32(payload)) + payload)
