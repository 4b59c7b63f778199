"""Two thousand streams in one process: nothing is lost, and everything is given back."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from rows import KEY

from prime_core import AsyncAPIClient, Config
from prime_inference import AsyncInferenceClient

resource = pytest.importorskip("resource")

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAMS = 2000
CHUNKS = 8
SILENT = 200  # streams whose consumers never read
LARGE = "x" * 10_000


def framed(data: object) -> bytes:
    """An event in an HTTP chunk of its own."""
    event = b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


def piece(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return framed({"id": "c", "model": "m", "choices": [choice]})


END = piece("", "stop") + framed(b"[DONE]") + b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """A client's connection to a `Server`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = b""
        self.full = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.made += 1
        self._server.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open.discard(self)

    def pause_writing(self) -> None:
        self.full = True

    def data_received(self, data: bytes) -> None:
        self._received += data
        _, blank, body = self._received.partition(b"\r\n\r\n")
        if blank and body.endswith(b"}"):
            self._received = b""
            self.transport.write(HEAD)
            self._server.answer(self, json.loads(body)["messages"][0]["content"])


class Server:
    """Streams completions on the test's own loop, in one of three ways.

    Attributes:
        answer: what is done with a request, given its text.
        open: the connections that are open.
        made: how many were made.
    """

    def __init__(self) -> None:
        self.answer: Callable[[Connection, str], None] = self.tell
        self.open: set[Connection] = set()
        self.made = 0

    def tell(self, to: Connection, text: str, number: int = 0) -> None:
        """Sends the pieces of a completion that are the stream's own, a packet each."""
        if number == CHUNKS:
            to.transport.write(END)
            return
        to.transport.write(piece(f"{text}.{number} "))
        asyncio.get_running_loop().call_later(0.01, self.tell, to, text, number + 1)

    def begin(self, to: Connection, text: str) -> None:
        """Sends one piece and no more."""
        to.transport.write(piece(text))

    def flood(self, to: Connection, text: str) -> None:
        """Sends until nothing more is taken."""
        event = piece(LARGE)
        while not to.full:
            to.transport.write(event)
            if not to.transport.get_write_buffer_size():
                asyncio.get_running_loop().call_soon(self.flood, to, text)
                return


async def until(condition: Callable[[], bool], patience: float) -> None:
    """Waits until something holds at either end of the sockets; fails when it takes longer."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def descriptor_limit() -> Iterator[None]:
    """Room for both ends of all connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * STREAMS + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("both ends of so many connections exceed the hard limit of descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[AsyncInferenceClient]:
    """A client, after which nothing of it may be left open."""
    before = descriptors()
    listening = await asyncio.get_running_loop().create_server(
        lambda: Connection(server), "127.0.0.1", 0, backlog=STREAMS
    )
    host, port = listening.sockets[0].getsockname()
    config = Config(KEY, inference_url=f"http://{host}:{port}/api/v1")
    api_client = AsyncAPIClient(config=config)
    async with api_client, AsyncInferenceClient(client=api_client) as client:
        yield client
    listening.close()
    await until(lambda: not server.open, 2)
    await asyncio.sleep(0)  # the sockets themselves close an iteration later
    assert descriptors() <= before


def descriptors() -> int:
    gc.collect()
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def resident_bytes() -> int:
    status = Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("there is no /proc to read the memory from")
    pages = int(status.read_text().split()[1])
    size: int = pages * resource.getpagesize()
    return size


def held(client: AsyncInferenceClient) -> int:
    """How many places and connections are taken."""
    state = client.client._transport._states.get()
    connector = state.session.connector
    assert connector is not None
    places: int = state.stream_places - state.stream._value
    return places + len(connector._acquired)


async def read(client: AsyncInferenceClient, text: str) -> list[str | None]:
    messages = [{"role": "user", "content": text}]
    stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
    return [chunk.choices[0].delta.content async for chunk in stream]


async def test_each_stream_gets_all_of_its_own_and_leaves_a_connection_to_use_again(
    server: Server, client: AsyncInferenceClient
) -> None:
    for _ in range(2):
        streams = [read(client, str(number)) for number in range(STREAMS)]
        for number, pieces in enumerate(await asyncio.gather(*streams)):
            assert pieces == [*(f"{number}.{part} " for part in range(CHUNKS)), ""]
        assert held(client) == 0
        assert server.made == len(server.open) == STREAMS


async def test_cancelled_consumers_close_their_connections_at_once(
    server: Server, client: AsyncInferenceClient
) -> None:
    server.answer = server.begin
    begun: list[str | None] = []

    async def consume(number: int) -> None:
        messages = [{"role": "user", "content": str(number)}]
        stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
        async for chunk in stream:
            begun.append(chunk.choices[0].delta.content)

    consuming = [asyncio.ensure_future(consume(number)) for number in range(STREAMS)]
    await until(lambda: len(begun) == STREAMS, 20)
    assert len(server.open) == STREAMS
    for task in consuming:
        task.cancel()
    await until(lambda: not server.open, 2)
    ends = await asyncio.gather(*consuming, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)
    assert held(client) == 0


async def test_consumers_that_never_read_fill_no_memory(
    server: Server, client: AsyncInferenceClient
) -> None:
    server.answer = server.flood
    before = resident_bytes()
    messages = [{"role": "user", "content": "go on"}]
    streams = [
        await client.chat.completions.create(model="m", messages=messages, stream=True)
        for _ in range(SILENT)
    ]
    # Held up, not taken in.
    await until(lambda: all(connection.full for connection in server.open), 10)
    # aiohttp stops a connection at 512 KiB and has just read 256 KiB; the other end holds 64.
    assert resident_bytes() - before < SILENT * 1024 * 1024
    for stream in streams:
        await stream.aclose()
    await until(lambda: not server.open, 2)
    assert held(client) == 0
