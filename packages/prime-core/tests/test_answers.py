"""What becomes of an answer, however it looks."""

from __future__ import annotations

import asyncio
import gzip
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_server import RawServer, Received, Wire, answer, raw, reset, response, silence
from rows import DELETE, POKE, READ, Thing
from transports import Connect, transport_to

from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    RateLimitError,
    ServerError,
    UnauthorizedError,
)
from prime_core.transport import AsyncTransport

MEGABYTE = 1_000_000


async def failed(transport: AsyncTransport, timeout: float | None = None) -> APIError:
    """The error of a call that is made once."""
    with pytest.raises(APIError) as caught:
        await transport.request(POKE, Thing, timeout=timeout)
    return caught.value


async def test_an_answer_becomes_its_model_and_keeps_unknown_fields(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(200, {"id": "t1", "new": [1]})]
    thing = await connect().request(READ, Thing)
    assert thing.id == "t1"
    assert thing.model_extra == {"new": [1]}


@pytest.mark.parametrize(
    "reply",
    [
        response(204),
        response(200, b""),
        response(200, b" \n"),
        response(201, b"{}"),
        response(202, {}),
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    ],
)
async def test_a_success_without_content_is_an_empty_object(
    server: RawServer, connect: Connect, reply: bytes
) -> None:
    server.steps = [raw(reply, close=False)]
    transport = connect()
    assert await transport.request(DELETE, path={"thing_id": "x"}) == {}
    assert await transport.request(DELETE, path={"thing_id": "x"}) == {}
    assert server.connections == 1


async def test_an_answer_without_a_length_ends_with_the_connection(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [raw(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"id": "t1"}')]
    assert (await connect().request(READ, Thing)).id == "t1"


async def test_a_compressed_answer_is_read(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(200, gzip.compress(b'{"id": "t1"}'), Content_Encoding="gzip")]
    assert (await connect().request(READ, Thing)).id == "t1"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[1]", "expected a JSON object, got list"),
        (b"null", "NoneType"),
        (b'"text"', "str"),
        (b"\xff\xfe", ""),
        (b'{"id": "t1"', ""),
        (b"<html><body>Welcome</body></html>", "HTML"),
        (b"[" * 100_000, ""),
    ],
    ids=["list", "null", "text", "not UTF-8", "cut off", "HTML", "deeply nested"],
)
async def test_a_success_that_is_no_json_object_is_a_typed_error(
    server: RawServer, connect: Connect, body: bytes, says: str
) -> None:
    server.steps = [answer(200, body)]
    with pytest.raises(APIResponseError, match="HTTP 200") as caught:
        await connect().request(POKE)
    assert says in str(caught.value)
    assert caught.value.status_code == 200
    assert caught.value.operation == "poke_thing"
    assert len(server.requests) == 1


async def test_a_success_of_another_shape_names_the_field_and_quotes_nothing(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(200, {"id": {"token": "hidden-value"}})]
    error = await failed(connect())
    assert type(error) is APIResponseError
    assert "id: " in str(error)
    assert "hidden-value" not in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nXYZ\r\n{}\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    ],
    ids=["cut short", "chunk cut short", "bad chunk", "not gzip"],
)
async def test_a_body_that_breaks_off_or_is_garbled_is_a_typed_error(
    server: RawServer, connect: Connect, reply: bytes
) -> None:
    server.steps = [raw(reply)]
    error = await failed(connect())
    assert type(error) is APIResponseError
    assert (error.operation, error.host) == ("poke_thing", f"127.0.0.1:{server.port}")
    assert len(server.requests) == 1


async def test_a_bad_chunk_further_on_is_noticed_at_once(
    server: RawServer, connect: Connect
) -> None:
    async def step(wire: Wire, request: Received) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
        await asyncio.sleep(0.02)
        await wire.send(b"XYZ\r\n")
        await wire.reader.read()

    server.steps = [step]
    started = time.monotonic()
    error = await failed(connect(), timeout=5.0)
    assert time.monotonic() - started < 2.0
    assert type(error) is APIResponseError
    assert "chunk size" in str(error)


@pytest.mark.parametrize(
    "reply",
    [
        b"\x16\x03\x01\x02\x00garbage\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 banana OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nBroken header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
    ids=["binary", "SSH", "no status", "bad header", "bad length", "huge header"],
)
async def test_what_is_not_http_is_a_typed_error(
    server: RawServer, connect: Connect, reply: bytes
) -> None:
    server.steps = [raw(reply)]
    error = await failed(connect())
    assert type(error) is APIResponseError
    assert error.status_code is None
    assert len(server.requests) == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_for_an_answer_are_a_typed_error_or_none(
    server: RawServer, data: bytes, with_status: bool
) -> None:
    prefix = b"HTTP/1.1 200 OK\r\n" if with_status else b""
    server.steps = [raw(prefix + data)]

    async def main() -> None:
        transport = transport_to(server.url)
        try:
            await transport.request(POKE, timeout=2.0)
        except APIError:
            pass
        finally:
            await transport.aclose()

    asyncio.run(main())


async def test_of_a_huge_error_body_only_the_start_is_read(
    server: RawServer, connect: Connect
) -> None:
    sent = 0

    async def step(wire: Wire, request: Received) -> None:
        nonlocal sent
        await wire.send(b"HTTP/1.1 400 Bad\r\nContent-Length: 10000000\r\n\r\n")
        for _ in range(100):
            await wire.send(b"x" * 100_000)
            sent += 100_000

    server.steps = [step, answer(200, {"id": "t1"})]
    transport = connect()
    error = await failed(transport)
    assert type(error) is BadRequestError
    assert error.body == "x" * 65_536
    assert len(str(error)) < 600
    assert sent < 8 * MEGABYTE, "the rest stays in the network"
    assert (await transport.request(READ, Thing)).id == "t1"


async def test_a_large_answer_is_read_whole(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(200, json.dumps({"id": "x" * 10 * MEGABYTE}).encode())]
    assert len((await connect().request(READ, Thing)).id) == 10 * MEGABYTE


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, UnauthorizedError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (429, RateLimitError),
        (500, ServerError),
    ],
)
@pytest.mark.parametrize("broken", ["cut", "reset", "silent"])
async def test_an_error_answer_whose_body_breaks_off_keeps_its_status(
    server: RawServer, connect: Connect, status: int, kind: type[APIError], broken: str
) -> None:
    head = f"HTTP/1.1 {status} Sorry\r\nContent-Length: 1000\r\nRetry-After: 999\r\n\r\nwhy"

    async def step(wire: Wire, request: Received) -> None:
        await wire.send(head.encode())
        if broken == "reset":
            await asyncio.sleep(0.02)
        ends = {"cut": raw(b""), "reset": reset(), "silent": silence()}
        await ends[broken](wire, request)

    server.steps = [step]
    started = time.monotonic()
    error = await failed(connect(), timeout=0.3)
    assert time.monotonic() - started < 2
    assert type(error) is kind
    assert (error.status_code, error.retry_after, error.body) == (status, 999.0, "why")
    assert len(server.requests) == 1


async def test_errors_name_operation_host_request_id_and_effort(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(418, {"detail": "teapot"}, X_Request_Id="r-9")]
    error = await failed(connect())
    assert str(error).startswith(
        f"HTTP 418: teapot (poke_thing, 127.0.0.1:{server.port}, request id r-9, 1 attempt in 0."
    )


def test_an_error_that_is_not_about_a_call_prints_its_message_alone() -> None:
    assert str(APIError("nothing known")) == "nothing known"
    assert str(APIConnectionError("no route", sent="no")) == "no route"
