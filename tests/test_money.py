"""No create is lost, made twice or left behind, whatever happens while it is sent."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from prime_core import AsyncAPIClient, Config
from prime_local import LocalPlatform
from prime_local.faults import FaultRule
from prime_sandboxes import APIConnectionError, AsyncSandboxClient, CreateSandboxRequest

UNPACED = {"sandbox-create": None}


def request(name: str = "money", **fields: str) -> CreateSandboxRequest:
    return CreateSandboxRequest(name=name, docker_image="python:3.11-slim", **fields)


def connect(platform: LocalPlatform, *, paced: bool = False) -> AsyncAPIClient:
    config = Config(platform.api_key, base_url=platform.url)
    return AsyncAPIClient(config=config, limits=None if paced else UNPACED)


@pytest.fixture
async def api(prime_platform: LocalPlatform) -> AsyncIterator[AsyncAPIClient]:
    async with connect(prime_platform) as client:
        yield client


@pytest.fixture
async def sandboxes(api: AsyncAPIClient) -> AsyncIterator[AsyncSandboxClient]:
    async with AsyncSandboxClient(client=api) as client:
        yield client


async def settled(platform: LocalPlatform, live: int, seconds: float = 10) -> None:
    """Waits until so many sandboxes live, and says what lives otherwise."""
    deadline = time.monotonic() + seconds
    while platform.ledger()["sandboxes"]["live"] != live:
        assert time.monotonic() < deadline, platform.ledger()["sandboxes"]
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("committed", [False, True])
async def test_cancelled_creates_in_flight_leave_nothing(
    prime_platform: LocalPlatform, sandboxes: AsyncSandboxClient, committed: bool
) -> None:
    before, after = (0.0, 1.0) if committed else (1.0, 0.0)
    prime_platform.add_faults(
        FaultRule(operation="create_sandbox", times=50, delay_before=before, delay_after=after)
    )
    creates = [asyncio.create_task(sandboxes.create(request(f"s-{n}"))) for n in range(50)]
    await asyncio.sleep(0.4)
    began = time.monotonic()
    for create in creates:
        create.cancel()
    results = await asyncio.gather(*creates, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert time.monotonic() - began < 0.5, "a cancellation is not held up by the clean-up"
    await sandboxes.aclose()
    await settled(prime_platform, live=0)
    ledger = prime_platform.ledger()
    assert set(ledger["creates_per_key"].values()) == {1}
    assert ledger["sandboxes"]["created"] == ledger["sandboxes"]["deleted"]


async def test_creates_cancelled_in_the_queue_are_never_sent(prime_platform: LocalPlatform) -> None:
    async with connect(prime_platform, paced=True) as api, AsyncSandboxClient(client=api) as client:
        creates = [asyncio.create_task(client.create(request())) for _ in range(100)]
        await asyncio.sleep(0.3)
        for create in creates:
            create.cancel()
        results = await asyncio.gather(*creates, return_exceptions=True)
        made = sum(not isinstance(result, BaseException) for result in results)
        await settled(prime_platform, live=made)
        assert prime_platform.ledger()["requests"]["create_sandbox"] < 20


async def test_a_create_whose_answer_is_lost_makes_one_sandbox_and_returns_it(
    prime_platform: LocalPlatform, sandboxes: AsyncSandboxClient
) -> None:
    rule = FaultRule(operation="create_sandbox", nth=1, reset="after_commit")
    prime_platform.add_faults(rule)
    sandbox = await sandboxes.create(request())
    ledger = prime_platform.ledger()
    assert ledger["sandboxes"]["created"] == 1
    assert ledger["requests"]["create_sandbox"] == 2
    assert (await sandboxes.get(sandbox.id)).id == sandbox.id


async def test_no_key_ever_makes_two_sandboxes_under_random_faults(
    prime_platform: LocalPlatform, sandboxes: AsyncSandboxClient
) -> None:
    prime_platform.add_faults(
        FaultRule(operation="create_sandbox", probability=0.1, seed=1, reset="after_commit"),
        FaultRule(operation="create_sandbox", probability=0.1, seed=2, truncate=20),
        FaultRule(operation="create_sandbox", probability=0.1, seed=3, garbage=True),
    )
    creates = [sandboxes.create(request(f"s-{n}")) for n in range(60)]
    results = await asyncio.gather(*creates, return_exceptions=True)
    prime_platform.clear_faults()
    made = [result for result in results if not isinstance(result, BaseException)]
    assert len({sandbox.id for sandbox in made}) == len(made) > 30
    await sandboxes.aclose()
    # What a failed create may have made is deleted; what was returned is not.
    await settled(prime_platform, live=len(made))
    assert set(prime_platform.ledger()["creates_per_key"].values()) == {1}


async def test_a_failed_create_with_the_callers_key_is_left_for_the_caller(
    prime_platform: LocalPlatform, sandboxes: AsyncSandboxClient
) -> None:
    prime_platform.add_faults(FaultRule(operation="create_sandbox", times=3, reset="after_commit"))
    mine = request(idempotency_key="mine")
    with pytest.raises(APIConnectionError):
        await sandboxes.create(mine)
    await asyncio.sleep(0.3)
    assert prime_platform.ledger()["sandboxes"]["live"] == 1
    await sandboxes.create(mine)
    assert prime_platform.ledger()["creates_per_key"] == {"mine": 1}


async def test_a_thousand_creates_at_the_enforced_burst_all_succeed() -> None:
    async with (
        LocalPlatform(validate_responses=False) as platform,
        connect(platform, paced=True) as api,
        AsyncSandboxClient(client=api) as client,
    ):
        began = time.monotonic()
        made = await asyncio.gather(*(client.create(request(f"s-{n}")) for n in range(1000)))
        wall = time.monotonic() - began
        ledger = platform.ledger()
    assert len({sandbox.id for sandbox in made}) == 1000
    assert ledger["requests"]["create_sandbox"] <= 1020
    assert ledger["responses"].get("429", 0) <= 5
    # The account's limit itself asks for 52 s; this is the bound, not a speed test.
    assert wall <= 1.12 * 1000 / 19.2


@pytest.mark.parametrize("kind", ["refused", "503"])
async def test_an_outage_of_two_seconds_loses_none_of_a_thousand_creates(
    prime_platform: LocalPlatform, sandboxes: AsyncSandboxClient, kind: str
) -> None:
    # Slow answers, so that the outage comes in the middle.
    slow = FaultRule(operation="create_sandbox", delay_before=0.2)
    prime_platform.add_faults(slow)
    creates = asyncio.gather(*(sandboxes.create(request(f"s-{n}")) for n in range(1000)))
    for _ in range(500):
        if sum(prime_platform.ledger()["responses"].values()) >= 100:
            break
        await asyncio.sleep(0.02)
    if kind == "refused":
        await prime_platform.outage(2.0)
    else:
        prime_platform.clear_faults()
        prime_platform.add_faults(FaultRule(status=503))
        await asyncio.sleep(2.0)
        prime_platform.clear_faults()
    returned = time.monotonic()
    made = await creates
    assert time.monotonic() - returned < 15.0
    assert len({sandbox.id for sandbox in made}) == 1000
    ledger = prime_platform.ledger()
    assert Counter(ledger["creates_per_key"].values()) == {1: 1000}
    assert ledger["requests"]["create_sandbox"] < 1400, "the outage was not hammered"


async def test_a_thousand_waiters_share_their_questions() -> None:
    async with (
        LocalPlatform(limits=False, start_delay=5.0, validate_responses=False) as platform,
        connect(platform) as api,
        AsyncSandboxClient(client=api) as client,
    ):
        made = await asyncio.gather(*(client.create(request(f"s-{n}")) for n in range(1000)))
        began = time.monotonic()
        waits = [client.bulk_wait_for_creation([sandbox.id]) for sandbox in made]
        states = await asyncio.gather(*waits)
        seconds = time.monotonic() - began
        asked = platform.ledger()["requests"]["batch_get_sandbox_statuses"]
    assert all(list(state.values()) == ["RUNNING"] for state in states)
    assert seconds > 3
    assert asked <= 12 * seconds
