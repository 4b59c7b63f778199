"""Waiting for one's turn: at the connection pool, and at the rate limit."""

from __future__ import annotations

import asyncio
import time

import pytest
from raw_server import Gate, RawServer, after, answer, silence
from rows import POKE, READ
from transports import Connect

from prime_core.errors import APITimeoutError
from prime_core.operations import Operation, RateLimit, RateScope

SLOW_SCOPE = RateScope("slow", RateLimit(1, 2))  # one at once, the next after two seconds
SLOW = Operation("slow_thing", "POST", "/api/v1/slow", "unsafe", scope=SLOW_SCOPE)
STREAM = Operation("stream_thing", "GET", "/api/v1/stream", "safe", pool="stream")


async def test_a_call_waits_for_a_free_connection(server: RawServer, connect: Connect) -> None:
    server.steps = [after(0.05, answer())]
    transport = connect(max_connections=2)
    await asyncio.gather(*(transport.request(READ) for _ in range(6)))
    assert server.connections == 2
    assert len(server.requests) == 6


async def test_a_connection_that_never_becomes_free_is_a_pool_timeout(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [silence()]
    transport = connect(max_connections=1)
    holder = asyncio.ensure_future(transport.request(READ))
    await server.arrived(1)
    started = time.monotonic()
    with pytest.raises(APITimeoutError, match="max_connections") as caught:
        await transport.request(READ, timeout=0.2)
    assert 0.15 < time.monotonic() - started < 0.8
    assert (caught.value.phase, caught.value.sent, caught.value.attempts) == ("pool", "no", 0)
    assert len(server.requests) == 1
    holder.cancel()


async def test_streams_and_short_calls_do_not_take_each_others_connections(
    server: RawServer, connect: Connect
) -> None:
    server.respond = lambda request: silence() if "stream" in request.target else answer()
    transport = connect(max_connections=1)
    streams = [asyncio.ensure_future(transport.request(STREAM)) for _ in range(5)]
    await server.arrived(5)
    assert await transport.request(READ, timeout=2.0) == {}
    for stream in streams:
        stream.cancel()
    await asyncio.wait(streams)


async def test_a_call_cancelled_in_the_pools_queue_ends_at_once_and_sends_nothing(
    server: RawServer, connect: Connect
) -> None:
    held = Gate()
    server.steps = [held.before(answer())]
    transport = connect(max_connections=1)
    holder = asyncio.ensure_future(transport.request(READ))
    await server.arrived(1)
    queued = [asyncio.ensure_future(transport.request(POKE)) for _ in range(20)]
    await asyncio.sleep(0.02)
    started = time.monotonic()
    for task in queued[:19]:
        task.cancel()
    await asyncio.wait(queued[:19])
    assert time.monotonic() - started < 0.2
    held.open()
    assert await holder == await queued[19] == {}
    assert server.targets == ["GET /api/v1/thing", "POST /api/v1/poke"]


async def test_a_turn_that_does_not_come_is_a_queue_timeout(
    server: RawServer, connect: Connect
) -> None:
    transport = connect(queue_timeout=0.2)
    await transport.request(SLOW)
    started = time.monotonic()
    with pytest.raises(APITimeoutError, match="rate limit") as caught:
        await transport.request(SLOW)
    assert 0.15 < time.monotonic() - started < 0.8
    error = caught.value
    assert (error.phase, error.sent, error.attempts, error.elapsed) == ("queue", "no", 0, 0.0)
    assert len(server.requests) == 1


async def test_the_wait_for_a_turn_does_not_count_against_the_timeout(
    server: RawServer, connect: Connect
) -> None:
    transport = connect(timeout=0.3, limits={"slow": RateLimit(2, 1)})
    started = time.monotonic()
    await asyncio.gather(*(transport.request(SLOW) for _ in range(3)))
    assert time.monotonic() - started > 0.9


async def test_a_call_cancelled_in_the_limits_queue_ends_at_once_and_sends_nothing(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(SLOW)
    queued = [asyncio.ensure_future(transport.request(SLOW)) for _ in range(20)]
    await asyncio.sleep(0.02)
    started = time.monotonic()
    for task in queued:
        task.cancel()
    await asyncio.wait(queued)
    assert time.monotonic() - started < 0.2
    assert all(task.cancelled() for task in queued)
    await asyncio.sleep(0.05)
    assert len(server.requests) == 1


async def test_a_limit_can_be_switched_off_by_its_name(server: RawServer, connect: Connect) -> None:
    transport = connect(limits={"slow": None})
    started = time.monotonic()
    await asyncio.gather(*(transport.request(SLOW) for _ in range(20)))
    assert time.monotonic() - started < 1.5


async def test_every_attempt_takes_its_turn(server: RawServer, connect: Connect) -> None:
    row = Operation("r", "GET", "/api/v1/r", "safe", scope=RateScope("r", RateLimit(4, 1)))
    server.steps = [answer(500), answer(500), answer()]
    await connect().request(row)
    first, second, third = (request.at for request in server.requests)
    assert second - first > 0.15
    assert third - second > 0.15
