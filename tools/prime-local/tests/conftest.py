"""A raw HTTP client: these tests look at bytes, not through the SDK."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import sys
import time
import types
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

# The test folders are no packages; this one's helpers are modules of their own.
sys.path.insert(0, str(Path(__file__).parent / "support"))

from prime_local import LocalPlatform, PlatformProcess
from prime_local.sandboxes.isolation.base import WantedMode

# Connects to $1 port $2 and prints what it reads, or the error.
DIAL = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 5) as link:
        print(link.recv(100).decode() or "closed")
except OSError as error:
    print(type(error).__name__)
"""
START = "command_session.CommandSession/Start"
SIGNAL = "command_session.CommandSession/SendSignal"


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class CommandResult:
    """What a Start stream said, decoded from the JSON codec."""

    status: int
    events: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None
    body: Any = None

    def output(self, stream: str) -> str:
        pieces = [event["data"].get(stream, "") for event in self.events if "data" in event]
        return b"".join(base64.b64decode(piece) for piece in pieces).decode()

    @property
    def stdout(self) -> str:
        return self.output("stdout")

    @property
    def stderr(self) -> str:
        return self.output("stderr")

    @property
    def exit(self) -> dict[str, Any]:
        found: dict[str, Any] = self.events[-1]["end"]
        return found

    @property
    def exit_code(self) -> int:
        code: int = self.exit.get("exitCode", 0)
        return code

    @property
    def error_code(self) -> str | None:
        return self.end["error"]["code"] if self.end and "error" in self.end else None


