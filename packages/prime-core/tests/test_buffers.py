"""Bounded buffers: what a writer waits for, what is dropped, and what is kept in a file."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import prime_core.buffers
from prime_core.buffers import ByteBuffer, ByteReader, Gap

pytestmark = pytest.mark.timeout(20)


async def rest(source: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in source])


async def test_bytes_come_out_as_they_went_in() -> None:
    buffer = ByteBuffer(100)
    for piece in (b"one", b"two"):
        assert buffer.put_nowait(piece)
    buffer.end()
    assert await rest(buffer.reader()) == b"onetwo"
    assert buffer.gaps == ()


async def test_a_reader_waits_for_bytes() -> None:
    buffer = ByteBuffer(100)
    taking = asyncio.create_task(buffer.reader().__anext__())
    await asyncio.sleep(0.01)
    assert not taking.done()
    await buffer.put(b"late")
    assert await taking == b"late"


async def test_a_failure_comes_after_what_had_arrived() -> None:
    buffer = ByteBuffer(100)
    await buffer.put(b"before")
    buffer.end(ValueError("broken"))
    reader = buffer.reader()
    assert await reader.__anext__() == b"before"
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            await reader.__anext__()


async def test_a_first_reader_that_comes_late_loses_nothing() -> None:
    buffer = ByteBuffer(10)

    async def write() -> None:
        for number in range(100):
            await buffer.put(b"%04d" % number)
        buffer.end()

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.1)
    assert await rest(buffer.reader()) == b"".join(b"%04d" % number for number in range(100))
    assert buffer.gaps == ()
    await writing


async def test_without_a_reader_the_oldest_bytes_make_room_and_that_is_told() -> None:
    buffer = ByteBuffer(10)
    for number in range(100):
        await asyncio.wait_for(buffer.put(b"%04d" % number), 1)
    buffer.end()
    assert await rest(buffer.reader()) == b"00980099"
    assert buffer.gaps == (Gap(0, 98 * 4),)


async def test_a_reader_holds_a_full_buffers_writer_up() -> None:
    buffer = ByteBuffer(10)
    reader = buffer.reader()
    await buffer.put(b"x" * 10)
    writing = asyncio.create_task(buffer.put(b"y"))
    await asyncio.sleep(0.02)
    assert not writing.done()
    assert await reader.__anext__() == b"x" * 10
    await asyncio.wait_for(writing, 1)
    buffer.end()
    assert await rest(reader) == b"y"
    assert buffer.gaps == ()


@pytest.mark.parametrize("how", ["closed", "dropped"])
async def test_a_writer_does_not_wait_for_a_reader_that_has_left(how: str) -> None:
    buffer = ByteBuffer(10)
    reader: ByteReader | None = buffer.reader()
    assert reader is not None
    await buffer.put(b"x" * 10)
    writing = asyncio.create_task(buffer.put(b"y"))
    await asyncio.sleep(0.02)
    if how == "closed":
        await reader.aclose()
        assert await rest(reader) == b""
    else:
        reader = None
        gc.collect()
    await asyncio.wait_for(writing, 1)
    assert buffer.gaps == (Gap(0, 10),)


async def test_breaking_out_of_a_loop_leaves_the_reader() -> None:
    buffer = ByteBuffer(10)
    await buffer.put(b"x" * 10)
    async for _ in buffer.reader():
        break
    for _ in range(3):
        await asyncio.wait_for(buffer.put(b"y" * 10), 1)


async def test_a_reader_that_takes_nothing_for_long_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prime_core.buffers, "READER_PATIENCE", 0.1)
    buffer = ByteBuffer(10)
    reader = buffer.reader()
    for _ in range(3):
        await asyncio.wait_for(buffer.put(b"y" * 10), 1)
    assert buffer.gaps == (Gap(0, 20),)
    assert await reader.__anext__() == b"y" * 10


async def test_a_discarded_buffer_takes_everything_and_gives_nothing() -> None:
    buffer = ByteBuffer(10)
    reader = buffer.reader()
    await buffer.put(b"x" * 10)
    writing = asyncio.create_task(buffer.put(b"y"))
    await asyncio.sleep(0.01)
    await buffer.discard()
    await asyncio.wait_for(writing, 1)
    assert await rest(reader) == b""


async def test_a_gap_lies_where_it_was_marked_and_pieces_do_not_cross_it() -> None:
    buffer = ByteBuffer(100)
    await buffer.put(b"ab")
    buffer.mark_gap()
    buffer.mark_gap(3)
    await buffer.put(b"cd")
    buffer.end()
    reader = buffer.reader()
    assert (await reader.__anext__(), reader.behind_gap) == (b"ab", False)
    assert (await reader.__anext__(), reader.behind_gap) == (b"cd", True)
    assert buffer.gaps == (Gap(2, None),)


async def test_dropping_moves_the_gaps_behind() -> None:
    buffer = ByteBuffer(10)
    await buffer.put(b"12345")
    buffer.mark_gap(7)
    await buffer.put(b"67890")
    await buffer.put(b"abc")  # the first five go
    assert buffer.gaps == (Gap(0, 12),)
    await buffer.put(b"defg")
    buffer.end()
    reader = buffer.reader()
    assert (await reader.__anext__(), reader.behind_gap) == (b"abcdefg", True)
    assert buffer.gaps == (Gap(0, 17),)


async def test_a_file_takes_what_exceeds_the_limit_and_gives_it_back_in_order(
    tmp_path: Path,
) -> None:
    buffer = ByteBuffer(1_000, str(tmp_path))
    written = b"".join(b"%06d" % number for number in range(100_000))
    for start in range(0, len(written), 5_000):
        await buffer.put(written[start : start + 5_000])
    assert os.listdir(tmp_path) == []  # it has no name
    reader = buffer.reader()
    head = await reader.__anext__() + await reader.__anext__()
    for _ in range(2):
        await buffer.put(b"more")
    buffer.end()
    assert head + await rest(reader) == written + b"moremore"
    assert buffer.gaps == ()
    await buffer.discard()


async def test_a_file_that_was_read_to_its_end_begins_anew(tmp_path: Path) -> None:
    buffer = ByteBuffer(4, str(tmp_path))
    reader = buffer.reader()
    for number in range(50):
        for piece in (b"%04d" % number, b"spill", b"again"):
            await buffer.put(piece)
        got = b""
        while len(got) < 14:
            got += await reader.__anext__()
        assert got == b"%04dspillagain" % number
    await buffer.discard()


async def test_a_cancelled_take_from_the_file_loses_nothing(tmp_path: Path) -> None:
    buffer = ByteBuffer(1, str(tmp_path))
    written = os.urandom(3_000_000)
    for start in range(0, len(written), 100_000):
        await buffer.put(written[start : start + 100_000])
    buffer.end()
    reader = buffer.reader()
    got = b""
    for number in range(2_000):
        taking = asyncio.create_task(reader.__anext__())
        for _ in range(number % 4):
            await asyncio.sleep(0)
        if number % 3:
            taking.cancel()
        try:
            got += await taking
        except asyncio.CancelledError:
            continue
        except StopAsyncIteration:
            break
    assert got + await rest(reader) == written
    await buffer.discard()


async def test_a_folder_that_is_gone_costs_the_bytes_and_says_so(tmp_path: Path) -> None:
    buffer = ByteBuffer(2, str(tmp_path / "missing"))
    await buffer.put(b"ab")
    await buffer.put(b"cdef")
    buffer.end()
    assert await rest(buffer.reader()) == b"ab"
    assert buffer.gaps == (Gap(2, 4),)
