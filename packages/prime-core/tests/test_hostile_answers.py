"""Servers that mean harm, or are badly broken: nothing leaks, grows or storms."""

from __future__ import annotations

import pickle
import time

import pytest
from raw_server import RawServer, Received, Wire, answer, response
from rows import KEY, READ, Thing
from transports import Connect

from prime_core.errors import APIError, APIResponseError, RateLimitError
from prime_core.models import RequestModel, encode_request


async def test_a_key_that_the_server_echoes_is_cut_out_of_the_error(
    server: RawServer, connect: Connect
) -> None:
    async def echo(wire: Wire, request: Received) -> None:
        await wire.send(response(400, {"detail": f"bad request: {request.raw_headers}"}))

    server.steps = [echo]
    with pytest.raises(APIError) as caught:
        await connect().request(READ, Thing)
    error = caught.value
    assert "[redacted]" in str(error)
    for shown in (str(error), repr(error), str(error.body)):
        assert KEY not in shown
    assert KEY.encode() not in pickle.dumps(error)


async def test_control_sequences_of_a_server_do_not_reach_a_terminal(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(400, {"detail": "\x1b[2Jgone\x07\nnext"})]
    with pytest.raises(APIError) as caught:
        await connect().request(READ, Thing)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("retry_after", ["0", "-5", "0.001"])
async def test_a_server_that_always_says_now_is_not_asked_without_end(
    server: RawServer, connect: Connect, retry_after: str
) -> None:
    server.steps = [answer(429, {"detail": "slow down"}, Retry_After=retry_after)]
    began = time.monotonic()
    with pytest.raises(RateLimitError):
        await connect(max_throttle_wait=2.0).request(READ, Thing)
    assert len(server.requests) < 15
    assert time.monotonic() - began < 6


async def test_an_answer_without_end_is_given_up(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.decoding.MAX_ANSWER", 1_000_000)

    async def endless(wire: Wire, request: Received) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await wire.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    server.steps = [endless]
    with pytest.raises(APIResponseError, match="larger than"):
        await connect().request(READ, Thing)


def test_the_bytes_of_a_request_do_not_show_in_a_tracebacks_variables() -> None:
    class Secretive(RequestModel):
        secret: str

    body = encode_request(Secretive(secret="hunter2"))
    assert b"hunter2" in body
    assert "hunter2" not in repr(body)
