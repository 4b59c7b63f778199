"""A fleet's work: limits, order, streaming, retries, failures, clean-up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from prime_core import APIClient, AsyncAPIClient, Config
from prime_local import LocalPlatform
from prime_local.faults import FaultRule
from prime_local.subprocess_server import PlatformProcess
from prime_sandboxes import (
    AsyncSandboxClient,
    AsyncSandboxHandle,
    CommandResponse,
    CreateSandboxRequest,
    FleetCleanupError,
    PaymentRequiredError,
    SandboxClient,
    SandboxHandle,
    SandboxImagePullError,
)

UNPACED = {"sandbox-create": None}
REQUEST = CreateSandboxRequest(name="fleet", docker_image="python:3.11-slim", labels=["mine"])


@pytest.fixture
async def client(prime_platform: LocalPlatform) -> AsyncIterator[AsyncSandboxClient]:
    config = Config(prime_platform.api_key, base_url=prime_platform.url)
    async with (
        AsyncAPIClient(config=config, limits=UNPACED) as api,
        AsyncSandboxClient(client=api) as sandboxes,
    ):
        yield sandboxes


async def double(sandbox: AsyncSandboxHandle, item: int) -> int:
    return int((await sandbox.execute_command(f"echo $(({item} * 2))")).stdout)


async def test_every_item_gets_a_fresh_sandbox_and_its_outcome(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    async with client.fleet(limit=8, labels=["both"]) as fleet:
        outcomes = [o async for o in fleet.map(double, range(20), request=REQUEST)]
    assert {outcome.item: outcome.value for outcome in outcomes} == {n: 2 * n for n in range(20)}
    assert len({outcome.sandbox_id for outcome in outcomes}) == 20
    assert all(outcome.ok and outcome.timings.worked > 0 for outcome in outcomes)
    made = [sandbox async for sandbox in client.iter(labels=[fleet.label, "mine", "both"])]
    assert len(made) == 20
    ledger = prime_platform.ledger()
    assert ledger["sandboxes"]["live"] == 0
    # Besides commands: a create each, and questions and deletes that are shared.
    asked = {k: n for k, n in ledger["requests"].items() if not k.startswith("command")}
    assert sum(asked.values()) <= 4 * 20
    assert REQUEST.labels == ["mine"], "the caller's request is not changed"


async def test_the_function_may_use_the_client_for_all_else(client: AsyncSandboxClient) -> None:
    async def shout(sandbox: AsyncSandboxHandle, item: str) -> str:
        folder = sandbox.sandbox.disk_mount_path
        await sandbox.client.upload_bytes(sandbox.id, f"{folder}/in", item.encode(), "in")
        await sandbox.execute_command("tr a-z A-Z < in > out")
        return (await sandbox.client.read_file(sandbox.id, f"{folder}/out")).content

    async with client.fleet() as fleet:
        outcomes = [o async for o in fleet.map(shout, ["a", "b"], request=REQUEST, ordered=True)]
    assert [outcome.value for outcome in outcomes] == ["A", "B"]


async def test_the_limit_bounds_live_sandboxes(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    async with client.fleet(limit=3) as fleet:
        async for outcome in fleet.map(double, range(12), request=REQUEST):
            assert outcome.ok
    assert prime_platform.ledger()["sandboxes"]["peak"] == 3


async def test_ordered_outcomes_come_in_the_items_order(client: AsyncSandboxClient) -> None:
    async def slow_first(sandbox: AsyncSandboxHandle, item: int) -> None:
        await asyncio.sleep(0.5 if item == 0 else 0)

    async with client.fleet(limit=6) as fleet:
        stream = fleet.map(slow_first, range(6), request=REQUEST, ordered=True)
        assert [outcome.item async for outcome in stream] == list(range(6))
        stream = fleet.map(slow_first, range(6), request=REQUEST)
        assert [outcome.item async for outcome in stream][-1] == 0


async def test_empty_input_ends_at_once(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    async with client.fleet() as fleet:
        nothing: list[int] = []
        assert [o async for o in fleet.map(double, nothing, request=REQUEST)] == []
    assert prime_platform.ledger()["requests"] == {}


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_endless_input_is_pulled_only_as_outcomes_are_taken(
    prime_platform: LocalPlatform, client: AsyncSandboxClient, asynchronous: bool
) -> None:
    pulled = 0

    def endless() -> Iterator[int]:
        nonlocal pulled
        while True:
            pulled += 1
            yield pulled

    async def endless_too() -> AsyncIterator[int]:
        for item in endless():
            yield item

    taken = 0
    async with client.fleet(limit=4) as fleet:
        items = endless_too() if asynchronous else endless()
        async for outcome in fleet.map(double, items, request=REQUEST):
            assert outcome.ok
            taken += 1
            await asyncio.sleep(0.05)
            assert pulled <= taken + 2 * 4 + 1
            if taken == 12:
                break
    assert prime_platform.ledger()["sandboxes"]["live"] == 0


async def test_an_async_generator_of_items_is_closed_when_the_fleet_is_left(
    client: AsyncSandboxClient,
) -> None:
    closed = False

    async def items() -> AsyncIterator[int]:
        nonlocal closed
        try:
            for item in range(1000):
                yield item
        finally:
            closed = True

    async with client.fleet(limit=2) as fleet:
        async for _ in fleet.map(double, items(), request=REQUEST):
            break
    assert closed


async def test_an_exception_of_the_function_is_a_value_unless_asked_otherwise(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    async def odd_fails(sandbox: AsyncSandboxHandle, item: int) -> int:
        if item % 2:
            raise LookupError(item)
        return item

    async with client.fleet(limit=4) as fleet:
        outcomes = [o async for o in fleet.map(odd_fails, range(6), request=REQUEST)]
        assert sorted(o.item for o in outcomes if isinstance(o.error, LookupError)) == [1, 3, 5]
        with pytest.raises(LookupError):
            async for _ in fleet.map(odd_fails, range(6), request=REQUEST, raise_errors=True):
                pass
    assert prime_platform.ledger()["sandboxes"]["live"] == 0


async def test_a_function_that_is_cancelled_from_within_is_its_items_failure(
    client: AsyncSandboxClient,
) -> None:
    async def cancels_itself(sandbox: AsyncSandboxHandle, item: int) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(9))
        inner.cancel()
        await inner

    async with client.fleet(limit=2) as fleet:
        outcomes = [o async for o in fleet.map(cancels_itself, range(2), request=REQUEST)]
    assert [type(outcome.error) for outcome in outcomes] == [RuntimeError] * 2


async def test_a_command_cut_short_by_an_outage_is_tried_again_in_a_fresh_sandbox(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    started = asyncio.Event()

    async def work(sandbox: AsyncSandboxHandle, item: int) -> str:
        started.set()
        return (await sandbox.execute_command("sleep 0.8; echo done")).stdout

    async with client.fleet(limit=2) as fleet:
        stream = fleet.map(work, range(2), request=REQUEST, retries=3)
        first = asyncio.ensure_future(stream.__anext__())
        await started.wait()
        await asyncio.sleep(0.3)
        await prime_platform.outage(0.5)
        outcomes = [await first, await stream.__anext__()]
    assert [outcome.value for outcome in outcomes] == ["done\n"] * 2
    assert max(outcome.attempts for outcome in outcomes) > 1


async def test_a_failed_sandbox_is_replaced_as_often_as_asked(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    tried: list[str] = []

    async def dies_twice(sandbox: AsyncSandboxHandle, item: int) -> CommandResponse:
        tried.append(sandbox.id)
        if len(tried) <= 2:
            await client.delete(sandbox.id)
        return await sandbox.execute_command("true")

    async with client.fleet(limit=1) as fleet:
        stream = fleet.map(dies_twice, [0], request=REQUEST, retries=2)
        (outcome,) = [outcome async for outcome in stream]
    assert outcome.ok
    assert outcome.attempts == 3
    assert len(set(tried)) == 3
    assert prime_platform.ledger()["sandboxes"]["live"] == 0


async def test_an_image_that_cannot_be_pulled_is_its_items_outcome(
    client: AsyncSandboxClient,
) -> None:
    missing = CreateSandboxRequest(name="fleet", docker_image="no-such-image:1")
    async with client.fleet() as fleet:
        (outcome,) = [o async for o in fleet.map(double, [1], request=lambda _: missing)]
    assert isinstance(outcome.error, SandboxImagePullError)


async def test_a_failure_that_holds_for_every_item_ends_the_fleet(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    prime_platform.add_faults(FaultRule(operation="create_sandbox", status=402))

    async def run() -> None:
        async with client.fleet(limit=5) as fleet:
            async for _ in fleet.map(double, range(1000), request=REQUEST):
                pass

    with pytest.raises(PaymentRequiredError):
        await run()
    assert prime_platform.ledger()["requests"]["create_sandbox"] <= 10


async def test_a_broken_iterable_ends_the_fleet_with_its_exception(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise OSError("the file is gone")

    taken: list[int] = []

    async def run() -> None:
        async with client.fleet() as fleet:
            async for outcome in fleet.map(double, breaks(), request=REQUEST):
                taken.append(outcome.item)

    with pytest.raises(OSError, match="the file is gone"):
        await run()
    assert taken == [1], "what came before it is handed out first"
    assert prime_platform.ledger()["sandboxes"]["live"] == 0


async def test_a_delete_that_fails_for_good_is_reported_with_the_sandboxes(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    prime_platform.add_faults(
        FaultRule(operation="bulk_delete_sandboxes", status=403),
        FaultRule(operation="delete_sandbox", status=403),
    )
    made: list[str | None] = []

    async def run() -> None:
        async with client.fleet() as fleet:
            async for outcome in fleet.map(double, [1], request=REQUEST):
                made.append(outcome.sandbox_id)

    with pytest.raises(FleetCleanupError) as failure:
        await run()
    assert failure.value.sandbox_ids == made
    prime_platform.clear_faults()
    swept = await client.sweep(failure.value.label)
    assert swept.succeeded == made


async def test_deletes_outlast_an_outage_of_the_platform(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    async def then_down(sandbox: AsyncSandboxHandle, item: int) -> None:
        prime_platform.add_faults(FaultRule(status=503, times=12))

    async with client.fleet(limit=2) as fleet:
        async for outcome in fleet.map(then_down, range(2), request=REQUEST):
            assert outcome.ok
    assert prime_platform.ledger()["sandboxes"]["live"] == 0


async def test_bad_arguments_are_refused_before_anything_is_sent(
    prime_platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    keyed = REQUEST.model_copy(update={"idempotency_key": "mine"})
    with pytest.raises(ValueError, match="limit"):
        client.fleet(limit=0)
    with pytest.raises(ValueError, match="labels"):
        client.fleet(labels="mine")
    with pytest.raises(RuntimeError, match="enter"):
        client.fleet().map(double, [1], request=REQUEST)
    with pytest.raises(TypeError, match="limit"):
        client.fleet(limit=1.5)  # type: ignore[arg-type]
    async with client.fleet() as fleet:
        with pytest.raises(TypeError, match="CreateSandboxRequest"):
            fleet.map(double, [1], request=None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="idempotency"):
            fleet.map(double, [1], request=keyed)
        with pytest.raises(ValueError, match="retries"):
            fleet.map(double, [1], request=REQUEST, retries=-1)
    assert prime_platform.ledger()["requests"] == {}


def test_the_sync_fleet_runs_a_plain_function_on_worker_threads(
    prime_platform_server: PlatformProcess,
) -> None:
    prime_platform_server.reset()
    threads: set[str] = set()

    def triple(sandbox: SandboxHandle, item: int) -> int:
        threads.add(threading.current_thread().name)
        assert threading.current_thread().daemon
        assert sandbox.client.get(sandbox.id).status == "RUNNING"
        return int(sandbox.execute_command(f"echo $(({item} * 3))").stdout)

    config = Config(prime_platform_server.api_key, base_url=prime_platform_server.url)
    with (
        APIClient(config=config, limits=UNPACED) as api,
        SandboxClient(api) as client,
        client.fleet(limit=4) as fleet,
    ):
        # A generator, whose next() may block: it is pulled on a thread too.
        items = (n for n in range(10))
        stream = fleet.map(triple, items, request=REQUEST, ordered=True)
        assert [outcome.value for outcome in stream] == [3 * n for n in range(10)]
        async_one = list(fleet.map(double, [1], request=REQUEST))  # type: ignore[arg-type]
        assert isinstance(async_one[0].error, TypeError)
        assert "async" in str(async_one[0].error)
    assert threads
    ledger = prime_platform_server.ledger()["sandboxes"]
    assert (ledger["live"], ledger["created"]) == (0, 11)


def test_breaking_out_of_the_sync_loop_ends_its_work(
    prime_platform_server: PlatformProcess,
) -> None:
    prime_platform_server.reset()
    config = Config(prime_platform_server.api_key, base_url=prime_platform_server.url)
    with (
        APIClient(config=config, limits=UNPACED) as api,
        SandboxClient(api) as client,
        client.fleet(limit=2) as fleet,
    ):
        for _ in fleet.map(lambda sandbox, item: sandbox.id, range(1000), request=REQUEST):
            break
        made = prime_platform_server.ledger()["sandboxes"]["created"]
        time.sleep(2)
        assert prime_platform_server.ledger()["sandboxes"]["created"] <= made + 2
