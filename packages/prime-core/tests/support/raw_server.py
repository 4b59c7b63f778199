"""A server that is nothing but scripted bytes on a socket, on a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from typing_extensions import Self

PATIENCE = 10.0


@dataclass
class Received:
    """A request as it came in."""

    method: str
    target: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    connection: int
    at: float = field(default_factory=time.monotonic)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def raw_headers(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.headers.items())


class Wire:
    """The server's end of one connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.ended = False

    async def read_request(self, *, body: bool = True) -> Received | None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        data = await self._read_body(headers) if body else b""
        return Received(method, target, headers, data, self.number)

    async def _read_body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", 0)))
        data = b""
        while size := int(await self.reader.readline(), 16):
            data += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()
        return data

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Ends the connection with a TCP reset, as a crashed server or a NAT does."""
        self.ended = True
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.ended = True
        self.writer.close()


Step = Callable[[Wire, Received], Awaitable[None]]


def response(status: int, body: object = None, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of an answer; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head if status in (204, 304) else head + data


def answer(status: int = 200, body: object = None, **headers: str) -> Step:
    """Answers and keeps the connection; ``Retry_After`` is a header's name."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def step(wire: Wire, _: Received) -> None:
        await wire.send(response(status, body, named))

    return step


def raw(data: bytes, *, close: bool = True) -> Step:
    """Sends bytes as they are."""

    async def step(wire: Wire, _: Received) -> None:
        await wire.send(data)
        if close:
            wire.close()

    return step


def reset() -> Step:
    """Reads the request and resets the connection."""

    async def step(wire: Wire, _: Received) -> None:
        wire.reset()

    return step


def hang_up() -> Step:
    """Reads the request and closes the connection without an answer."""

    async def step(wire: Wire, _: Received) -> None:
        wire.close()

    return step


def silence() -> Step:
    """Never answers."""

    async def step(wire: Wire, _: Received) -> None:
        await wire.reader.read()
        wire.close()

    return step


def trickle(data: bytes, pause: float) -> Step:
    """Sends a byte at a time, without an end."""

    async def step(wire: Wire, _: Received) -> None:
        for byte in data:
            await wire.send(bytes([byte]))
            await asyncio.sleep(pause)
        await wire.reader.read()

    return step


def after(seconds: float, then: Step) -> Step:
    """Makes a step later."""

    async def step(wire: Wire, request: Received) -> None:
        await asyncio.sleep(seconds)
        await then(wire, request)

    return step


class Gate:
    """Holds steps back until it is opened, from any thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def open(self) -> None:
        self._event.set()

    def before(self, then: Step) -> Step:
        async def step(wire: Wire, request: Received) -> None:
            while not self._event.is_set():  # noqa: ASYNC110  (it is set by other threads)
                await asyncio.sleep(0.002)
            await then(wire, request)

        return step


class RawServer:
    """Answers requests by a script, and keeps what it received.

    Attributes:
        steps: what is done with each request, one after the other; the last is kept.
        respond: in place of ``steps``, chooses by the request.
        drop: how many of the next connections are reset at the first byte of a request.
        greeting: what is sent before a request is read, for servers of other protocols.
        read_bodies: whether a request's body is read before its step is made.
        requests: what came in, in order.
        connections: how many connections were accepted.
    """

    def __init__(self, *steps: Step, tls: ssl.SSLContext | None = None) -> None:
        self.steps = list(steps) or [answer()]
        self.respond: Callable[[Received], Step] | None = None
        self.drop = 0
        self.greeting = b""
        self.read_bodies = True
        self.requests: list[Received] = []
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.AbstractServer | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.up()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        return [f"{request.method} {request.target}" for request in self.requests]

    def up(self) -> None:
        """Listens, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE)

    def down(self) -> None:
        """Stops listening and ends every connection: new ones are refused."""
        asyncio.run_coroutine_threadsafe(self._unlisten(), self._loop).result(PATIENCE)

    def close(self) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def arrived(self, count: int) -> None:
        """Waits until so many requests have come in."""
        for _ in self._moments(count):
            await asyncio.sleep(0.002)

    def wait_for(self, count: int) -> None:
        """Waits until so many requests have come in, without a loop."""
        for _ in self._moments(count):
            time.sleep(0.002)

    def _moments(self, count: int) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE
        while len(self.requests) < count:
            assert time.monotonic() < deadline, f"{self.targets} instead of {count} requests"
            yield

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _unlisten(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for handler in self._handlers:
            handler.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        wire = Wire(reader, writer, self.connections)
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            if self.drop:
                self.drop -= 1
                # Something has been sent, and nobody reads on.
                if await reader.read(1):
                    wire.reset()
                wire.ended = True
            # Cancelled by `down`; a task of start_server that ends cancelled is reported.
            with contextlib.suppress(ConnectionError, EOFError, asyncio.CancelledError):
                await wire.send(self.greeting)
                while not wire.ended:
                    await self._answer(wire)
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _answer(self, wire: Wire) -> None:
        request = await wire.read_request(body=self.read_bodies)
        if request is None:
            return
        self.requests.append(request)
        if self.respond is not None:
            step = self.respond(request)
        else:
            step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        await step(wire, request)


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
