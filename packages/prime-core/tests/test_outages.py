"""A host that stops answering for a while: calls wait for it, and few of them knock."""

from __future__ import annotations

import asyncio
import time
import uuid

import pytest
from raw_server import RawServer, answer, closed_port
from rows import CREATE, POKE, READ
from transports import Connect

from prime_core.decoding import read_object
from prime_core.errors import APIConnectionError, APIError, ServerError
from prime_core.outages import HostHealth
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")


def down_host() -> HostHealth:
    """The health of a host that answered once and failed three times since."""
    health = HostHealth()
    health.answered(time.monotonic())
    for _ in range(3):
        health.failed()
    assert health.down
    return health


def test_an_answer_from_before_the_outage_does_not_end_it() -> None:
    sent = time.monotonic()
    time.sleep(0.001)

    async def main() -> tuple[bool, bool]:
        health = down_host()
        health.answered(sent)
        before = health.down
        health.answered(time.monotonic())
        return before, health.down

    assert asyncio.run(main()) == (True, False)


def create(transport: AsyncTransport, timeout: float = 10.0) -> asyncio.Future[object]:
    """A keyed create under way."""
    key = uuid.uuid4().hex
    return asyncio.ensure_future(transport.request(CREATE, body=b"{}", key=key, timeout=timeout))


@pytest.mark.parametrize("way", ["refused", "503"])
async def test_a_fleet_of_calls_survives_an_outage_with_few_requests(
    server: RawServer, connect: Connect, way: str
) -> None:
    transport = connect()
    await transport.request(READ)
    if way == "refused":
        server.down()
    else:
        server.steps = [answer(503, b"<html>down</html>")]
    calls = [create(transport) for _ in range(300)]
    await asyncio.sleep(1.0)
    assert not any(call.done() for call in calls)
    before = len(server.requests)
    if way == "refused":
        server.up()
    else:
        server.steps = [answer()]
    returned = time.monotonic()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert not [result for result in results if isinstance(result, BaseException)]
    assert time.monotonic() - returned < 4.0
    # At most the calls that were on their way when it went down, and a few probes.
    assert before <= 128 + 20
    assert len(server.requests) - before <= 300 + 20


async def test_while_a_host_is_down_one_call_at_a_time_asks_for_it(
    server: RawServer, connect: Connect
) -> None:
    transport = connect(max_connections=4)
    await transport.request(READ)
    server.steps = [answer(503)]
    calls = [create(transport) for _ in range(20)]
    await asyncio.sleep(0.2)
    before = len(server.requests)
    await asyncio.sleep(1.0)
    assert 1 <= len(server.requests) - before <= 10
    server.steps = [answer()]
    await asyncio.gather(*calls)


async def test_a_host_that_never_answered_fails_after_three_attempts(connect: Connect) -> None:
    transport = connect(f"http://127.0.0.1:{closed_port()}")
    started = time.monotonic()
    results = await asyncio.gather(*(create(transport) for _ in range(10)), return_exceptions=True)
    assert time.monotonic() - started < 3.0
    for result in results:
        assert isinstance(result, APIConnectionError)
        assert result.attempts == 3


async def test_a_wait_for_a_host_ends_at_the_calls_deadline_with_its_last_failure(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(503, {"detail": "down"})]
    started = time.monotonic()
    results = await asyncio.gather(
        *(create(transport, timeout=0.6) for _ in range(5)), return_exceptions=True
    )
    assert 0.5 < time.monotonic() - started < 1.5
    for result in results:
        assert isinstance(result, ServerError)
        assert "HTTP 503: down" in str(result)


async def test_a_call_that_finds_the_host_down_says_so_at_its_deadline(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(503)]
    for _ in range(3):
        with pytest.raises(APIError):
            await transport.request(POKE)
    before = len(server.requests)
    started = time.monotonic()
    # The first of them asks for the host; the others' time is over before their turn.
    results = await asyncio.gather(
        *(transport.request(POKE, timeout=0.12) for _ in range(4)), return_exceptions=True
    )
    assert time.monotonic() - started < 1.0
    assert len(server.requests) - before <= 2
    waiting = [result for result in results if isinstance(result, APIConnectionError)]
    assert len(waiting) >= 2
    for error in waiting:
        assert (error.sent, error.attempts) == ("no", 0)
        assert "stopped answering" in str(error)


