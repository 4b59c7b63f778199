"""Calls that fail and are made again: what is sent how often, and how long it takes."""

from __future__ import annotations

import asyncio
import time

import pytest
from raw_server import Gate, RawServer, Step, after, answer, hang_up, reset, silence
from rows import CREATE, DELETE, KEY, POKE, READ, Thing
from transports import Connect

from prime_core.errors import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    NotFoundError,
    QuotaExceededError,
    RateLimitError,
    ServerError,
)
from prime_core.operations import Operation, RateLimit, RateScope

pytestmark = pytest.mark.usefixtures("quick_retries")

LIMITED = Operation(
    "limited", "GET", "/api/v1/limited", "safe", scope=RateScope("limited", RateLimit(10, 1))
)


@pytest.mark.parametrize(
    ("operation", "requests"), [(READ, 3), (CREATE, 3), (DELETE, 3), (POKE, 1)]
)
@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
async def test_an_ambiguous_status_is_tried_again_where_that_is_safe(
    server: RawServer, connect: Connect, operation: Operation, requests: int, status: int
) -> None:
    server.steps = [answer(status, {"detail": "sorry"})]
    path = {"thing_id": "x"} if operation is DELETE else None
    with pytest.raises(APIError) as caught:
        await connect().request(operation, path=path)
    assert caught.value.status_code == status
    assert caught.value.attempts == len(server.requests) == requests
    assert f"{requests} attempt" in str(caught.value)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 422, 501])
async def test_a_final_status_is_not_tried_again(
    server: RawServer, connect: Connect, status: int
) -> None:
    server.steps = [answer(status, {"detail": "no"}, Retry_After="1")]
    with pytest.raises(APIError) as caught:
        await connect().request(READ)
    assert caught.value.attempts == len(server.requests) == 1


@pytest.mark.parametrize(("code", "requests"), [("busy", 2), ("other", 1), (None, 1)])
async def test_where_a_row_names_the_codes_of_refusals_a_retry_after_is_none(
    server: RawServer, connect: Connect, code: str | None, requests: int
) -> None:
    row = Operation("poke", "POST", "/poke", "unsafe", refusal_codes=frozenset({"busy"}))
    refusal = answer(503, {"error": {"code": code, "message": "not now"}}, Retry_After="0")
    server.steps = [refusal, answer(400)]
    with pytest.raises(APIError) as caught:
        await connect().request(row)
    assert caught.value.status_code == (503 if requests == 1 else 400)
    assert len(server.requests) == requests


@pytest.mark.parametrize("failure", [answer(500), answer(503), reset(), hang_up()])
async def test_a_create_is_sent_again_byte_for_byte(
    server: RawServer, connect: Connect, failure: Step
) -> None:
    server.steps = [failure, failure, answer(200, {"id": "t1"})]
    transport = connect(team_id="team-1")
    thing = await transport.request(CREATE, Thing, body=b'{"name":"a"}', key="k1")
    assert thing.id == "t1"
    assert {request.body for request in server.requests} == {
        b'{"team_id":"team-1","idempotency_key":"k1","name":"a"}'
    }
    assert len({request.headers["x-request-id"] for request in server.requests}) == 1
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}


@pytest.mark.parametrize("status", [429, 503])
async def test_even_an_unsafe_call_that_was_refused_is_sent_again(
    server: RawServer, connect: Connect, status: int
) -> None:
    server.steps = [answer(status, Retry_After="0.05"), answer(200, {"id": "t1"})]
    assert await connect().request(POKE) == {"id": "t1"}
    assert len(server.requests) == 2


