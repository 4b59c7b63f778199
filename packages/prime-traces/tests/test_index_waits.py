"""Waiting for the index of a trace."""

from __future__ import annotations

import asyncio
import time

import pytest
from raw_server import RawServer, Received, Step, answer

from prime_traces import AsyncTracesClient, NotFoundError, TraceNotIndexedError

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.usefixtures("quick_retries", "quick_polls"),
]

PENDING = answer(409, {"error": {"code": "trace_not_indexed", "message": "being built"}})
EMPTY = answer(200, {"items": [], "next_cursor": None, "partial_index": False})


async def test_nobody_waits_who_does_not_ask_to(
    either: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [PENDING]
    with pytest.raises(TraceNotIndexedError, match="being built"):
        await either.list_nodes("tr-1")
    with pytest.raises(TraceNotIndexedError):
        await either.list_calls("tr-1")
    assert len(server.requests) == 2


async def test_a_wait_ends_when_the_index_is_built(
    either: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [PENDING, PENDING, answer(502), PENDING, EMPTY]
    page = await either.list_calls("tr-1", model="m", wait_for_index=10)
    assert page.items == []
    assert server.targets[0] == server.targets[-1] == "GET /api/v1/traces/tr-1/calls?model=m"
    assert set(server.targets[1:-1]) == {"GET /api/v1/traces/tr-1/nodes?limit=1"}


async def test_a_wait_for_an_index_has_an_end(client: AsyncTracesClient, server: RawServer) -> None:
    server.steps = [PENDING]
    began = time.monotonic()
    with pytest.raises(TraceNotIndexedError, match="being built"):
        await client.list_nodes("tr-1", wait_for_index=0.3)
    assert 0.3 <= time.monotonic() - began < 3
    assert len(server.requests) > 2


async def test_an_index_that_is_rebuilt_is_waited_for_again(
    client: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [PENDING, EMPTY, PENDING, PENDING, EMPTY]
    assert (await client.list_nodes("tr-1", wait_for_index=10)).items == []
    assert len(server.requests) == 6


async def test_a_wait_outlasts_a_service_that_fails_for_a_while(
    client: AsyncTracesClient, server: RawServer
) -> None:
    failing = [answer(500, {"detail": "Internal Server Error"})] * 6
    server.steps = [PENDING, *failing, PENDING, EMPTY]
    assert (await client.list_nodes("tr-1", wait_for_index=10)).items == []


async def test_another_failure_ends_the_wait(client: AsyncTracesClient, server: RawServer) -> None:
    server.steps = [PENDING, PENDING, answer(404, {"error": {"code": "x", "message": "No trace"}})]
    with pytest.raises(NotFoundError, match="No trace"):
        await client.list_nodes("tr-1", wait_for_index=10)
    assert len(server.requests) == 3


async def test_those_who_wait_for_a_trace_ask_together(
    client: AsyncTracesClient, server: RawServer
) -> None:
    built = False

    def respond(request: Received) -> Step:
        return EMPTY if built else PENDING

    server.respond = respond
    waits = [
        asyncio.create_task(client.list_nodes("tr-1", limit=n + 2, wait_for_index=10))
        for n in range(50)
    ]
    await server.arrived(60)
    before = len(server.requests)
    await asyncio.sleep(0.3)
    assert len(server.requests) - before <= 7  # not fifty each time
    built = True
    assert len(await asyncio.gather(*waits)) == 50


async def test_closing_the_client_ends_its_waits(server: RawServer) -> None:
    server.steps = [PENDING]
    async with AsyncTracesClient(api_key="key", base_url=server.url) as client:
        wait = asyncio.create_task(client.list_nodes("tr-1", wait_for_index=60))
        await server.arrived(2)
    with pytest.raises(RuntimeError, match="the client was closed"):
        await wait