async def test_an_unsafe_call_that_may_have_arrived_is_not_repeated_after_an_outage(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(503)]
    results = await asyncio.gather(
        *(transport.request(POKE, timeout=1.0) for _ in range(6)), return_exceptions=True
    )
    bodies = [request for request in server.requests if request.method == "POST"]
    assert len(bodies) <= 6
    assert all(isinstance(result, APIError) for result in results)


async def test_an_error_answer_of_the_service_itself_is_no_outage(
    server: RawServer, connect: Connect
) -> None:
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(500)]
    started = time.monotonic()
    for _ in range(4):
        with pytest.raises(ServerError) as caught:
            await transport.request(READ)
        assert caught.value.attempts == 3
    assert time.monotonic() - started < 5.0


async def test_the_first_answer_lets_everybody_go_on() -> None:
    health = down_host()
    deadline = asyncio.get_running_loop().time() + 5
    waits = [asyncio.ensure_future(health.wait(deadline)) for _ in range(50)]
    await asyncio.sleep(0)
    health.answered(time.monotonic())
    assert not health.down
    started = time.monotonic()
    assert await asyncio.gather(*waits) == [True] * 50
    assert time.monotonic() - started < 0.2


async def test_probes_come_one_by_one_and_slow_down_to_a_second() -> None:
    health = down_host()
    loop = asyncio.get_running_loop()
    turns: list[float] = []

    async def knock() -> None:
        if await health.wait(loop.time() + 1.5):
            turns.append(loop.time())
            health.failed()

    started = loop.time()
    await asyncio.gather(*(knock() for _ in range(100)))
    gaps = [after - before for before, after in zip([started, *turns], turns, strict=False)]
    assert 3 <= len(turns) <= 7
    assert all(gap >= 0.045 for gap in gaps)


@pytest.mark.parametrize("attempts", [2, 4])
async def test_attempts_that_the_caller_limits_are_counted_while_the_host_is_down(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    monkeypatch.setattr("prime_core.retries.COUNTED_BASE_DELAY", 0.01)
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(503, b"down")]
    with pytest.raises(ServerError):
        await transport.request(READ, timeout=0.5)  # from here on the host is down
    before = len(server.requests)
    call = transport.prepare(CREATE, read_object, body=b"{}", key="k", timeout=20.0)
    call.max_attempts = attempts
    with pytest.raises(ServerError):
        await transport.perform(call)
    assert len(server.requests) - before == call.attempts == attempts


async def test_a_call_without_a_limit_of_time_does_not_ask_for_ever(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.retries.MOST_PROBES", 4)
    monkeypatch.setattr("prime_core.outages.LONGEST_PROBE_DELAY", 0.1)
    transport = connect()
    await transport.request(READ)
    server.steps = [answer(503, b"down")]
    with pytest.raises(ServerError):
        await transport.perform(transport.prepare(READ, read_object, idle=5.0))
    assert len(server.requests) < 12


async def test_a_waiter_that_is_cancelled_with_its_turn_passes_it_on() -> None:
    health = down_host()
    loop = asyncio.get_running_loop()
    first, second = (asyncio.ensure_future(health.wait(loop.time() + 5)) for _ in range(2))
    await asyncio.sleep(0)
    health._probe()  # the first one's turn …
    first.cancel()  # … comes together with its cancellation
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await asyncio.wait_for(second, 2.0)


async def test_a_probe_whose_call_vanishes_does_not_end_the_probing() -> None:
    health = down_host()
    loop = asyncio.get_running_loop()
    waits = [asyncio.ensure_future(health.wait(loop.time() + 5)) for _ in range(3)]
    # Each has its turn, though none reports an outcome.
    assert await asyncio.wait_for(asyncio.gather(*waits), 4.0) == [True] * 3


async def test_failures_far_apart_are_no_outage() -> None:
    health = HostHealth()
    health.answered(time.monotonic())
    for _ in range(10):
        health.failed()
        health.failed()
        health.answered(time.monotonic())
    assert not health.down


async def test_a_host_that_never_answered_is_not_taken_to_be_down() -> None:
    health = HostHealth()
    for _ in range(10):
        health.failed()
    assert not health.down
