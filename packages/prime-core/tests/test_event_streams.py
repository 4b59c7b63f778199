"""Streams of events over a socket: how they are framed, and every way in which they end."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import pytest
from raw_server import RawServer, Received, Step, Wire, answer, raw, reset, response
from rows import KEY
from transports import Connect

from prime_core.calls import Call
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    PaymentRequiredError,
    RateLimitError,
    ServerError,
    StreamStateError,
)
from prime_core.event_streams import EventStream
from prime_core.models import ResponseModel
from prime_core.operations import Operation
from prime_core.streams import OpenStream
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")

STREAM = Operation("stream_things", "POST", "/api/v1/things", "unsafe")
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Inference-Id: inf-1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"
ONE = b'data: {"a":1}\n\n'
DONE = b"data: [DONE]\n\n"
FINISHED = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'


class Thing(ResponseModel):
    a: int | None = None


class Read(NamedTuple):
    """What came of a stream: its items, and its error if it ended with one."""

    items: list[Thing]
    error: APIError | None


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def events(*pieces: bytes) -> Step:
    """Answers with a body of such pieces, each in a packet of its own."""

    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        for piece in pieces:
            await wire.send(chunk(piece))
            await asyncio.sleep(0.002)
        await wire.send(END)

    return step


async def open_events(
    transport: AsyncTransport, *, idle: float = 5, complete: bool = False
) -> EventStream[Thing]:
    call: Call[OpenStream] = transport.prepare(STREAM, None, body=b"{}", idle=idle)
    return EventStream(await transport.perform(call), Thing, lambda: complete)


async def rest_of(stream: EventStream[Thing]) -> Read:
    items: list[Thing] = []
    while True:
        try:
            items.append(await stream.__anext__())
        except StopAsyncIteration:
            return Read(items, None)
        except APIError as error:
            with pytest.raises(StreamStateError):  # what comes behind an error is no end
                await stream.__anext__()
            return Read(items, error)


async def read(server: RawServer, connect: Connect, *pieces: bytes, complete: bool = False) -> Read:
    server.steps = [events(*pieces)]
    return await rest_of(await open_events(connect(), complete=complete))


CLEAN = {
    "S1": [ONE + DONE],
    "S2": [b'data:{"a":1}\r\n\r\ndata:[DONE]\r\n\r\n'],
    "S3": [b'data: {"a":1}\r\rdata: [DONE]\r\r'],
    "S4": [b": ping\n\n:\n\n" + ONE + DONE],
    "S5": [b'data: {"a":\ndata: 1}\n\n' + DONE],
    "S6": [bytes([byte]) for byte in ONE + DONE],
    "S7": [b'data: {"a":1}\r', b"\n\r\ndata: [DONE]\r\n\r\n"],
    "S8": [b"\xef\xbb\xbf" + ONE + DONE],
    "S9": [b"event: x\nid: 7\nretry: 10\n" + ONE + DONE],
    "S10": [b"data\n\ndata: \n\n" + ONE + DONE],
    "S17, with an event before": [ONE + DONE + ONE],
    "S18": [b'{"a":1}\n\n' + DONE],
    "no blank line behind the end": [ONE + b"data: [DONE]"],
}


@pytest.mark.parametrize("pieces", CLEAN.values(), ids=CLEAN)
async def test_one_item_and_a_clean_end(
    server: RawServer, connect: Connect, pieces: list[bytes]
) -> None:
    items, error = await read(server, connect, *pieces)
    assert ([item.a for item in items], error) == ([1], None)


async def test_s6_characters_cut_in_parts(server: RawServer, connect: Connect) -> None:
    text = 'data: {"a":1,"b":"é€😀"}\n\n'.encode() + DONE
    items, error = await read(server, connect, *[bytes([byte]) for byte in text])
    assert error is None
    assert [item.model_extra for item in items] == [{"b": "é€😀"}]


async def test_what_is_not_utf_8_is_replaced(server: RawServer, connect: Connect) -> None:
    text = b'data: {"a":1,"b":"\xff"}\n\n' + DONE
    items, error = await read(server, connect, text)
    assert error is None
    assert [item.model_extra for item in items] == [{"b": "\ufffd"}]
    _, error = await read(server, connect, b'data: {"error":"boom \xff"}\n\n')
    assert error is not None
    assert "boom \ufffd" in str(error)


async def test_s11_an_error_object_is_raised(server: RawServer, connect: Connect) -> None:
    items, error = await read(
        server, connect, b'data: {"error":{"message":"m","code":502}}\n\n', complete=True
    )
    assert items == []
    assert isinstance(error, ServerError)
    assert "m" in str(error)
    assert (error.code, error.status_code, error.operation) == ("502", 200, STREAM.id)
    assert (error.inference_id, error.attempts) == ("inf-1", 1)


async def test_an_error_names_the_inference_where_no_header_does(
    server: RawServer, connect: Connect
) -> None:
    text = b'{"error":{"message":"m"},"inference_id":"inf-9"}'
    _, error = await read(server, connect, b"data: " + text + b"\n\n")
    assert error is not None
    assert error.inference_id == "inf-1"  # the header's word goes first
    body = b"data: " + text + b"\n\n"
    head = HEAD.replace(b"X-Inference-Id: inf-1\r\n", b"")
    server.steps = [raw(head + chunk(body) + END), raw(response(400, text))]
    _, error = await rest_of(await open_events(connect()))
    assert error is not None
    assert error.inference_id == "inf-9"
    with pytest.raises(APIError) as caught:
        await open_events(connect())
    assert caught.value.inference_id == "inf-9"


async def test_s12_an_event_of_type_error_is_raised(server: RawServer, connect: Connect) -> None:
    text = ONE + b'event: error\ndata: {"message":"m"}\n\n'
    items, error = await read(server, connect, text, complete=True)
    assert [item.a for item in items] == [1]
    assert error is not None
    assert "with an error: m" in str(error)


async def test_s13_an_error_may_be_a_text(server: RawServer, connect: Connect) -> None:
    items, error = await read(server, connect, b'data: {"error":"boom"}\n\n', complete=True)
    assert items == []
    assert error is not None
    assert "boom" in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("429", RateLimitError), ('"insufficient_funds"', PaymentRequiredError), ("1", APIError)],
)
async def test_the_code_of_an_error_in_a_stream_names_its_class(
    server: RawServer, connect: Connect, code: str, kind: type[APIError]
) -> None:
    text = f'data: {{"error":{{"message":"m","code":{code}}}}}\n\n'.encode()
    _, error = await read(server, connect, text)
    assert type(error) is kind


async def test_an_error_that_says_nothing_is_none(server: RawServer, connect: Connect) -> None:
    text = b'data: {"a":1,"error":null}\n\ndata: {"a":2,"text":"\\"error\\""}\n\n' + DONE
    items, error = await read(server, connect, text)
    assert ([item.a for item in items], error) == ([1, 2], None)


async def test_s14_an_end_before_the_end_is_a_cut(server: RawServer, connect: Connect) -> None:
    items, error = await read(server, connect, b'data: {"a":1}')
    assert [item.a for item in items] == [1]
    assert isinstance(error, APIResponseError)
    assert "cut short" in str(error)
    assert "the platform may have done it" in str(error)
    assert error.inference_id == "inf-1"


async def test_s14b_an_end_without_done_when_all_is_there(
    server: RawServer, connect: Connect
) -> None:
    items, error = await read(server, connect, FINISHED, complete=True)
    assert (len(items), error) == (1, None)


@pytest.mark.parametrize("text", [b'data: {"a":', b"", b": ping\n\n"], ids=["S15", "S21", "ping"])
async def test_a_stream_without_an_item_is_a_cut(
    server: RawServer, connect: Connect, text: bytes
) -> None:
    items, error = await read(server, connect, *filter(None, [text]))
    assert items == []
    assert error is not None
    assert "cut short" in str(error)


@pytest.mark.parametrize("text", [b"data: [DONE]", DONE + ONE], ids=["S16", "S17"])
async def test_done_alone_is_a_clean_end(server: RawServer, connect: Connect, text: bytes) -> None:
    assert await read(server, connect, text) == ([], None)


@pytest.mark.parametrize("text", [b"data: {oops}\n\n", b"data: [1]\n\n", b"data: hello\n\n"])
async def test_s19_an_event_that_is_no_object_is_an_error(
    server: RawServer, connect: Connect, text: bytes
) -> None:
    items, error = await read(server, connect, text + ONE + DONE)
    assert items == []
    assert isinstance(error, APIResponseError)
    assert text[6:-2].decode() in str(error)


async def test_s20_an_event_may_hold_totals_alone(server: RawServer, connect: Connect) -> None:
    text = b'data: {"choices":[],"usage":{"total_tokens":3}}\n\n' + DONE
    items, error = await read(server, connect, text)
    assert error is None
    assert [(item.model_extra or {})["usage"] for item in items] == [{"total_tokens": 3}]


async def test_s22_an_error_answer_in_place_of_a_stream(
    server: RawServer, connect: Connect
) -> None:
    body = {"error": {"message": "empty", "code": "insufficient_funds"}}
    named = {"Content_Type": "text/event-stream", "X_Inference_Id": "inf-2"}
    server.steps = [answer(402, body, **named)]
    with pytest.raises(PaymentRequiredError, match="empty") as caught:
        await open_events(connect())
    assert (caught.value.code, caught.value.inference_id) == ("insufficient_funds", "inf-2")


async def test_s23_a_line_of_five_megabytes(server: RawServer, connect: Connect) -> None:
    text = b'data: {"a":1,"b":"' + b"x" * 5_000_000 + b'"}\n\n' + DONE
    items, error = await read(server, connect, text)
    assert error is None
    assert [len((item.model_extra or {})["b"]) for item in items] == [5_000_000]


async def test_the_key_that_a_server_echoes_is_not_shown(
    server: RawServer, connect: Connect
) -> None:
    for text in (f'{{"error":"no {KEY}"}}', f"oops {KEY}"):
        _, error = await read(server, connect, f"data: {text}\n\n".encode())
        assert error is not None
        assert KEY not in f"{error} {error.body}"
        assert "[redacted]" in str(error)


@pytest.mark.parametrize("status", [402, 429, 400])
async def test_an_empty_account_is_told_by_its_code_and_never_tried_again(
    server: RawServer, connect: Connect, status: int
) -> None:
    body = {"error": {"message": "empty", "code": "insufficient_funds"}}
    server.steps = [answer(status, body, Retry_After="0")]
    with pytest.raises(PaymentRequiredError, match="top up") as caught:
        await open_events(connect())
    assert (caught.value.status_code, len(server.requests)) == (status, 1)


async def test_one_object_in_place_of_a_stream_is_its_only_item(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(200, {"a": 1}, Content_Type="application/json; charset=utf-8")]
    items, error = await rest_of(await open_events(connect()))
    assert ([item.a for item in items], error) == ([1], None)
    server.steps = [answer(200, {"error": {"message": "m"}}, Content_Type="application/json")]
    items, error = await rest_of(await open_events(connect()))
    assert items == []
    assert error is not None


@pytest.mark.parametrize("body", [b"", b" \n"])
async def test_nothing_in_place_of_an_object_is_a_cut(
    server: RawServer, connect: Connect, body: bytes
) -> None:
    server.steps = [answer(200, body, Content_Type="application/json")]
    items, error = await rest_of(await open_events(connect(), complete=True))
    assert items == []
    assert "cut short" in str(error)


async def test_a_text_in_place_of_a_stream_is_quoted(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(200, b"upstream timeout " + b"x" * 500, Content_Type="text/plain")]
    items, error = await rest_of(await open_events(connect()))
    assert items == []
    assert 'no stream of events but text/plain: "upstream timeout xx' in str(error)
    assert "x" * 100 not in str(error)


async def test_a_connection_that_breaks_is_an_error_behind_what_came(
    server: RawServer, connect: Connect
) -> None:
    async def step(wire: Wire, request: Received) -> None:
        await wire.send(HEAD + chunk(ONE))
        await asyncio.sleep(0.05)
        await reset()(wire, request)

    server.steps = [step]
    items, error = await rest_of(await open_events(connect(), complete=True))
    assert [item.a for item in items] == [1]
    assert isinstance(error, (APIResponseError, APIConnectionError))
    assert len(server.requests) == 1


async def test_silence_ends_by_the_idle_limit_and_comments_are_none(
    server: RawServer, connect: Connect
) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        for _number in range(8):
            await wire.send(chunk(b": ping\n\n"))
            await asyncio.sleep(0.1)
        await wire.send(chunk(ONE))
        await wire.reader.read()

    server.steps = [step]
    began = time.monotonic()
    items, error = await rest_of(await open_events(connect(), idle=0.4))
    assert [item.a for item in items] == [1]
    assert isinstance(error, APITimeoutError)
    assert error.phase == "idle"
    assert 1.1 < time.monotonic() - began < 3


class Flood:
    """Answers with events without an end, and notes how much got away and when it was cut off."""

    def __init__(self) -> None:
        self.sent = 0
        self.gone = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def __call__(self, wire: Wire, _: Received) -> None:
        event = chunk(b'data: {"a":1,"b":"' + b"x" * 10_000 + b'"}\n\n')
        try:
            await wire.send(HEAD)
            while True:
                await wire.send(event)
                self.sent += len(event)
                await asyncio.sleep(0)
        finally:
            self._loop.call_soon_threadsafe(self.gone.set)


async def test_what_is_not_read_is_not_received(server: RawServer, connect: Connect) -> None:
    flood = Flood()
    server.steps = [flood]
    stream = await open_events(connect())
    await stream.__anext__()
    before = -1
    while flood.sent != before:  # until the network is full
        before = flood.sent
        await asyncio.sleep(0.1)
    assert flood.sent < 20_000_000  # sockets buffer some on both sides
    assert sum(map(len, stream.received)) < 1_000_000
    stream.close()
    await asyncio.wait_for(flood.gone.wait(), 1)


async def test_a_cancelled_reader_closes_the_connection_at_once(
    server: RawServer, connect: Connect
) -> None:
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD + chunk(ONE))
        await wire.reader.read()
        loop.call_soon_threadsafe(gone.set)
        wire.close()

    server.steps = [step]
    stream = await open_events(connect())
    await stream.__anext__()
    reading = asyncio.ensure_future(stream.__anext__())
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(gone.wait(), 1)


async def test_a_stream_that_is_dropped_gives_its_place_back(
    server: RawServer, connect: Connect
) -> None:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD + chunk(ONE))
        await wire.reader.read()

    server.steps = [step]
    transport = connect()
    free = transport._states.get().control._value
    stream = await open_events(transport)
    await stream.__anext__()
    assert transport._states.get().control._value == free - 1
    with pytest.warns(ResourceWarning, match="unread"):
        del stream
    await asyncio.sleep(0.01)
    assert transport._states.get().control._value == free


async def test_a_page_in_place_of_a_stream_is_an_error(server: RawServer, connect: Connect) -> None:
    server.steps = [raw(response(200, b"<html>", {"Content-Type": "text/html"}))]
    with pytest.raises(APIResponseError, match="HTML"):
        await open_events(connect())
