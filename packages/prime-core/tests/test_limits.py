"""Pacing below a rate limit, and the gate that a 429 closes."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest
from raw_server import RawServer, Received, Step, answer
from transports import Connect

from prime_core.errors import APIError
from prime_core.limits import Scope
from prime_core.operations import Operation, RateLimit, RateScope

LIMIT = RateLimit(20, 0.5)
ROW = Operation("paced", "POST", "/api/v1/paced", "unsafe", scope=RateScope("paced", LIMIT))
FREE = Operation("free", "POST", "/api/v1/free", "unsafe", scope=RateScope("free"))


def most_within(moments: list[float], window: float) -> int:
    """The largest number of moments that any window of that length holds."""
    moments = sorted(moments)
    return max(
        sum(start <= moment < start + window for moment in moments[index:])
        for index, start in enumerate(moments)
    )


async def test_calls_leave_below_the_limit_in_every_window(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    started = time.monotonic()
    await asyncio.gather(*(transport.request(ROW) for _ in range(50)))
    elapsed = time.monotonic() - started
    moments = [request.at for request in server.requests]
    assert len(moments) == 50
    # One more than the limit for the jitter of a busy machine.
    assert most_within(moments, LIMIT.seconds) <= LIMIT.requests + 1
    ideal = 50 / (LIMIT.requests / LIMIT.seconds)
    assert ideal * 0.9 < elapsed < ideal * 1.4 + 0.3


async def test_the_burst_is_a_fiftieth_of_the_limit() -> None:
    scope = Scope(RateLimit(500, 10))
    started = time.monotonic()
    for _ in range(10):
        assert await scope.enter(5.0)
    assert time.monotonic() - started < 0.1
    assert await scope.enter(5.0)
    assert time.monotonic() - started >= 0.015


async def test_a_scope_without_a_limit_is_free_until_it_is_closed() -> None:
    scope = Scope(None)
    assert scope.free
    scope.close(0.1)
    assert not scope.free
    started = time.monotonic()
    assert await scope.enter(5.0)
    assert 0.1 <= time.monotonic() - started < 0.5
    assert scope.free


async def test_a_scope_is_never_opened_earlier_by_a_shorter_wait() -> None:
    scope = Scope(None)
    scope.close(10.0)
    scope.close(0.01)
    assert not await scope.enter(0.1)


async def test_a_gate_that_closes_again_holds_those_who_wait() -> None:
    scope = Scope(RateLimit(1000, 1))
    scope.close(0.1)
    waiting = asyncio.ensure_future(scope.enter(5.0))
    await asyncio.sleep(0.05)
    scope.close(0.3)
    started = time.monotonic()
    assert await waiting
    assert time.monotonic() - started >= 0.25


async def test_the_first_429_holds_every_call_of_the_scope_and_they_leave_paced(
    server: RawServer, connect: Connect
) -> None:
    refused: list[float] = []

    def respond(request: Received) -> Step:
        if len(server.requests) == 10:
            refused.append(request.at)
            return answer(429, Retry_After="0.5")
        return answer()

    server.respond = respond
    transport = connect()
    await asyncio.gather(*(transport.request(ROW) for _ in range(30)))
    moments = [request.at for request in server.requests]
    assert len(moments) == 31
    assert transport.throttled == 1
    # What was on its way when the answer came may still arrive.
    during = [moment for moment in moments if refused[0] < moment < refused[0] + 0.5]
    assert len(during) <= 2
    later = [moment for moment in moments if moment >= refused[0] + 0.5]
    assert len(later) >= 18
    assert most_within(later, 0.25) <= LIMIT.requests / 2 + 2, "in a wave"
    assert all(after - before < 0.3 for before, after in pairwise(later))


async def test_a_429_leaves_other_scopes_alone(server: RawServer, connect: Connect) -> None:
    server.respond = lambda request: (
        answer(429, Retry_After="5") if "paced" in request.target else answer()
    )
    transport = connect()
    held = asyncio.ensure_future(transport.request(ROW))
    await server.arrived(1)
    started = time.monotonic()
    await transport.request(FREE)
    assert time.monotonic() - started < 1.0
    held.cancel()


async def test_many_calls_that_are_refused_at_once_all_succeed(
    server: RawServer, connect: Connect
) -> None:
    # The platform's own limit is lower than the one that the client knows.
    accepted: list[float] = []

    def respond(request: Received) -> Step:
        recent = [moment for moment in accepted if moment > request.at - 0.5]
        if len(recent) >= 10:
            return answer(429, {"detail": "slow down"}, Retry_After="0.2")
        accepted.append(request.at)
        return answer()

    server.respond = respond
    transport = connect(max_throttle_wait=20.0)
    results = await asyncio.gather(
        *(transport.request(ROW) for _ in range(30)), return_exceptions=True
    )
    assert not [result for result in results if isinstance(result, BaseException)]
    assert len(server.requests) < 70


@pytest.mark.parametrize(("requests", "seconds"), [(0, 1), (0.5, 1), (1, 0), (1, -1)])
def test_a_limit_of_no_meaning_is_refused(requests: float, seconds: float) -> None:
    with pytest.raises(ValueError, match="rate limit"):
        RateLimit(requests, seconds)


async def test_a_refusal_that_ends_the_call_holds_nobody_else(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429, Retry_After="600"), answer()]
    transport = connect()
    with pytest.raises(APIError):
        await transport.request(FREE)
    started = time.monotonic()
    await transport.request(FREE)
    assert time.monotonic() - started < 1.0
