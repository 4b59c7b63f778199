"""Streams that are dropped, closed under their reader, read twice, or inherited."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from forks import in_child
from raw_server import RawServer, Received, Wire
from rows import KEY
from transports import Connect

from prime_core.calls import Call, Headers, Target
from prime_core.errors import StreamStateError
from prime_core.operations import Operation
from prime_core.progress import ItemProgress
from prime_core.streams import OpenStream
from prime_core.sync import iterate, next_of, run
from prime_core.transport import AsyncTransport
from prime_core.work_streams import WorkStream

FETCH = Operation("fetch_thing", "GET", "/fetch", "safe", pool="stream")
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"


class Held:
    """Begins its answers, and counts those whose reader has hung up."""

    def __init__(self) -> None:
        self.gone = 0

    async def __call__(self, wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        await wire.reader.read()
        self.gone += 1
        wire.close()


async def open_stream(transport: AsyncTransport, server: RawServer) -> OpenStream:
    target = Target.of(server.url, Headers({"Authorization": f"Bearer {KEY}"}))
    call: Call[OpenStream] = transport.prepare_elsewhere(
        FETCH, None, target, headers={}, timeout=None, idle=60
    )
    return await transport.perform(call)


def descriptors() -> int:
    """How many the process has open; 0 where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come to it")


async def test_a_stream_that_is_dropped_is_closed(server: RawServer, connect: Connect) -> None:
    held = Held()
    server.steps = [held]
    transport = connect()
    streams = [await open_stream(transport, server) for _ in range(20)]
    assert await streams[0].__anext__() == b"one"
    state = transport._states.get()
    open_files = descriptors()

    def drop() -> None:
        while streams:
            streams.pop()
        gc.collect()

    with pytest.warns(ResourceWarning, match="left unread"):
        await asyncio.to_thread(drop)  # the collector runs on any thread
    await until(lambda: held.gone == 20)
    assert state.stream._value == state.stream_places
    assert descriptors() <= max(0, open_files - 20)


async def test_a_stream_has_one_reader(server: RawServer, connect: Connect) -> None:
    server.steps = [Held()]
    async with await open_stream(connect(), server) as stream:
        assert await stream.__anext__() == b"one"
        first = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)
        with pytest.raises(StreamStateError, match="two at once"):
            await stream.__anext__()
        assert not first.done()
        stream.close()
        with pytest.raises(StreamStateError, match="closed while it was read"):
            await first


async def test_a_stream_is_read_on_its_own_loop(server: RawServer, connect: Connect) -> None:
    server.steps = [Held()]
    async with await open_stream(connect(), server) as stream:
        with pytest.raises(StreamStateError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, stream.__anext__())


@dataclass
class Done:
    number: int
    error: BaseException | None = None


def work_on(*numbers: int) -> WorkStream[int, Done]:
    async def work(number: int, deliver: Callable[[Done], None]) -> None:
        if number < 0:
            await asyncio.sleep(30)
        deliver(Done(number))

    return WorkStream(
        work,
        numbers,
        window=4,
        ordered=True,
        raise_errors=False,
        progress=ItemProgress(False, "numbers", numbers),
    )


async def test_results_that_were_left_do_not_seem_to_end() -> None:
    results = work_on(1, 2)
    assert (await results.__anext__()).number == 1
    await results.aclose()
    unstarted = work_on(1)
    await unstarted.aclose()
    for left in (results, unstarted):
        with pytest.raises(StreamStateError, match="left before their end"):
            await left.__anext__()
    read = work_on(1)
    assert [done.number async for done in read] == [1]
    await read.aclose()
    with pytest.raises(StopAsyncIteration):
        await read.__anext__()


async def test_closing_results_tells_who_waits_for_them() -> None:
    results = work_on(-1)
    waiting = asyncio.ensure_future(results.__anext__())
    await asyncio.sleep(0.01)
    await results.aclose()
    with pytest.raises(StreamStateError):
        await asyncio.wait_for(waiting, 5)


async def numbers() -> AsyncIterator[int]:
    for number in range(100):
        yield number


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_iterator_of_before_the_fork_is_refused_in_the_child() -> None:
    iterator = iterate(numbers)
    results = work_on(1, 2, 3)
    assert (next(iterator), next_of(results).number) == (0, 1)
    assert in_child(lambda: next(iterator)) == "StreamStateError"
    assert in_child(lambda: next_of(results)) == "StreamStateError"
    assert in_child(lambda: run(results.aclose())) == "None"
    assert in_child(lambda: next_of(work_on(7)).number) == "7"
    assert (next(iterator), next_of(results).number) == (1, 2)
    iterator.close()  # type: ignore[attr-defined]
    run(results.aclose())
