"""Answers that are read while they arrive."""

from __future__ import annotations

import asyncio
import time
import traceback

import aiohttp
import pytest
from raw_server import RawServer, Received, Step, Wire, answer, raw, reset, response
from rows import KEY
from transports import Connect

from prime_core.calls import Call, Headers, Target
from prime_core.errors import APIError, APIResponseError, APITimeoutError, NotFoundError
from prime_core.operations import Operation
from prime_core.streams import OpenStream
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")

FETCH = Operation("fetch_thing", "GET", "/fetch", "safe", pool="stream")
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


async def open_stream(
    transport: AsyncTransport,
    server: RawServer,
    *,
    idle: float = 5,
    timeout: float | None = None,
) -> OpenStream:
    target = Target.of(server.url, Headers({"Authorization": f"Bearer {KEY}"}))
    call: Call[OpenStream] = transport.prepare_elsewhere(
        FETCH, None, target, headers={}, timeout=timeout, idle=idle
    )
    return await transport.perform(call)


def slowly(*parts: bytes, pause: float = 0.1, then: Step | None = None) -> Step:
    """Sends parts of an answer with pauses between them."""

    async def step(wire: Wire, request: Received) -> None:
        for part in parts:
            await wire.send(part)
            await asyncio.sleep(pause)
        if then is not None:
            await then(wire, request)
        else:
            await wire.reader.read()  # until the other side hangs up
            wire.close()

    return step


async def test_chunks_come_as_they_arrive(server: RawServer, connect: Connect) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"), chunk(b"two"), b"0\r\n\r\n")]
    async with await open_stream(connect(), server) as stream:
        assert [part async for part in stream] == [b"one", b"two"]


async def test_the_size_is_told(server: RawServer, connect: Connect) -> None:
    server.steps = [raw(response(200, b"12345"))]
    async with await open_stream(connect(), server) as stream:
        assert stream.size == 5
        assert b"".join([part async for part in stream]) == b"12345"


@pytest.mark.parametrize(
    "reply",
    [
        response(200, b""),
        HEAD + b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ],
)
async def test_an_empty_body_is_at_its_end(
    server: RawServer, connect: Connect, reply: bytes
) -> None:
    async def step(wire: Wire, request: Received) -> None:
        await wire.send(reply)
        if b"close" in reply:
            wire.close()

    server.steps = [step]
    async with await open_stream(connect(), server, timeout=10) as stream:
        assert [part async for part in stream] == []
        assert await stream.read() == b""


def test_there_is_nothing_to_wait_for_where_an_answer_has_no_body() -> None:
    # Aiohttp without its extensions, and with HEAD, has another reader then.
    assert not OpenStream._may_wait(aiohttp.EMPTY_PAYLOAD)


async def test_a_read_that_is_cancelled_loses_nothing(server: RawServer, connect: Connect) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"), chunk(b"two"), b"0\r\n\r\n", pause=0.2)]
    async with await open_stream(connect(), server) as stream:
        parts = [await stream.read()]
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0.05)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert parts + [part async for part in stream] == [b"one", b"two"]


async def test_a_failure_before_the_body_is_retried(server: RawServer, connect: Connect) -> None:
    server.steps = [reset(), answer(503), answer(200, {"id": "x"})]
    async with await open_stream(connect(), server) as stream:
        assert [part async for part in stream] == [b'{"id": "x"}']


async def test_an_error_answer_is_a_typed_error(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(404, {"detail": "no such thing"})]
    with pytest.raises(NotFoundError, match="no such thing"):
        await open_stream(connect(), server)


async def test_leaving_early_closes_the_connection_at_once(
    server: RawServer, connect: Connect
) -> None:
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def endless(wire: Wire, _: Received) -> None:
        try:
            await wire.send(HEAD)
            while True:
                await wire.send(chunk(b"more"))
                await asyncio.sleep(0.005)
        finally:
            loop.call_soon_threadsafe(gone.set)

    server.steps = [endless]
    async with await open_stream(connect(), server) as stream:
        await stream.__anext__()
    await asyncio.wait_for(gone.wait(), 1)