async def test_the_last_real_failure_is_raised_with_effort_and_time(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [reset(), answer(502), answer(500, {"detail": "broken"}, X_Request_Id="r-3")]
    started = time.monotonic()
    with pytest.raises(ServerError, match="HTTP 500: broken") as caught:
        await connect().request(READ)
    error = caught.value
    assert (error.attempts, error.request_id, error.operation) == (3, "r-3", "read_thing")
    assert 0 < error.elapsed <= time.monotonic() - started


async def test_a_delete_that_finds_nothing_after_a_lost_answer_has_succeeded(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [reset(), answer(404)]
    assert await connect().request(DELETE, path={"thing_id": "x"}) == {}
    assert len(server.requests) == 2


@pytest.mark.parametrize("first", [answer(404), answer(429, Retry_After="0")])
async def test_a_delete_that_finds_nothing_without_a_lost_answer_has_not(
    server: RawServer, connect: Connect, first: Step
) -> None:
    server.steps = [first, answer(404)]
    with pytest.raises(NotFoundError):
        await connect().request(DELETE, path={"thing_id": "x"})


async def test_a_lost_answer_excuses_no_missing_object_of_a_read(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [reset(), answer(404)]
    with pytest.raises(NotFoundError):
        await connect().request(READ)


async def test_a_lost_answer_excuses_no_delete_that_is_not_safe(
    server: RawServer, connect: Connect
) -> None:
    row = Operation("delete_trace", "DELETE", "/api/v1/trace", "unsafe")
    server.steps = [reset(), answer(404)]
    with pytest.raises(APIConnectionError):
        await connect().request(row)
    assert len(server.requests) == 1


async def test_the_timeout_covers_all_attempts(server: RawServer, connect: Connect) -> None:
    server.steps = [after(0.35, reset()), after(0.35, reset()), silence()]
    started = time.monotonic()
    with pytest.raises(APIError) as caught:
        await connect().request(READ, timeout=1.0)
    assert 0.6 < time.monotonic() - started < 1.5
    assert 2 <= caught.value.attempts <= 3


async def test_waits_that_the_platform_asks_for_do_not_count_against_the_timeout(
    server: RawServer, connect: Connect
) -> None:
    throttle = answer(429, {"detail": "slow down"}, Retry_After="0.3")
    server.steps = [throttle, throttle, throttle, answer(200, {"id": "t1"})]
    started = time.monotonic()
    assert await connect().request(READ, timeout=0.5) == {"id": "t1"}
    assert time.monotonic() - started >= 0.9
    assert len(server.requests) == 4


async def test_a_fraction_of_a_second_to_wait_is_waited(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429, Retry_After="0.25"), answer()]
    await connect().request(READ)
    first, second = server.requests
    assert 0.25 <= second.at - first.at < 0.8


async def test_a_throttle_that_names_no_time_is_waited_for_too(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429), answer()]
    await connect().request(READ)
    first, second = server.requests
    assert 0.45 <= second.at - first.at < 1.6


@pytest.mark.parametrize("retry_after", ["61", "86400", "Fri, 31 Dec 2999 23:59:59 GMT"])
async def test_a_wait_longer_than_what_is_left_is_raised_at_once(
    server: RawServer, connect: Connect, retry_after: str
) -> None:
    server.steps = [answer(429, {"detail": "slow down"}, Retry_After=retry_after)]
    started = time.monotonic()
    with pytest.raises(RateLimitError) as caught:
        await connect(max_throttle_wait=60.0).request(READ)
    assert time.monotonic() - started < 0.5
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= 61
    assert len(server.requests) == 1


async def test_the_throttle_budget_adds_up_over_one_call(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429, Retry_After="0.2")]
    transport = connect(max_throttle_wait=0.7)
    started = time.monotonic()
    with pytest.raises(RateLimitError) as caught:
        await transport.request(READ)
    assert time.monotonic() - started < 1.2
    assert 3 <= len(server.requests) <= 4
    assert transport.throttled == caught.value.attempts == len(server.requests)


async def test_a_quota_is_raised_at_once(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(429, {"detail": "Sandbox limit reached"})]
    transport = connect()
    with pytest.raises(QuotaExceededError):
        await transport.request(CREATE, body=b"{}", key="k1")
    assert len(server.requests) == 1
    assert transport.throttled == 0


async def test_a_429_with_a_time_to_wait_is_no_quota(server: RawServer, connect: Connect) -> None:
    server.steps = [answer(429, {"detail": "limit reached"}, Retry_After="0.01"), answer()]
    assert await connect().request(READ) == {}


async def test_a_call_that_could_not_be_sent_again_in_time_is_not_throttled_on(
    server: RawServer, connect: Connect
) -> None:
    # Its connection is taken while it waits: its time passes, and it must hold nobody back.
    held = Gate()
    server.respond = lambda request: (
        answer(429, Retry_After="0.1")
        if request.target.endswith("/limited")
        else held.before(answer())
    )
    transport = connect(max_connections=1, limits={"limited": None})
    limited = asyncio.ensure_future(transport.request(LIMITED, timeout=0.4))
    await server.arrived(1)
    other = asyncio.ensure_future(transport.request(READ, timeout=5.0))
    started = time.monotonic()
    with pytest.raises(RateLimitError) as caught:
        await limited
    assert time.monotonic() - started < 1.5
    assert caught.value.attempts == 1
    assert transport.throttled == 1
    held.open()
    assert await other == {}


async def test_a_queue_that_is_too_slow_after_a_throttle_raises_the_throttle(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(429, Retry_After="2")]
    transport = connect(queue_timeout=0.2)
    started = time.monotonic()
    with pytest.raises(RateLimitError) as caught:
        await transport.request(READ)
    assert time.monotonic() - started < 1.0
    assert caught.value.retry_after == 2.0
    assert transport.throttled == len(server.requests) == 1


async def test_the_quota_of_a_client_ends_a_flood_of_retries(
    server: RawServer, connect: Connect
) -> None:
    server.steps = [answer(500)]
    transport = connect()
    results = await asyncio.gather(
        *(transport.request(READ) for _ in range(60)), return_exceptions=True
    )
    assert {type(result) for result in results} == {ServerError}
    assert 60 + 30 <= len(server.requests) <= 60 + 36


async def test_an_attempt_after_a_timeout_is_not_made(server: RawServer, connect: Connect) -> None:
    server.steps = [silence(), answer()]
    with pytest.raises(APITimeoutError):
        await connect().request(READ, timeout=0.2)
    await asyncio.sleep(0.1)
    assert len(server.requests) == 1