class RawClient:
    def __init__(self, session: aiohttp.ClientSession, url: str, api_key: str) -> None:
        self.session = session
        self.url = url
        self.key = {"Authorization": f"Bearer {api_key}"}

    async def call(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Answer:
        data = None if body is None else json.dumps(body)
        async with self.session.request(
            method, self.url + path, data=data, headers=self.key if headers is None else headers
        ) as response:
            text = await response.read()
            parsed = json.loads(text) if response.content_type == "application/json" else text
            return Answer(response.status, parsed, dict(response.headers))

    async def create(self, **fields: object) -> dict[str, Any]:
        body = {"name": "box", "docker_image": "python:3.11-slim", **fields}
        answer = await self.call("POST", "/api/v1/sandbox", body)
        assert answer.status == 201, answer.body
        created: dict[str, Any] = answer.body
        return created

    def files(self, sandbox: dict[str, Any]) -> Files:
        return Files(self, sandbox)

    async def get(self, sandbox: dict[str, Any]) -> dict[str, Any]:
        answer = await self.call("GET", f"/api/v1/sandbox/{sandbox['id']}")
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.body
        return found

    async def until(self, sandbox: dict[str, Any], *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + 10
        while (found := await self.get(sandbox))["status"] not in states:
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.01)
        return found

    async def running(self, **fields: object) -> dict[str, Any]:
        created = await self.create(**fields)
        await self.until(created, "RUNNING")
        return created

    def gateway(self, sandbox: dict[str, Any], method: str = START) -> str:
        auth = sandbox["gatewayAuth"]
        return f"{auth['gateway_url']}/{auth['user_ns']}/{auth['job_id']}/{method}"

    def gateway_headers(self, sandbox: dict[str, Any], content_type: str) -> dict[str, str]:
        token = sandbox["gatewayAuth"]["token"]
        return {"Authorization": f"Bearer {token}", "Content-Type": content_type}

    def start(
        self,
        sandbox: dict[str, Any],
        script: str,
        *,
        timeout_ms: int | None = 20_000,
        session_uuid: str | None = None,
        **spec: object,
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open a Start stream with the JSON codec."""
        message: dict[str, Any] = {
            "command": {"cmd": "/bin/bash", "args": ["-c", script], **spec},
            "stdin": False,
        }
        if session_uuid is not None:
            message["sessionUuid"] = session_uuid
        headers = self.gateway_headers(sandbox, "application/connect+json")
        if timeout_ms is not None:
            headers["Connect-Timeout-Ms"] = str(timeout_ms)
        payload = json.dumps(message).encode()
        body = b"\0" + len(payload).to_bytes(4, "big") + payload
        return self.session.post(self.gateway(sandbox), data=body, headers=headers)

    async def run(self, sandbox: dict[str, Any], script: str, **options: Any) -> CommandResult:
        async with self.start(sandbox, script, **options) as response:
            return await read_stream(response)

    async def dial(self, sandbox: dict[str, Any], host: str, port: int) -> str:
        """Return the greeting that a sandbox reads from a port, or the name of the error."""
        result = await self.run(sandbox, f"python -I -S -c '{DIAL}' {host} {port}")
        assert result.exit_code == 0, result.stderr
        return result.stdout.strip()

    async def until_in_force(self, path: str, field: str) -> Any:
        """Read a network or outbound rules until they and all members are in force."""
        deadline = time.monotonic() + 10
        while True:
            found = (await self.call("GET", path)).body
            members = found.get("members") or ()
            if found[field] and all(member["synced"] for member in members):
                return found
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.02)

    async def signal(self, sandbox: dict[str, Any], **message: object) -> Answer:
        async with self.session.post(
            self.gateway(sandbox, SIGNAL),
            data=json.dumps(message),
            headers=self.gateway_headers(sandbox, "application/json"),
        ) as response:
            return Answer(response.status, await response.json(), dict(response.headers))


class Files:
    """File routes of one sandbox, over plain HTTP."""

    def __init__(self, client: RawClient, box: dict[str, Any]) -> None:
        self.client = client
        self.box = box
        self.token = box["gatewayAuth"]["token"]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def url(self, route: str, **query: object) -> str:
        return f"{self.client.gateway(self.box, route)}?{urllib.parse.urlencode(query)}"

    async def upload(self, path: str, content: Any = b"content", **query: object) -> Answer:
        form = aiohttp.FormData()
        form.add_field("file", content, filename="local.bin")
        return await self.send(self.url("upload", path=path, **query), form)

    async def send(self, url: str, data: Any, **headers: str) -> Answer:
        answer = self.client.session.post(url, data=data, headers={**self.headers, **headers})
        return await self._read(answer)

    async def get(self, route: str, path: str, **query: object) -> Answer:
        url = self.url(route, path=path, **query)
        return await self._read(self.client.session.get(url, headers=self.headers))

    async def read(self, path: str, **query: object) -> Answer:
        return await self.get("read-file", path, **query)

    async def download(self, path: str) -> Answer:
        return await self.get("download", path)

    async def run(self, script: str) -> str:
        result = await self.client.run(self.box, script)
        assert result.exit_code == 0, result
        return result.stdout

    async def _read(self, request: Any) -> Answer:
        async with request as response:
            data = await response.read()
            body = json.loads(data) if response.content_type == "application/json" else data
            return Answer(response.status, body, dict(response.headers))

    async def place(self) -> str:
        """The sandbox's working folder."""
        folder: str = (await self.client.get(self.box))["diskMountPath"]
        return folder


async def read_event(response: aiohttp.ClientResponse) -> tuple[int, dict[str, Any]]:
    head = await response.content.readexactly(5)
    payload = await response.content.readexactly(int.from_bytes(head[1:], "big"))
    return head[0], json.loads(payload)


async def read_stream(response: aiohttp.ClientResponse) -> CommandResult:
    result = CommandResult(response.status)
    if response.content_type == "application/json":
        result.body = await response.json()
        return result
    while True:
        flags, message = await read_event(response)
        if flags & 2:
            result.end = message
            assert await response.content.read() == b""
            return result
        result.events.append(message["event"])


async def exchange_raw(url: str, method: str, headers: dict[str, str], body: bytes) -> bytes:
    """Send a request over a bare socket; return every byte until the server closes it."""
    parts = urllib.parse.urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        lines = [f"{method} {parts.path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.transport.abort()


def process_exists(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be reaped does not."""
    try:
        # The first thread is a zombie before the others have ended, and given up their locks.
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" or len(threads) > 1


async def until_gone(pid: int, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while process_exists(pid):
        assert time.monotonic() < deadline, f"process {pid} still runs"
        await asyncio.sleep(0.01)


async def read_pid(path: Path) -> int:
    """Wait until a command has written a process id into a file."""
    deadline = time.monotonic() + 10
    while not (text := _text(path)).endswith("\n"):
        assert time.monotonic() < deadline, f"nothing in {path}"
        await asyncio.sleep(0.01)
    return int(text)


def wait_for_line(path: Path) -> str:
    """Wait, without an event loop, until a line has been written into a file."""
    deadline = time.monotonic() + 15
    while not (text := _text(path)).endswith("\n"):
        assert time.monotonic() < deadline, f"nothing in {path}"
        time.sleep(0.01)
    return text.strip()


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


Opened = tuple[LocalPlatform, RawClient]
OpenPlatform = Callable[..., Awaitable[Opened]]


@pytest.fixture
async def open_platform() -> AsyncIterator[OpenPlatform]:
    """Start platforms with options of the test's choice."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(**options: Any) -> Opened:
            platform = await stack.enter_async_context(LocalPlatform(**options))
            return platform, await stack.enter_async_context(_client(platform))

        yield start


@pytest.fixture
async def client(prime_platform: LocalPlatform) -> AsyncIterator[RawClient]:
    async with _client(prime_platform) as client:
        yield client


PlatformOfMode = Callable[[WantedMode], PlatformProcess]


@pytest.fixture(scope="session")
def platform_of_mode() -> Iterator[PlatformOfMode]:
    """Platforms without limits that isolate sandboxes: one a mode, shared by all tests.

    Where a mode does not work its tests are skipped, or fail if PRIME_REQUIRE_ISOLATION is set.
    """
    running: dict[WantedMode, PlatformProcess] = {}
    reasons: dict[WantedMode, str] = {}
    with contextlib.ExitStack() as stack:

        def find(mode: WantedMode) -> PlatformProcess:
            if mode not in running and mode not in reasons:
                try:
                    platform = PlatformProcess(["--no-limits"], isolation=mode)
                    running[mode] = stack.enter_context(platform)
                except RuntimeError as error:
                    reasons[mode] = str(error)
            if mode in reasons:
                require_or_skip(reasons[mode])
            return running[mode]

        yield find


@pytest.fixture
async def networked(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode
) -> AsyncIterator[RawClient]:
    """A client of a platform that enforces network rules, in the mode `full` or the parameter's."""
    require_network_tools()
    platform = platform_of_mode(getattr(request, "param", "full"))
    async with _client(platform) as client:
        yield client
    platform.reset()


def require_network_tools() -> None:
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nft")):
        require_or_skip("networks need root, ip and nft")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Refuse to leave out a test that needs isolation where isolation must be there."""
    if os.environ.get("PRIME_REQUIRE_ISOLATION"):
        words = ("test_isolation", "[full", "[bwrap")
        left_out = [each.nodeid for each in items if any(word in each.nodeid for word in words)]
        if left_out:
            raise pytest.UsageError(f"these must run here: {left_out}")


def require_or_skip(reason: str) -> None:
    """Skip a test that needs isolation, or fail it where isolation must be there."""
    if os.environ.get("PRIME_REQUIRE_ISOLATION"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.asynccontextmanager
async def _client(platform: LocalPlatform | PlatformProcess) -> AsyncIterator[RawClient]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield RawClient(session, platform.url, platform.api_key)


@pytest.fixture
async def files(client: RawClient) -> Files:
    return Files(client, await client.running())


@pytest.fixture(params=["process", "bwrap", "full"])
async def files_of_mode(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode
) -> AsyncIterator[Files]:
    """The file routes of a sandbox in each isolation mode."""
    mode: WantedMode = request.param
    async with _client(platform_of_mode(mode)) as client:
        yield Files(client, await client.running())


@pytest.fixture
def helpers() -> Any:
    """The functions of this file: test folders are no packages, so nothing can import it."""
    return types.SimpleNamespace(
        read_event=read_event,
        read_stream=read_stream,
        process_exists=process_exists,
        until_gone=until_gone,
        read_pid=read_pid,
        wait_for_line=wait_for_line,
        client_of=_client,
        exchange_raw=exchange_raw,
        require_or_skip=require_or_skip,
        require_network_tools=require_network_tools,
    )
