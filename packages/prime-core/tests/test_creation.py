"""Creates of what costs money: never made twice, never lost track of."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import pytest
from raw_server import Gate, RawServer, Received, Step, answer, closed_port, reset, silence
from rows import CREATE, DELETE, READ, Thing
from scripted_platform import ScriptedPlatform
from transports import Connect

from prime_core.creation import create_once
from prime_core.errors import APIConnectionError, APIError, BadRequestError, ServerError
from prime_core.operations import Operation, RateLimit, RateScope
from prime_core.reaper import Obligation, reaper
from prime_core.transport import AsyncTransport

pytestmark = pytest.mark.usefixtures("quick_retries")

PACED = Operation(
    "create_paced",
    "POST",
    "/api/v1/thing",
    "keyed",
    scope=RateScope("paced", RateLimit(1, 5)),
    key_field="idempotency_key",
)


class Platform(ScriptedPlatform):
    """Makes one thing a key, as the platform does."""

    def __init__(self, server: RawServer, *first: Step) -> None:
        super().__init__(server, *first)
        self.made: dict[str, str] = {}
        self.creates: list[str] = []

    def make(self, request: Received) -> str:
        key = request.json["idempotency_key"]
        self.creates.append(key)
        return self.made.setdefault(key, f"t{len(self.made) + 1}")


def create(
    transport: AsyncTransport,
    *,
    operation: Operation = CREATE,
    key: str | None = None,
    obligation: Obligation | None = None,
) -> asyncio.Task[Thing]:
    """A create under way."""

    async def discard(made: Thing) -> None:
        await transport.request(DELETE, path={"thing_id": made.id})

    return asyncio.ensure_future(
        create_once(
            transport,
            operation,
            Thing,
            body=b'{"name":"a"}',
            key=key,
            team=None,
            description="A thing",
            discard=discard,
            obligation=obligation,
        )
    )


def owed(transport: AsyncTransport) -> list[Obligation]:
    return [obligation for obligation in reaper._owed if obligation.owner is transport]


async def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5.0
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


async def test_a_create_that_succeeds_is_the_callers(server: RawServer, connect: Connect) -> None:
    platform, transport = Platform(server), connect()
    first, second = await asyncio.gather(create(transport), create(transport))
    assert {first.id, second.id} == {"t1", "t2"}
    assert len(set(platform.creates)) == 2
    assert all(len(key) >= 32 for key in platform.creates)
    assert owed(transport) == []
    await transport.aclose()
    assert platform.deleted == []


async def test_a_key_of_the_callers_is_used(server: RawServer, connect: Connect) -> None:
    platform = Platform(server, reset(), answer(503))
    assert (await create(connect(), key="mine")).id == "t1"
    assert platform.creates == ["mine"] * 3


@pytest.mark.parametrize("key", [None, "mine"])
async def test_a_create_cancelled_in_flight_is_found_out_and_discarded(
    server: RawServer, connect: Connect, key: str | None
) -> None:
    held = Gate()
    platform = Platform(server, held.before(answer(200, {"id": "t1"})))
    transport = connect()
    call = create(transport, key=key)
    await server.arrived(1)
    started = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - started < 0.2, "the cancellation waits for nothing"
    await reaper.drain(transport)
    assert len(platform.creates) == 2
    assert len(set(platform.creates)) == 1
    assert len({request.body for request in server.requests if request.method == "POST"}) == 1
    assert platform.deleted == ["t1"]
    assert owed(transport) == []
    held.open()


async def test_many_creates_cancelled_in_flight_leave_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, *[silence() for _ in range(50)])
    transport = connect()
    calls = [create(transport) for _ in range(50)]
    await server.arrived(50)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    await reaper.drain(transport)
    assert sorted(platform.deleted) == sorted(platform.made.values())
    assert len(platform.made) == 50


async def test_a_create_cancelled_in_the_limits_queue_sends_and_owes_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server), connect()
    await create(transport, operation=PACED)
    queued = [create(transport, operation=PACED) for _ in range(10)]
    await asyncio.sleep(0.02)
    for call in queued:
        call.cancel()
    await asyncio.wait(queued)
    assert owed(transport) == []
    await transport.aclose()
    assert len(platform.creates) == 1
    assert platform.deleted == []


async def test_a_create_cancelled_in_the_pools_queue_sends_and_owes_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, silence())
    transport = connect(max_connections=1)
    holder = create(transport)
    await server.arrived(1)
    queued = create(transport)
    await asyncio.sleep(0.02)
    queued.cancel()
    with pytest.raises(asyncio.CancelledError):
        await queued
    assert len(owed(transport)) == 1
    holder.cancel()
    await asyncio.wait([holder])
    await reaper.drain(transport)
    assert len(set(platform.creates)) == 1


async def test_a_create_cancelled_while_it_is_throttled_owes_nothing(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, answer(429, Retry_After="30"))
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert owed(transport) == []
    assert len(platform.creates) == 1


async def test_a_create_cancelled_after_a_lost_answer_is_found_out(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, reset(), answer(429, Retry_After="0.2"))
    transport = connect()
    call = create(transport)
    await server.arrived(2)
    await asyncio.sleep(0.05)
    call.cancel()
    await asyncio.wait([call])
    await reaper.drain(transport)
    assert platform.deleted == ["t1"]


async def test_an_open_failure_with_a_key_of_ours_is_found_out_and_discarded(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, reset(), answer(500), reset())
    transport = connect()
    with pytest.raises(APIConnectionError):
        await create(transport)
    await reaper.drain(transport)
    assert len(platform.creates) == 4
    assert platform.deleted == ["t1"]


async def test_an_open_failure_with_the_callers_key_is_the_callers_to_repeat(
    server: RawServer, connect: Connect
) -> None:
    platform = Platform(server, reset(), answer(500), answer(500))
    transport = connect()
    with pytest.raises(ServerError):
        await create(transport, key="mine")
    assert owed(transport) == []
    await asyncio.sleep(0.1)
    assert platform.creates == ["mine"] * 3
    assert (await create(transport, key="mine")).id == "t1"
    assert platform.deleted == []


@pytest.mark.parametrize(
    "refusal",
    [
        answer(400, {"detail": "no"}),
        answer(402, {"detail": "pay"}),
        answer(429, {"detail": "limit reached"}),
        answer(429, Retry_After="9999"),
        answer(307, b"", Location="http://127.0.0.2:1/"),
    ],
)
async def test_a_create_that_is_refused_owes_nothing(
    server: RawServer, connect: Connect, refusal: Step
) -> None:
    platform = Platform(server, refusal)
    transport = connect()
    with pytest.raises(APIError):
        await create(transport)
    assert owed(transport) == []
    await asyncio.sleep(0.05)
    assert len(platform.creates) == 1


async def test_a_create_that_is_refused_after_a_lost_answer_owes_nothing(
    server: RawServer, connect: Connect
) -> None:
    # The key would have brought the thing back, had the first attempt made it.
    Platform(server, reset(), answer(400, {"detail": "no"}))
    transport = connect()
    with pytest.raises(BadRequestError):
        await create(transport)
    assert owed(transport) == []


async def test_a_create_that_cannot_be_sent_owes_nothing(
    server: RawServer, connect: Connect
) -> None:
    refused = connect(f"http://127.0.0.1:{closed_port()}")
    no_tls = connect(server.url.replace("http:", "https:"))
    server.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    for transport in (refused, no_tls):
        with pytest.raises(APIConnectionError):
            await create(transport)
        assert owed(transport) == []


async def test_when_it_turns_out_that_nothing_was_made_there_is_nothing_to_discard(
    server: RawServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    no = answer(400, {"detail": "no such image"})
    platform = Platform(server, silence(), no)
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    call.cancel()
    await asyncio.wait([call])
    await reaper.drain(transport)
    assert len(platform.creates) == 2
    assert platform.deleted == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_finding_out_is_repeated_while_the_platform_fails(
    server: RawServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.reaper.FIRST_PAUSE", 0.05)
    platform = Platform(server, silence(), *[answer(500) for _ in range(7)])
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    call.cancel()
    await asyncio.wait([call])
    await reaper.drain(transport)
    assert len(platform.creates) == 9
    assert platform.deleted == ["t1"]


async def test_an_obligation_of_the_callers_is_kept_and_discards_what_was_made(
    server: RawServer, connect: Connect
) -> None:
    platform, transport = Platform(server), connect()

    async def nothing() -> None:
        return None

    obligation = reaper.owe(transport, "A thing", nothing)
    made = await create(transport, obligation=obligation)
    assert made.id == "t1"
    assert obligation.owed
    obligation.call_in()
    await reaper.drain(transport)
    assert platform.deleted == ["t1"]
    assert len(platform.creates) == 1
    assert not obligation.owed


async def test_an_obligation_of_the_callers_is_settled_when_nothing_was_made(
    server: RawServer, connect: Connect
) -> None:
    Platform(server, answer(400))
    transport = connect()

    async def nothing() -> None:
        return None

    obligation = reaper.owe(transport, "A thing", nothing)
    with pytest.raises(BadRequestError):
        await create(transport, obligation=obligation)
    assert not obligation.owed


async def test_closing_a_client_waits_for_what_it_owes(server: RawServer, connect: Connect) -> None:
    platform = Platform(server, silence())
    transport = connect()
    call = create(transport)
    await server.arrived(1)
    call.cancel()
    await asyncio.wait([call])
    await reaper.drain(transport)
    await transport.aclose()
    assert platform.deleted == ["t1"]
    assert not transport._states.open
    await until(lambda: not owed(transport))
    assert READ.safety == "safe"
