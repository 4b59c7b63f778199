"""Clients as objects: event loops, threads, processes, pickles, sharing, closing."""

from __future__ import annotations

import asyncio
import gc
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import LocalPlatform, PlatformProcess
from prime_sandboxes import (
    APIClient,
    APIError,
    AsyncAPIClient,
    AsyncSandboxClient,
    AsyncSandboxHandle,
    CommandTimeoutError,
    CreateSandboxRequest,
    SandboxClient,
    SandboxNotRunningError,
    SandboxOOMError,
    UnauthorizedError,
    ValidationError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

BOX = CreateSandboxRequest(name="box", docker_image="python:3.11-slim")


@pytest.fixture
def server(
    home: Path, prime_platform_server: PlatformProcess, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PlatformProcess]:
    """A platform in another process, for tests that have no event loop of their own."""
    prime_platform_server.reset()
    for name, value in prime_platform_server.env.items():
        monkeypatch.setenv(name, value)
    yield prime_platform_server
    prime_platform_server.reset()


def test_one_client_serves_many_event_loops_one_after_the_other(server: PlatformProcess) -> None:
    client = AsyncSandboxClient()

    async def use() -> str:
        created = await client.create(BOX)
        await client.wait_for_creation(created.id)
        return (await client.execute_command(created.id, "echo hi")).stdout

    for _ in range(3):
        assert asyncio.run(use()) == "hi\n"
    asyncio.run(client.aclose())


def test_one_client_serves_event_loops_in_several_threads(server: PlatformProcess) -> None:
    client = AsyncSandboxClient()
    made: list[str] = []

    def use() -> None:
        made.append(asyncio.run(client.create(BOX)).id)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4
    asyncio.run(client.aclose())


def test_the_sync_client_works_with_and_without_a_running_loop(server: PlatformProcess) -> None:
    with SandboxClient() as client:
        outside = client.create(BOX)

        async def inside() -> str:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                return client.get(outside.id).id

        assert asyncio.run(inside()) == outside.id
        assert client.get(outside.id).id == outside.id


async def test_shared_connections_are_closed_with_their_last_user(
    platform: LocalPlatform, running: Running
) -> None:
    connections = AsyncAPIClient()
    first = AsyncSandboxClient(client=connections)
    second = AsyncSandboxClient(client=connections)
    assert first.client is second.client is connections
    box = await running(first)
    work = asyncio.create_task(second.execute_command(box.id, "sleep 0.3; echo hi"))
    await asyncio.sleep(0.1)
    await first.aclose()
    assert (await work).stdout == "hi\n"
    await second.aclose()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        del first, second, connections
        gc.collect()
    assert [str(warning.message) for warning in told if "Prime" in str(warning.message)] == []


def test_the_documented_sync_client_takes_connections_first(server: PlatformProcess) -> None:
    with APIClient() as connections:
        client = SandboxClient(connections)
        created = client.create(BOX)
        assert connections.get(f"/sandbox/{created.id}")["id"] == created.id
        client.close()
        assert connections.get(f"/sandbox/{created.id}")["id"] == created.id


def test_key_and_connections_together_are_refused(home: Path) -> None:
    with pytest.raises(ValueError, match="not both"):
        AsyncSandboxClient("key", client=AsyncAPIClient("key"))


async def test_a_pickled_client_holds_no_key_and_finds_its_own(platform: LocalPlatform) -> None:
    async with AsyncSandboxClient() as client:
        created = await client.create(BOX)
        data = pickle.dumps((client, client.client, created))
        assert platform.api_key.encode() not in data
        copy, connections, box = pickle.loads(data)
        # What was shared is shared again.
        assert copy.client is connections
        assert box == created
        async with copy:
            assert (await copy.get(created.id)).id == created.id


def test_a_pickled_sync_client_works_in_another_process(server: PlatformProcess) -> None:
    with SandboxClient() as client:
        created = client.create(BOX)
        data = pickle.dumps((client, created.id))
    assert server.api_key.encode() not in data
    program = (
        "import pickle, sys\n"
        "client, sandbox_id = pickle.loads(sys.stdin.buffer.read())\n"
        "with client: print(client.get(sandbox_id).id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=data, capture_output=True, timeout=20, check=False
    )
    assert done.stdout.decode().strip() == created.id, done.stderr.decode()


async def test_a_pickled_handle_reaches_its_sandbox(platform: LocalPlatform) -> None:
    async with AsyncSandboxClient() as client:
        created = await client.create(BOX)
        await client.wait_for_creation(created.id)
        data = pickle.dumps(AsyncSandboxHandle(client, created))
        assert platform.api_key.encode() not in data
        assert b"gwt_" not in data
        handle = pickle.loads(data)
        assert handle.sandbox == created
        async with handle._client:
            assert (await handle.execute_command("echo hi")).stdout == "hi\n"


@pytest.mark.parametrize(
    "error",
    [
        SandboxOOMError("sbx_1", "ERROR", "OOM_KILLED", "make", "out of memory"),
        SandboxNotRunningError("sbx_1"),
        CommandTimeoutError("sbx_1", "sleep 9", 2.5, "out", "err"),
        UnauthorizedError("HTTP 401: no", status_code=401, request_id="r-1", operation="get"),
        ValidationError("HTTP 422: bad", problems=[("name", "Field required")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling_whole(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


async def test_a_client_can_be_closed_twice_and_used_again(platform: LocalPlatform) -> None:
    client = AsyncSandboxClient()
    await client.list()
    await client.aclose()
    await client.aclose()
    assert (await client.list()).total == 0
    await client.aclose()


async def test_a_client_that_is_dropped_open_says_so(platform: LocalPlatform) -> None:
    clients = [AsyncSandboxClient()]
    await clients[0].list()

    def drop() -> None:
        clients.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="unclosed Prime client"):
        drop()


async def test_no_representation_shows_a_key(platform: LocalPlatform) -> None:
    async with AsyncSandboxClient(platform.api_key) as client:
        sync = SandboxClient(APIClient(platform.api_key))
        for thing in (client, client.client, sync, sync.client, sync.client.config):
            assert platform.api_key not in repr(thing)
            assert platform.api_key not in str(thing)
        assert "AsyncSandboxClient(" in repr(client)
        assert repr(sync).startswith("SandboxClient(")


async def test_shared_connections_keep_the_settings_of_their_maker(
    platform: LocalPlatform,
) -> None:
    async with AsyncAPIClient("wrong-key-123") as connections:
        client = AsyncSandboxClient(client=connections)
        with pytest.raises(APIError, match=r"^HTTP 401"):
            await client.list()
