"""Proxies, certificates and descriptors, through the async and the sync client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from cells import KEY, SANDBOX, SANDBOX_ID, sound_answer
from certificates import Authority
from programs import run
from raw_server import RawServer, after, answer

from prime_core import APIClient, APIConnectionError, AsyncAPIClient, Config
from prime_sandboxes import AsyncSandboxClient, Sandbox, SandboxClient

pytestmark = pytest.mark.usefixtures("clean_environment")

Get = Callable[..., Awaitable[Sandbox]]


@pytest.fixture(params=["async", "sync"])
def get(request: pytest.FixtureRequest) -> Get:
    """Reads a sandbox with a client of its own."""

    async def by_async_client(base_url: str, **settings: Any) -> Sandbox:
        connections = AsyncAPIClient(config=Config(KEY, base_url=base_url), **settings)
        async with AsyncSandboxClient(client=connections) as client:
            return await client.get(SANDBOX_ID)

    def by_sync_client(base_url: str, **settings: Any) -> Sandbox:
        connections = APIClient(config=Config(KEY, base_url=base_url), **settings)
        with SandboxClient(connections) as client:
            return client.get(SANDBOX_ID)

    async def in_a_thread(base_url: str, **settings: Any) -> Sandbox:
        return await asyncio.to_thread(by_sync_client, base_url, **settings)

    return by_async_client if request.param == "async" else in_a_thread


def sound(server: RawServer) -> RawServer:
    server.respond = lambda request: sound_answer(request, server.url)
    return server


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        yield sound(server)


@pytest.fixture
def secure(authority: Authority) -> Iterator[RawServer]:
    with RawServer(tls=authority.server) as server:
        yield sound(server)


async def test_the_proxy_of_the_environment_is_used(
    get: Get, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer(answer(200, SANDBOX)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        assert (await get("http://api.invalid")).id == SANDBOX_ID
        address = f"http://api.invalid/api/v1/sandbox/{SANDBOX_ID}"
        assert [request.target for request in proxy.requests] == [address]


async def test_a_host_of_no_proxy_is_called_directly(
    get: Get, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RawServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert (await get(server.url)).id == SANDBOX_ID
        assert proxy.connections == 0


async def test_a_private_ca_is_trusted_by_context(
    get: Get, secure: RawServer, authority: Authority
) -> None:
    assert (await get(secure.url, ssl_context=authority.client)).id == SANDBOX_ID


async def test_an_unknown_ca_is_a_typed_error_that_tells_what_to_do(
    get: Get, secure: RawServer
) -> None:
    with pytest.raises(APIConnectionError, match=r"SSL_CERT_FILE|ssl_context") as caught:
        await get(secure.url)
    assert (caught.value.sent, caught.value.attempts) == ("no", 1)
    assert secure.requests == []


IMPORTS = """
import asyncio, os, resource, sys
from concurrent.futures import ThreadPoolExecutor
from prime_core import APIClient, AsyncAPIClient, Config
from prime_sandboxes import AsyncSandboxClient, SandboxClient

config = Config(sys.argv[1], base_url=sys.argv[2])
"""

ONE_ASYNC = """
async def main():
    async with AsyncSandboxClient(client=AsyncAPIClient(config=config)) as client:
        print((await client.get("sbx-1")).id)
asyncio.run(main())
"""
ONE_SYNC = """
with SandboxClient(APIClient(config=config)) as client:
    print(client.get("sbx-1").id)
"""


@pytest.mark.parametrize("program", [ONE_ASYNC, ONE_SYNC], ids=["async", "sync"])
def test_a_private_ca_is_trusted_by_environment(
    secure: RawServer, authority: Authority, program: str
) -> None:
    environment = {"SSL_CERT_FILE": str(authority.file)}
    done = run(IMPORTS + program, KEY, secure.url, env=environment)
    assert (done.code, done.out, done.err) == (0, SANDBOX_ID, "")


# More calls and more commands at once than a process may have descriptors.
MANY_ASYNC = """
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

async def main():
    async with AsyncSandboxClient(client=AsyncAPIClient(config=config)) as client:
        calls = [client.get("sbx-1") for _ in range(300)]
        commands = [client.execute_command("sbx-1", "true") for _ in range(400)]
        done = await asyncio.gather(*calls, *commands, return_exceptions=True)
    print(sum(not isinstance(one, BaseException) for one in done))
asyncio.run(main())
"""
MANY_SYNC = """
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

with SandboxClient(APIClient(config=config)) as client, ThreadPoolExecutor(700) as threads:
    calls = [threads.submit(client.get, "sbx-1") for _ in range(300)]
    commands = [threads.submit(client.execute_command, "sbx-1", "true") for _ in range(400)]
    print(sum(one.exception() is None for one in [*calls, *commands]))
"""


@pytest.mark.parametrize("program", [MANY_ASYNC, MANY_SYNC], ids=["async", "sync"])
def test_a_limit_of_256_descriptors_is_kept_by_waiting(server: RawServer, program: str) -> None:
    pytest.importorskip("resource")
    # Slow enough for all to be under way at once.
    server.respond = lambda request: after(0.3, sound_answer(request, server.url))
    done = run(IMPORTS + program, KEY, server.url)
    assert (done.code, done.out) == (0, "700"), done.err
