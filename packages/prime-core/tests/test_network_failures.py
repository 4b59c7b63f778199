"""What the network can do to a call, and which error says so."""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Iterator

import pytest
from raw_server import (
    RawServer,
    answer,
    closed_port,
    hang_up,
    raw,
    reset,
    response,
    silence,
    trickle,
)
from rows import CREATE, DELETE, POKE, READ
from transports import Connect

from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    NotFoundError,
)
from prime_core.operations import Operation
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")

OK = response(200, {"id": "t1"})


@pytest.fixture
def unreachable() -> Iterator[int]:
    """A port whose connections neither succeed nor fail: its backlog is full."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        time.sleep(0.02)
        yield port


async def failed(
    transport: AsyncTransport, operation: Operation = POKE, timeout: float | None = None
) -> APIError:
    path = {"thing_id": "x"} if operation is DELETE else None
    with pytest.raises(APIError) as caught:
        await transport.request(operation, path=path, timeout=timeout)
    return caught.value


async def test_a_refused_connection_was_surely_not_sent_and_is_tried_three_times(
    connect: Connect,
) -> None:
    port = closed_port()
    error = await failed(connect(f"http://127.0.0.1:{port}"))
    assert type(error) is APIConnectionError
    assert isinstance(error, ConnectionError)
    assert (error.sent, error.attempts, error.status_code) == ("no", 3, None)
    assert error.operation == "poke_thing"
    assert error.host == f"127.0.0.1:{port}"
    assert error.request_id
    assert "Connect call failed" in str(error)


async def test_an_unknown_name_is_a_connection_error(connect: Connect) -> None:
    error = await failed(connect("http://no-such-host.invalid"), timeout=5.0)
    assert type(error) is APIConnectionError
    assert error.sent == "no"
    assert "no-such-host.invalid" in str(error)


async def test_a_connection_that_is_never_made_ends_at_the_deadline(
    connect: Connect, unreachable: int
) -> None:
    started = time.monotonic()
    error = await failed(connect(f"http://127.0.0.1:{unreachable}"), timeout=0.4)
    assert time.monotonic() - started < 1.2
    assert isinstance(error, APITimeoutError)
    assert isinstance(error, TimeoutError)
    assert (error.phase, error.sent) == ("connect", "no")


@pytest.mark.parametrize(
    ("operation", "requests"), [(READ, 3), (CREATE, 3), (DELETE, 3), (POKE, 1)]
)
@pytest.mark.parametrize("way", ["reset", "hang up"])
async def test_a_connection_lost_before_the_answer_is_tried_again_where_that_is_safe(
    server: RawServer, connect: Connect, operation: Operation, requests: int, way: str
) -> None:
    server.steps = [{"reset": reset(), "hang up": hang_up()}[way]]
    error = await failed(connect(), operation)
    assert type(error) is APIConnectionError
    assert (error.sent, error.attempts) == ("unknown", requests)
    assert len(server.requests) == requests


async def test_a_connection_reset_before_the_request_is_read_may_have_carried_it(
    server: RawServer, connect: Connect
) -> None:
    server.drop = 1
    error = await failed(connect())
    assert isinstance(error, APIConnectionError)
    assert (error.sent, error.attempts) == ("unknown", 1)
    assert server.requests == []


@pytest.mark.parametrize("operation", [READ, CREATE, DELETE])
async def test_what_may_be_repeated_survives_connections_that_are_reset(
    server: RawServer, connect: Connect, operation: Operation
) -> None:
    server.drop = 2
    path = {"thing_id": "x"} if operation is DELETE else None
    await connect().request(operation, path=path)
    assert len(server.requests) == 1


async def test_a_kept_connection_that_died_is_an_attempt_like_any_other(
    server: RawServer, connect: Connect
) -> None:
    # A silent repetition inside the HTTP library would hide that a delete may be done.
    server.steps = [answer(), hang_up(), answer(404)]
    transport = connect()
    await transport.request(READ)
    assert await transport.request(DELETE, path={"thing_id": "x"}) == {}
    assert len(server.requests) == 3
    server.steps = [answer(), hang_up(), answer()]
    await transport.request(READ)
    error = await failed(transport, POKE)
    assert error.attempts == 1
    assert len(server.requests) == 5


@pytest.mark.parametrize("operation", [READ, POKE])
async def test_silence_ends_at_the_deadline_of_the_whole_call(
    server: RawServer, connect: Connect, operation: Operation
) -> None:
    server.steps = [silence()]
    started = time.monotonic()
    error = await failed(connect(), operation, timeout=0.3)
    assert 0.25 < time.monotonic() - started < 1.0
    assert isinstance(error, APITimeoutError)
    assert (error.phase, error.sent, error.attempts) == ("total", "unknown", 1)
    assert 0.25 < error.elapsed < 1.0
    assert "0.3 s" in str(error)


async def test_a_trickling_answer_does_not_outlive_the_deadline(
    server: RawServer, connect: Connect
) -> None:
    for data in (OK, response(500, {"detail": "x" * 100})):
        server.steps = [trickle(data, 0.02)]
        started = time.monotonic()
        error = await failed(connect(), READ, timeout=0.3)
        assert time.monotonic() - started < 1.0
        assert isinstance(error, APITimeoutError)


async def test_the_clients_timeout_holds_where_a_call_names_none(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence()]
    error = await failed(connect(timeout=0.2))
    assert isinstance(error, APITimeoutError)
    assert "0.2 s" in str(error)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan, math.inf])
async def test_a_call_without_time_or_without_end_is_refused(
    server: RawServer, connect: Connect, timeout: float
) -> None:
    with pytest.raises(ValueError, match="timeout is a number above 0"):
        await failed(connect(), timeout=timeout)
    assert server.connections == 0


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nXYZ\r\n",
        b"garbage\r\n\r\n",
        response(200, b"not json"),
    ],
    ids=["truncated", "bad chunk", "garbage", "not JSON"],
)
async def test_an_answer_that_cannot_be_read_is_asked_for_again_where_that_is_safe(
    server: RawServer, connect: Connect, reply: bytes
) -> None:
    server.steps = [raw(reply), raw(reply), answer(200, {"id": "t1"})]
    transport = connect()
    assert await transport.request(CREATE, body=b"{}", key="k1") == {"id": "t1"}
    assert [request.json["idempotency_key"] for request in server.requests] == ["k1"] * 3
    server.steps = [raw(reply)]
    error = await failed(transport, POKE)
    assert isinstance(error, APIResponseError)
    assert len(server.requests) == 4


async def test_a_definite_answer_ends_the_call_at_once(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(404, {"detail": "gone"})]
    error = await failed(connect(), READ)
    assert type(error) is NotFoundError
    assert error.attempts == 1


async def test_a_call_that_is_cancelled_ends_at_once_and_frees_its_connection(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence(), answer()]
    transport = connect(max_connections=1)
    task = asyncio.ensure_future(transport.request(READ))
    await server.arrived(1)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 0.2
    assert await transport.request(READ, timeout=2.0) == {}
