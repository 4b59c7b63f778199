"""Request bodies that are read while they are sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
from raw_server import RawServer, Received, Wire, after, answer, raw, reset, response, silence
from rows import KEY
from transports import Connect

from prime_core.calls import Body, Headers, Target
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    BadRequestError,
)
from prime_core.operations import Operation
from prime_core.transport import AsyncTransport
from prime_core.uploads import Upload

pytestmark = pytest.mark.usefixtures("quick_retries")

SEND = Operation("send_thing", "POST", "/send", "safe", pool="stream")
CHUNKS = [b"one ", b"two ", b"three"]
LARGE = b"x" * 65_536


def upload(
    *chunks: bytes, rewindable: bool = True, size: int | None = None, pause: float = 0
) -> Upload:
    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            await asyncio.sleep(pause)
            yield chunk

    return Upload(source, size=size, rewindable=rewindable)


def endless() -> Upload:
    async def source() -> AsyncIterator[bytes]:
        while True:
            yield LARGE

    return Upload(source, size=None, rewindable=True)


async def send(
    transport: AsyncTransport,
    server: RawServer,
    body: Upload,
    *,
    idle: float = 5,
    timeout: float | None = None,
) -> bytes:
    async def read(status: int, answered: Body) -> bytes:
        return await answered.read()

    target = Target.of(server.url, Headers({"Authorization": f"Bearer {KEY}"}))
    return await transport.perform(
        transport.prepare_elsewhere(
            SEND, read, target, headers={}, body=body, timeout=timeout, idle=idle
        )
    )


async def failed(
    transport: AsyncTransport, server: RawServer, body: Upload, **limits: float
) -> APIError:
    with pytest.raises(APIError) as caught:
        await send(transport, server, body, **limits)
    return caught.value


async def test_a_body_of_known_size_is_sent_under_its_length(
    server: RawServer, connect: Connect
) -> None:
    assert await send(connect(), server, upload(*CHUNKS, size=13)) == b"{}"
    (request,) = server.requests
    assert (request.headers["content-length"], request.body) == ("13", b"one two three")
    assert "transfer-encoding" not in request.headers


async def test_a_body_of_unknown_size_is_sent_in_chunked_encoding(
    server: RawServer, connect: Connect
) -> None:
    await send(connect(), server, upload(*CHUNKS))
    (request,) = server.requests
    assert request.headers["transfer-encoding"] == "chunked"
    assert request.body == b"one two three"


async def test_a_body_that_rewinds_is_sent_again_whole(server: RawServer, connect: Connect) -> None:
    server.steps = [reset(), answer(503), answer()]
    await send(connect(), server, upload(*CHUNKS))
    assert [request.body for request in server.requests] == [b"one two three"] * 3


async def test_a_body_that_cannot_rewind_is_sent_once(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(503, None, Retry_After="0"), answer()]
    error = await failed(connect(), server, upload(*CHUNKS, rewindable=False))
    assert (error.status_code, error.attempts, len(server.requests)) == (503, 1, 1)
    server.steps = [answer(500)]
    error = await failed(connect(), server, upload(*CHUNKS, rewindable=False))
    assert "pass it anew" in str(error)


async def test_a_body_that_cannot_rewind_is_repeated_where_it_was_not_begun(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [raw(response(200, {}, {"Connection": "close"})), answer()]
    transport, body = connect(), upload(*CHUNKS, rewindable=False)
    await send(transport, server, upload(b"first"))
    server.down()
    sending = asyncio.create_task(send(transport, server, body))
    await asyncio.sleep(0.2)
    server.up()
    await sending
    assert server.requests[-1].body == b"one two three"


@pytest.mark.parametrize("rewindable", [True, False])
async def test_what_the_source_raises_is_raised_and_nothing_is_repeated(
    server: RawServer, connect: Connect, rewindable: bool
) -> None:
    calls = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal calls
        calls += 1
        yield b"half"
        raise KeyError("no second half")

    with pytest.raises(KeyError, match="no second half"):
        await send(connect(), server, Upload(source, size=None, rewindable=rewindable))
    assert calls == 1


def closing(
    closed: asyncio.Event, *, wait: Callable[[], asyncio.Future[None]] | None = None
) -> Upload:
    """A body whose source says when it is closed; it waits after its first chunk, or never ends."""

    async def source() -> AsyncIterator[bytes]:
        try:
            while True:
                yield LARGE
                if wait is not None:
                    await wait()
        finally:
            closed.set()

    return Upload(source, size=None, rewindable=False)


def forever() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("wait", [None, forever], ids=["never ends", "stands still"])
async def test_an_early_error_answer_ends_the_upload_at_once(
    server: RawServer, connect: Connect, wait: Callable[[], asyncio.Future[None]] | None
) -> None:
    server.read_bodies = False

    async def refuse(wire: Wire, request: Received) -> None:
        await answer(400, {"detail": "not this"})(wire, request)
        while await wire.reader.read(65_536):
            pass
        wire.close()

    server.steps = [refuse]
    closed = asyncio.Event()
    began = time.monotonic()
    error = await failed(connect(), server, closing(closed, wait=wait), timeout=20)
    assert isinstance(error, BadRequestError), error
    assert time.monotonic() - began < 2
    await asyncio.wait_for(closed.wait(), 1)


@pytest.mark.parametrize("wait", [None, forever], ids=["never ends", "stands still"])
async def test_a_cancelled_upload_closes_its_source(
    server: RawServer, connect: Connect, wait: Callable[[], asyncio.Future[None]] | None
) -> None:
    server.read_bodies = False
    server.steps = [silence()] if wait is not None else [after(60, answer())]
    closed = asyncio.Event()
    sending = asyncio.create_task(send(connect(), server, closing(closed, wait=wait)))
    await server.arrived(1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await asyncio.wait_for(closed.wait(), 1)


async def test_a_receiver_that_stops_reading_ends_the_upload_by_its_idle_limit(
    server: RawServer, connect: Connect
) -> None:
    server.read_bodies = False
    server.steps = [after(30, answer())]
    began = time.monotonic()
    error = await failed(connect(), server, endless(), idle=0.3)
    assert isinstance(error, APITimeoutError)
    assert (error.phase, error.sent, error.attempts) == ("idle", "unknown", 1)
    assert 0.25 < time.monotonic() - began < 3


async def test_a_missing_answer_after_the_body_is_idle_too(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence()]
    error = await failed(connect(), server, upload(*CHUNKS), idle=0.3)
    assert isinstance(error, APITimeoutError)
    assert error.phase == "idle"


async def test_a_slow_source_is_not_idle(server: RawServer, connect: Connect) -> None:
    await send(connect(), server, upload(*CHUNKS, pause=0.5), idle=0.2)
    assert server.requests[0].body == b"one two three"


async def test_a_total_limit_ends_a_slow_source(server: RawServer, connect: Connect) -> None:
    body = upload(*CHUNKS, pause=0.5)
    error = await failed(connect(), server, body, idle=5, timeout=0.7)
    assert isinstance(error, APITimeoutError)
    assert error.phase == "total"


async def test_a_reset_in_the_middle_leaves_time_to_try_again(
    server: RawServer, connect: Connect
) -> None:
    server.read_bodies = False

    async def respond(wire: Wire, request: Received) -> None:
        if len(server.requests) == 1:
            await asyncio.sleep(0.6)  # longer than the idle limit, while the body is on its way
            wire.reset()
        else:
            await wire.reader.readuntil(b"0\r\n\r\n")
            await answer()(wire, request)

    server.steps = [respond]
    await send(connect(), server, upload(*CHUNKS, b"four", pause=0.3), idle=0.4)
    assert len(server.requests) == 2


async def test_an_upload_is_not_redirected(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(307, None, Location="/elsewhere"), answer()]
    error = await failed(connect(), server, upload(*CHUNKS))
    assert isinstance(error, APIResponseError)
    assert len(server.requests) == 1


async def test_a_refused_connection_ends_within_the_idle_limit(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await send(transport, server, upload(b"first"))
    server.down()
    began = time.monotonic()
    error = await failed(transport, server, upload(*CHUNKS), idle=0.5)
    server.up()
    assert isinstance(error, APIConnectionError)
    assert time.monotonic() - began < 3
