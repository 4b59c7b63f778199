"""Clients of a local platform, and servers that a test scripts byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from prime_local import FaultRule, IsolationError, LocalPlatform
from prime_sandboxes import (
    AsyncImageClient,
    AsyncSandboxClient,
    CreateSandboxRequest,
    Sandbox,
    SandboxClient,
    SandboxStatus,
)

ACCOUNT_VARIABLES = (
    "PRIME_API_KEY",
    "PRIME_TEAM_ID",
    "PRIME_USER_ID",
    "PRIME_CONTEXT",
    "PRIME_API_BASE_URL",
    "PRIME_BASE_URL",
)
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

T = TypeVar("T")
StartPlatform = Callable[..., Awaitable[LocalPlatform]]
Running = Callable[..., Awaitable[Sandbox]]
MakeContext = Callable[..., Path]
Requested = Callable[[LocalPlatform, str], Awaitable[None]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, in an environment that names no account and no proxy."""
    for name in ACCOUNT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
async def start_platform(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[StartPlatform]:
    """Starts platforms, by default without creation limits; the environment names the last."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> LocalPlatform:
            platform = LocalPlatform(**{"limits": False, **options})
            await stack.enter_async_context(platform)
            for name, value in platform.env.items():
                monkeypatch.setenv(name, value)
            return platform

        yield start


@pytest.fixture
async def platform(start_platform: StartPlatform) -> LocalPlatform:
    return await start_platform()


@pytest.fixture
def start_isolated(start_platform: StartPlatform) -> StartPlatform:
    """Starts platforms in the weakest isolation that has mounts.

    Where that does not work the test is skipped, or fails if PRIME_REQUIRE_ISOLATION is set.
    """

    async def start(**options: Any) -> LocalPlatform:
        try:
            return await start_platform(**{"isolation": "bwrap", **options})
        except IsolationError as error:
            if os.environ.get("PRIME_REQUIRE_ISOLATION"):
                raise
            pytest.skip(str(error))

    return start


@pytest.fixture
async def client(platform: LocalPlatform) -> AsyncIterator[AsyncSandboxClient]:
    async with AsyncSandboxClient() as client:
        yield client


@pytest.fixture
def context(tmp_path: Path) -> MakeContext:
    """Makes a build context with a Dockerfile."""

    def make(dockerfile: str = "FROM python:3.11-slim\nENV GREETING=hello\n") -> Path:
        folder = tmp_path / "context"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(dockerfile)
        return folder

    return make


@pytest.fixture
async def images(platform: LocalPlatform) -> AsyncIterator[AsyncImageClient]:
    async with AsyncImageClient() as client:
        yield client


class InThread:
    """A sync client with the async one's face: each call runs in a thread."""

    def __init__(self, client: Any) -> None:
        self._client = client

    @property
    def volumes(self) -> InThread:
        return InThread(self._client.volumes)

    def clear_auth_cache(self) -> None:
        self._client.clear_auth_cache()

    def iter(self, *args: Any, **options: Any) -> AsyncIterator[Sandbox]:
        return self._steps(self._client.iter(*args, **options))

    def iter_file(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:
        return self._steps(self._client.iter_file(*args, **options))

    async def _steps(self, items: Iterator[T]) -> AsyncIterator[T]:
        assert isinstance(items, Generator)
        try:
            while (item := await asyncio.to_thread(next, items, None)) is not None:
                yield item
        finally:
            await asyncio.to_thread(items.close)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._client, name)

        async def call(*args: Any, **options: Any) -> Any:
            return await asyncio.to_thread(method, *args, **options)

        return call


@pytest.fixture(params=["async", "sync"])
async def either(
    request: pytest.FixtureRequest, platform: LocalPlatform
) -> AsyncIterator[AsyncSandboxClient]:
    """The async client, then the sync one; tests see one face."""
    if request.param == "async":
        async with AsyncSandboxClient() as client:
            yield client
        return
    sync = SandboxClient()
    try:
        yield cast(AsyncSandboxClient, InThread(sync))
    finally:
        await asyncio.to_thread(sync.close)


@pytest.fixture
def requested() -> Requested:
    """Waits until a platform has got a request to an operation."""

    async def wait(platform: LocalPlatform, operation: str) -> None:
        deadline = time.monotonic() + 10
        while not platform.ledger()["requests"].get(operation):
            assert time.monotonic() < deadline, f"no request to {operation}"
            await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has waits ask twenty times a second."""
    monkeypatch.setattr("prime_core.polling.TICK", 0.05)
    monkeypatch.setattr("prime_core.polling.TICK_JITTER", 0.005)
    monkeypatch.setattr("prime_core.polling.FIRST_INTERVAL", 0.05)
    monkeypatch.setattr("prime_core.polling.LONGEST_INTERVAL", 0.1)


@pytest.fixture
def running() -> Running:
    """Makes a sandbox and returns it once it runs."""

    async def make(client: AsyncSandboxClient, **fields: Any) -> Sandbox:
        wanted: dict[str, Any] = {"name": "box", "docker_image": "python:3.11-slim", **fields}
        sandbox = await client.create(CreateSandboxRequest(**wanted))
        deadline = time.monotonic() + 10
        while sandbox.status != SandboxStatus.RUNNING:
            assert time.monotonic() < deadline, sandbox
            await asyncio.sleep(0.01)
            sandbox = await client.get(sandbox.id)
        return sandbox

    return make


@dataclass(frozen=True)
class Received:
    """A request as a scripted server got it; names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class ScriptedServer:
    """Gives each request the next of its scripted answers, byte by byte, and hangs up.

    Requests beyond the script get a 500.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.url = ""
        self._script: list[tuple[bytes, bool]] = []
        self._connections: set[asyncio.Task[None]] = set()

    def answer(self, data: bytes, *, reset: bool = False) -> None:
        """Adds an answer; after it the connection is closed, or reset."""
        self._script.append((data, reset))

    def answer_json(self, status: int, body: object) -> None:
        self.answer(self.head(status, "application/json") + json.dumps(body).encode())

    def answer_stream(self, *envelopes: bytes) -> None:
        """Adds a command stream."""
        self.answer(self.head(200, "application/connect+proto") + b"".join(envelopes))

    @staticmethod
    def head(status: int, content_type: str, *fields: str) -> bytes:
        """The head of an answer whose end is the connection's."""
        lines = [f"HTTP/1.1 {status} Scripted", f"Content-Type: {content_type}", *fields]
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode()

    @staticmethod
    def envelope(payload: bytes, flags: int = 0) -> bytes:
        return struct.pack(">BI", flags, len(payload)) + payload

    def end(self, error: object = None) -> bytes:
        """The envelope that ends a stream."""
        body = {} if error is None else {"error": error}
        return self.envelope(json.dumps(body).encode(), 2)

    def token_fault(self, **options: Any) -> FaultRule:
        """A rule by which the platform hands out tokens for this server."""
        auth = {
            "gateway_url": self.url,
            "user_ns": "ns-1",
            "job_id": "job-1",
            "token": "gwt_scripted",
            "expires_at": "2099-01-01T00:00:00Z",
        }
        return FaultRule("create_sandbox_auth_token", status=200, body=json.dumps(auth), **options)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            request, *fields = head.strip().split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (field.partition(":") for field in fields)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = request.split(" ")
            self.received.append(Received(method, path, headers, body))
            data, reset = self._script.pop(0) if self._script else (self.head(500, "x/y"), False)
            writer.write(data)
            await writer.drain()
            if reset:
                await asyncio.sleep(0.05)  # the data must arrive before the reset
                connection = writer.get_extra_info("socket")
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                writer.transport.abort()
        writer.close()

    async def close(self) -> None:
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)


@pytest.fixture
async def scripted(home: Path) -> AsyncIterator[ScriptedServer]:
    """A server that answers as the test says."""
    script = ScriptedServer()
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        server.close()
        await script.close()
        await server.wait_closed()
