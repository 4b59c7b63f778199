"""Lines are cut into batches the same way every time, and none is changed or lost."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_traces import (
    DEFAULT_TARGET_BATCH_BYTES,
    MAX_BATCH_BYTES,
    MAX_BATCH_LINES,
    MAX_LINE_BYTES,
    Batch,
    TraceTooLargeError,
    aiter_batches,
    iter_batches,
    read_jsonl_lines,
)

MIB = 1024 * 1024
LINES = st.lists(st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"") + b"\n"))


def is_blank(line: bytes) -> bool:
    return not line.strip(b" \t\r\n\v\f")


def test_the_documented_limits() -> None:
    assert MAX_BATCH_BYTES == 256 * MIB
    assert MAX_LINE_BYTES == 64 * MIB
    assert MAX_BATCH_LINES == 1_000_000
    assert DEFAULT_TARGET_BATCH_BYTES == 30 * MIB


@given(LINES, st.integers(1, 40), st.integers(1, 5))
def test_batches_hold_every_line_that_is_not_blank(
    lines: list[bytes], target: int, most: int
) -> None:
    batches = list(iter_batches(lines, target_bytes=target, max_lines=most))
    kept = [line for line in lines if not is_blank(line)]
    assert b"".join(batch.data for batch in batches) == b"".join(kept)
    for batch in batches:
        assert batch.num_lines == batch.data.count(b"\n") <= most
        assert batch.size <= target or batch.num_lines == 1
        assert batch.digest == hashlib.sha256(batch.data).hexdigest()
        assert batch.idempotency_key == f"sha256:{batch.digest}"
        numbers = [batch.line_number(line) for line in range(1, batch.num_lines + 1)]
        assert numbers[0] == batch.first_line_number
        assert b"".join(lines[number - 1] for number in numbers) == batch.data


@given(LINES, st.integers(1, 40))
def test_a_batch_is_closed_only_when_the_next_line_has_no_room(
    lines: list[bytes], target: int
) -> None:
    batches = list(iter_batches(lines, target_bytes=target))
    for batch, following in itertools.pairwise(batches):
        first_line = following.data.split(b"\n")[0] + b"\n"
        assert batch.size + len(first_line) > target


def test_lines_without_line_feeds_are_not_glued_together() -> None:
    [batch] = iter_batches([b'{"a":1}', b'{"a":2}\n', b'{"a":3}'])
    assert batch.data == b'{"a":1}\n{"a":2}\n{"a":3}'
    assert batch.num_lines == 3


def test_what_holds_several_lines_is_divided_at_line_feeds_only() -> None:
    [batch] = iter_batches([b"1\r\n2\v2\n3", b"4\n"])
    assert (batch.data, batch.num_lines) == (b"1\r\n2\v2\n3\n4\n", 4)


def test_a_line_of_the_most_bytes_passes_and_one_more_does_not() -> None:
    [batch] = iter_batches([b"12345\n"], max_line_bytes=5, target_bytes=2)
    assert batch.size == 6
    batches = iter_batches([b"1\n", b"\n", b"12345\r\n"], max_line_bytes=5)
    with pytest.raises(TraceTooLargeError) as caught:
        next(batches)
    error = caught.value
    assert (error.line_number, error.size, error.limit) == (3, 6, 5)
    assert "line 3" in str(error)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("target", [0, -1, MAX_BATCH_BYTES + 1])
def test_a_target_out_of_range_is_refused_at_once(target: int) -> None:
    with pytest.raises(ValueError, match="target"):
        iter_batches([], target_bytes=target)
    with pytest.raises(ValueError, match="target"):
        aiter_batches([], target_bytes=target)


def test_text_is_no_line() -> None:
    lines: Any = ['{"a":1}\n']
    with pytest.raises(TypeError, match="bytes, not str"):
        next(iter_batches(lines))


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_async_batches_are_the_same(kind: str) -> None:
    lines = [b"%d\n" % number for number in range(1000)]
    source = Closing(lines)
    batches = aiter_batches(lines if kind == "plain" else source, target_bytes=100)
    assert [batch async for batch in batches] == list(iter_batches(lines, target_bytes=100))
    assert source.closed == (kind == "async")


class Closing(AsyncIterator[bytes]):
    """Lines from somewhere that must be closed."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.closed = False

    async def __anext__(self) -> bytes:
        for line in self._lines:
            return line
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"1\n2\n", [b"1\n", b"2\n"]),
        (b"1\n2", [b"1\n", b"2"]),
        (b"1\r\n\r\n2\r\n", [b"1\r\n", b"\r\n", b"2\r\n"]),
        (b"\xef\xbb\xbf1\x85\x0b\n\xff\n", [b"\xef\xbb\xbf1\x85\x0b\n", b"\xff\n"]),
    ],
)
def test_lines_of_a_file_are_what_line_feeds_end(
    tmp_path: Path, data: bytes, lines: list[bytes]
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(data)
    assert list(read_jsonl_lines(path)) == lines


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_of_a_file_that_is_too_long_is_measured_but_not_read_into_memory(
    tmp_path: Path, end: bytes
) -> None:
    path = tmp_path / "lines.jsonl"
    size = 65 * MIB
    with path.open("wb") as file:
        file.write(b"1\n")
        file.seek(size, 1)
        file.write(end + b"3\n" if end else b"")
        file.truncate()
    lines: Iterator[bytes] = read_jsonl_lines(path)
    assert next(lines) == b"1\n"
    with pytest.raises(TraceTooLargeError) as caught:
        next(lines)
    assert (caught.value.line_number, caught.value.size) == (2, size)
    assert list(lines) == []


def test_a_line_of_a_file_with_the_most_bytes_passes(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"x" * MAX_LINE_BYTES + b"\n" + b"2\n")
    batches: list[Batch] = list(iter_batches(read_jsonl_lines(path)))
    assert [batch.size for batch in batches] == [MAX_LINE_BYTES + 1, 2]