async def test_a_place_in_the_pool_is_held_until_the_end(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [slowly(HEAD)]
    transport = connect()
    state = transport._states.get()
    free = state.stream._value
    stream = await open_stream(transport, server)
    assert state.stream._value == free - 1
    stream.close()
    stream.close()
    assert state.stream._value == free


async def test_a_cancelled_opening_gives_its_place_back(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [slowly()]
    transport = connect()
    free = transport._states.get().stream._value
    opening = asyncio.create_task(open_stream(transport, server))
    await server.arrived(1)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert transport._states.get().stream._value == free


async def failure_of(stream: OpenStream) -> APIError:
    with pytest.raises(APIError) as caught:
        async for _ in stream:
            pass
    return caught.value


async def test_silence_in_the_body_ends_by_the_idle_limit(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"))]
    began = time.monotonic()
    async with await open_stream(connect(), server, idle=0.3) as stream:
        error = await failure_of(stream)
    assert isinstance(error, APITimeoutError)
    assert (error.phase, error.operation, error.attempts) == ("idle", FETCH.id, 1)
    assert 0.25 < time.monotonic() - began < 2


async def test_a_stream_that_moves_outlives_its_idle_limit(
    server: RawServer, connect: Connect
) -> None:
    parts = [chunk(b"%d" % number) for number in range(6)]
    server.steps = [slowly(HEAD, *parts, b"0\r\n\r\n", pause=0.15)]
    async with await open_stream(connect(), server, idle=0.4) as stream:
        assert b"".join([part async for part in stream]) == b"012345"


async def test_a_slow_reader_is_not_idle(server: RawServer, connect: Connect) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"), chunk(b"two") + b"0\r\n\r\n", pause=0.05)]
    async with await open_stream(connect(), server, idle=0.3) as stream:
        await stream.__anext__()
        await asyncio.sleep(0.6)
        assert [part async for part in stream] == [b"two"]


async def test_a_total_limit_holds_for_a_stream_that_moves(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [slowly(HEAD, *[chunk(b"x")] * 50, pause=0.05)]
    async with await open_stream(connect(), server, timeout=0.4) as stream:
        error = await failure_of(stream)
    assert isinstance(error, APITimeoutError)
    assert error.phase == "total"


@pytest.mark.parametrize(
    "body",
    [
        HEAD + chunk(b"one"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\none",
    ],
    ids=["chunked", "by length"],
)
async def test_a_body_cut_short_is_an_error_without_the_key(
    server: RawServer, connect: Connect, body: bytes
) -> None:
    server.steps = [raw(body)]
    async with await open_stream(connect(), server) as stream:
        error = await failure_of(stream)
    assert isinstance(error, APIResponseError)
    shown = "".join(
        traceback.TracebackException.from_exception(error, capture_locals=True).format()
    )
    assert KEY not in shown


async def test_a_reset_in_the_body_is_an_error(server: RawServer, connect: Connect) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"), then=reset())]
    async with await open_stream(connect(), server) as stream:
        error = await failure_of(stream)
    assert error.operation == FETCH.id


async def test_a_page_in_place_of_the_body_is_an_error(server: RawServer, connect: Connect) -> None:
    page = response(200, b"<html>sorry</html>", {"Content-Type": "text/html; charset=utf-8"})
    server.steps = [raw(page), answer(200, {"id": "x"})]
    async with await open_stream(connect(), server) as stream:
        assert [part async for part in stream] == [b'{"id": "x"}']
    server.steps = [raw(page)]
    with pytest.raises(APIResponseError, match="HTML"):
        await open_stream(connect(), server)


@pytest.mark.parametrize(
    ("limits", "error"),
    [({}, APIResponseError), ({"idle": 0.2}, APITimeoutError), ({"timeout": 0.3}, APITimeoutError)],
)
async def test_what_has_come_is_handed_out_before_the_failure_behind_it(
    server: RawServer, connect: Connect, limits: dict[str, float], error: type[APIError]
) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD + chunk(b"one"))
        await asyncio.sleep(0.02)
        await wire.send(chunk(b"two"))
        if limits:
            await wire.reader.read()
        wire.close()

    server.steps = [step]
    async with await open_stream(connect(), server, **limits) as stream:
        assert await stream.read() == b"one"
        await asyncio.sleep(0.5)  # the failure comes while nobody reads
        assert await stream.read() == b"two"
        with pytest.raises(error):
            await stream.read()


async def _slowly_read(stream: OpenStream) -> None:
    async for _ in stream:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("limits", "silence"), [({"timeout": 0.5, "idle": 60.0}, 0.0), ({"idle": 0.2}, 0.5)]
)
async def test_nothing_comes_behind_a_limit_that_has_passed(
    server: RawServer, connect: Connect, limits: dict[str, float], silence: float
) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD + chunk(b"one"))
        await asyncio.sleep(silence)
        for _number in range(100_000):  # always more than is read
            await wire.send(chunk(b"more" * 1000))
            await asyncio.sleep(0)

    server.steps = [step]
    async with await open_stream(connect(), server, **limits) as stream:
        await asyncio.sleep(1)
        with pytest.raises(APITimeoutError):
            await asyncio.wait_for(_slowly_read(stream), 5)


async def test_a_client_that_is_closed_ends_its_streams(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [slowly(HEAD + chunk(b"one"))]
    transport = connect()
    async with await open_stream(transport, server, idle=60) as stream:
        assert await stream.read() == b"one"
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0.05)
        await transport.aclose()
        with pytest.raises(APIError, match="client was closed"):
            await asyncio.wait_for(reading, 5)
