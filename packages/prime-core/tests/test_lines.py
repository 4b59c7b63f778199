"""Lines out of a buffer, however its bytes are cut and whoever reads on."""

from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from prime_core.buffers import ByteBuffer
from prime_core.lines import LONGEST_LINE, LineReader

DATA = st.lists(st.sampled_from([b"a", b"\n", b"\r", "\u00e9".encode(), b"\xc3", b"\xff", b"bc"]))


def lines_of(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    return lines if lines[-1] else lines[:-1]


def filled(data: bytes, size: int) -> ByteBuffer:
    buffer = ByteBuffer(1 << 30)
    for start in range(0, len(data), size):
        assert buffer.put_nowait(data[start : start + size])
    buffer.end()
    return buffer


@given(DATA.map(b"".join), st.integers(1, 5))
@example(b"", 1)
@example(b"a\n\n", 1)
def test_lines_are_those_of_the_whole(data: bytes, size: int) -> None:
    async def main() -> list[str]:
        return [line async for line in LineReader(filled(data, size))]

    assert asyncio.run(main()) == lines_of(data)


@given(DATA.map(b"".join), st.integers(1, 5), st.integers(0, 6), st.integers(0, 6))
def test_whoever_reads_on_gets_what_was_not_handed_out(
    data: bytes, size: int, first: int, second: int
) -> None:
    async def main() -> tuple[list[str], bytes]:
        buffer = filled(data, size)
        lines: list[str] = []
        for count in (first, second):
            reader = LineReader(buffer)
            for _ in range(count):
                async for line in reader:
                    lines.append(line)
                    break
        return lines, b"".join([piece async for piece in buffer.reader()])

    lines, rest = asyncio.run(main())
    expected = lines_of(data)
    assert lines == expected[: first + second]
    assert lines_of(rest) == expected[first + second :]


async def test_a_line_without_an_end_comes_in_pieces_of_whole_characters() -> None:
    text = "\u00e9" * LONGEST_LINE
    lines = [line async for line in LineReader(filled(text.encode(), 9_999))]
    assert "".join(lines) == text
    assert len(lines) > 1


async def test_half_a_character_before_a_gap_has_no_part_behind_it() -> None:
    buffer = ByteBuffer(1 << 20)
    buffer.put_nowait(b"a\xc3")
    buffer.mark_gap()
    buffer.put_nowait(b"\xa9b\nc")
    buffer.end()
    assert [line async for line in LineReader(buffer)] == ["a\ufffd\ufffdb", "c"]


async def test_what_is_given_back_keeps_its_gap() -> None:
    buffer = ByteBuffer(1 << 20)
    buffer.put_nowait(b"one\ntwo\nthr")
    buffer.mark_gap(5)
    buffer.put_nowait(b"ee\n")
    buffer.end()
    reader = LineReader(buffer)
    assert await reader.__anext__() == "one"
    assert [piece async for piece in buffer.reader()] == [b"two\nthr", b"ee\n"]
    assert [gap.position for gap in buffer.gaps] == [11]
