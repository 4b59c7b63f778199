"""The two sides of a comparison: our client, and aiohttp with the same bytes and headers."""

from __future__ import annotations

import json
import platform
import ssl
from typing import Protocol

import aiohttp

from prime_core import AsyncAPIClient, Config
from prime_sandboxes import AsyncSandboxClient, CreateSandboxRequest

__all__ = ["KEY", "UNPACED", "Side", "connect", "open_side", "sandbox_request"]

KEY = "bench-key"
USER_AGENT = "prime-sandboxes/0.1.0"
UNPACED = {"sandbox-create": None}


def sandbox_request(name: str = "bench") -> CreateSandboxRequest:
    return CreateSandboxRequest(name=name, docker_image="python:3.11-slim", labels=["bench"])


def connect(
    url: str, key: str = KEY, connections: int = 128, certificate: str | None = None
) -> AsyncSandboxClient:
    """Our client, unpaced."""
    return AsyncSandboxClient(
        client=AsyncAPIClient(
            user_agent=USER_AGENT,
            config=Config(key, base_url=url),
            limits=UNPACED,
            max_connections=connections,
            ssl_context=trust(certificate),
        )
    )


def trust(certificate: str | None) -> ssl.SSLContext | None:
    return None if certificate is None else ssl.create_default_context(cafile=certificate)


class Side(Protocol):
    """A client that creates sandboxes."""

    async def create(self) -> object: ...

    async def aclose(self) -> None: ...


class Ours:
    """Our client; one request object for all creates, as a fleet has."""

    def __init__(self, url: str, connections: int, certificate: str | None) -> None:
        self._client = connect(url, connections=connections, certificate=certificate)
        self._request = sandbox_request()

    async def create(self) -> object:
        return await self._client.create(self._request)

    async def aclose(self) -> None:
        await self._client.aclose()
        await self._client.client.aclose()


RAW_HEADERS = {
    "User-Agent": f"{USER_AGENT} python/{platform.python_version()}",
    "Accept": "application/json",
    "Authorization": f"Bearer {KEY}",
    "X-Request-Id": "0123456789abcdef0123-fff",
    "Content-Type": "application/json",
}
RAW_BODY = (
    b'{"idempotency_key":"0123456789abcdef0123456789abcdef","name":"bench",'
    b'"docker_image":"python:3.11-slim","cpu_cores":1.0,"memory_gb":1.0,"disk_size_gb":5.0,'
    b'"gpu_count":0,"timeout_minutes":60,"labels":["bench"],"vm":true}'
)


class Raw:
    """aiohttp as it comes, but for the number of connections."""

    def __init__(self, url: str, connections: int, certificate: str | None) -> None:
        self._url = f"{url}/api/v1/sandbox"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, ssl=trust(certificate) or True)
        )

    async def create(self) -> object:
        async with self._session.post(self._url, data=RAW_BODY, headers=RAW_HEADERS) as response:
            return json.loads(await response.read())

    async def aclose(self) -> None:
        await self._session.close()


def open_side(
    name: str, url: str, *, connections: int, certificate: str | None = None
) -> Ours | Raw:
    """The client of a side, ``ours`` or ``raw``; to be called on its event loop."""
    side = Ours if name == "ours" else Raw
    return side(url, connections, certificate)
