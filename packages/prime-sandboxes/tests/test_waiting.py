"""Waiting until sandboxes run and their gateways answer."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APITimeoutError,
    AsyncSandboxClient,
    CreateSandboxRequest,
    ForbiddenError,
    NotFoundError,
    PrimeError,
    SandboxImagePullError,
    SandboxNotRunningError,
    SandboxTimeoutError,
    ServerError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from conftest import Running, StartPlatform

pytestmark = pytest.mark.timeout(30)

BOX = CreateSandboxRequest(name="box", docker_image="python:3.11-slim")
NO_IMAGE = CreateSandboxRequest(name="box", docker_image="nobody/nothing:v9")
STATUSES = "batch_get_sandbox_statuses"
START = "command_session_start"


def snapshot(sandbox_id: str, status: str, build: str | None = None) -> str:
    """A batch answer with one row."""
    row = f'"sandbox_id": "{sandbox_id}", "status": "{status}"'
    if build is not None:
        row += f', "pending_image_build_id": "{build}"'
    return f'{{"statuses": [{{{row}}}], "errors": []}}'


async def test_a_wait_lasts_until_the_sandbox_runs_commands(start_platform: StartPlatform) -> None:
    await start_platform(start_delay=0.6)
    async with AsyncSandboxClient() as client:
        created = await client.create(BOX)
        began = time.monotonic()
        await client.wait_for_creation(created.id)
        assert 0.6 <= time.monotonic() - began < 3
        assert (await client.get(created.id)).status == "RUNNING"


async def test_a_wait_for_a_running_sandbox_takes_no_pause(
    either: AsyncSandboxClient, running: Running, platform: LocalPlatform
) -> None:
    box = await running(either)
    began = time.monotonic()
    await either.wait_for_creation(box.id)
    assert time.monotonic() - began < 0.9
    requests = platform.ledger()["requests"]
    assert (requests[STATUSES], requests[START]) == (1, 1)


async def test_a_wait_asks_for_as_many_commands_in_a_row_as_it_is_told(
    client: AsyncSandboxClient, running: Running, platform: LocalPlatform
) -> None:
    box = await running(client)
    unavailable = '{"code": "unavailable", "message": "booting"}'
    platform.add_faults(FaultRule(START, nth=2, status=503, body=unavailable))
    await client.wait_for_creation(box.id, stability_checks=2)
    assert platform.ledger()["requests"][START] == 4


@pytest.mark.parametrize(
    "fault", [{"reset": "after_commit"}, {"garbage": True}, {"truncate": 3}], ids=str
)
async def test_a_wait_survives_a_broken_answer_of_the_gateway(
    client: AsyncSandboxClient, running: Running, platform: LocalPlatform, fault: dict[str, Any]
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, nth=1, **fault))
    await client.wait_for_creation(box.id)
    assert platform.ledger()["requests"][START] >= 2


async def test_an_image_that_cannot_be_pulled_ends_the_wait(either: AsyncSandboxClient) -> None:
    created = await either.create(NO_IMAGE)
    with pytest.raises(SandboxImagePullError, match=r"nobody/nothing:v9") as caught:
        await either.wait_for_creation(created.id)
    error = caught.value
    assert (error.sandbox_id, error.status) == (created.id, "ERROR")
    assert (error.error_type, error.command) == ("IMAGE_PULL_FAILED", None)


async def test_the_end_of_a_sandbox_ends_the_wait(start_platform: StartPlatform) -> None:
    platform = await start_platform(start_delay=3600)
    async with AsyncSandboxClient() as client:
        deleted = await client.create(BOX)
        await client.delete(deleted.id)
        with pytest.raises(SandboxNotRunningError, match="TERMINATED") as caught:
            await client.wait_for_creation(deleted.id)
        assert type(caught.value) is SandboxNotRunningError
        old = await client.create(BOX.model_copy(update={"timeout_minutes": 1}))
        await platform.advance(3600)
        await platform.advance(61)
        with pytest.raises(SandboxTimeoutError):
            await client.bulk_wait_for_creation([old.id])


async def test_a_sandbox_that_never_runs_is_given_up_within_the_budget(
    start_platform: StartPlatform,
) -> None:
    await start_platform(start_delay=3600)
    async with AsyncSandboxClient() as client:
        created = await client.create(BOX)
        began = time.monotonic()
        with pytest.raises(SandboxNotRunningError, match="did not run within 1 s") as caught:
            await client.wait_for_creation(created.id, max_attempts=1)
        assert 0.9 < time.monotonic() - began < 5
        assert caught.value.error_type is None


@pytest.mark.parametrize(
    ("faults", "cause"),
    [
        ([FaultRule(START, delay_before=20)], APITimeoutError),
        ([FaultRule(START, status=502, body="<h1>Bad gateway</h1>")], ServerError),
        ([FaultRule(START, status=404, body='{"code": "not_found"}')], NotFoundError),
        ([FaultRule(START, reset="before_commit")], APIConnectionError),
        (
            [FaultRule(START, nth=1, status=503), FaultRule(START, delay_before=20)],
            ServerError,
        ),
    ],
    ids=["silent", "bad gateway", "not there yet", "reset", "failing, then silent"],
)
async def test_a_running_sandbox_whose_gateway_does_not_answer_is_given_up_within_the_budget(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    faults: list[FaultRule],
    cause: type[PrimeError],
) -> None:
    box = await running(client)
    platform.add_faults(*faults)
    began = time.monotonic()
    with pytest.raises(SandboxNotRunningError, match="its gateway did not answer") as caught:
        await client.wait_for_creation(box.id, max_attempts=1)
    assert 0.7 < time.monotonic() - began < 5
    error = caught.value
    assert (error.status, error.error_type) == ("RUNNING", "GATEWAY_REACHABILITY_TIMEOUT")
    assert isinstance(error.__cause__, cause)


async def test_a_refusal_that_no_waiting_cures_ends_the_wait(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either)
    platform.add_faults(FaultRule(START, status=403, body='{"code": "permission_denied"}'))
    with pytest.raises(ForbiddenError) as caught:
        await either.wait_for_creation(box.id)
    assert caught.value.operation == START


async def test_a_failure_to_read_states_is_ridden_out(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    # More than the attempts of one call.
    platform.add_faults(FaultRule(STATUSES, times=4, status=500))
    await client.wait_for_creation(box.id)
    assert platform.ledger()["requests"][STATUSES] == 5


async def test_a_refusal_to_tell_states_ends_the_wait(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    platform.add_faults(FaultRule(STATUSES, status=401))
    with pytest.raises(UnauthorizedError):
        await either.wait_for_creation("sbx_1")


async def test_an_unknown_sandbox_ends_the_wait(either: AsyncSandboxClient) -> None:
    with pytest.raises(SandboxNotRunningError) as caught:
        await either.wait_for_creation("sbx_nobody")
    assert caught.value.error_type == "SANDBOX_NOT_FOUND"


async def test_an_image_build_holds_the_budget_of_the_creation(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    building, pending = snapshot(box.id, "PENDING", build="bld_1"), snapshot(box.id, "PENDING")
    platform.add_faults(
        FaultRule(STATUSES, times=1, status=200, body=building),
        FaultRule(STATUSES, times=2, status=200, body=pending),
    )
    # Looks are a second apart: had the build's second counted, the third would be the last.
    await client.wait_for_creation(box.id, max_attempts=3)
    assert platform.ledger()["requests"][STATUSES] == 4


async def test_an_image_build_is_given_up_within_its_own_budget(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    building = snapshot(box.id, "PENDING", build="bld_1")
    platform.add_faults(FaultRule(STATUSES, status=200, body=building))
    began = time.monotonic()
    with pytest.raises(SandboxNotRunningError, match=r"image was not built within 0\.2 s"):
        await client.wait_for_creation(box.id, image_build_timeout_seconds=0.2)
    assert time.monotonic() - began < 5


async def test_many_sandboxes_are_waited_for_with_one_question(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    ids = [(await running(either)).id for _ in range(5)]
    assert await either.bulk_wait_for_creation(ids) == dict.fromkeys(ids, "RUNNING")
    assert platform.ledger()["requests"][STATUSES] == 1
    assert START not in platform.ledger()["requests"]
    assert await either.bulk_wait_for_creation([]) == {}


async def test_one_that_fails_ends_the_wait_for_all(
    either: AsyncSandboxClient, running: Running
) -> None:
    box, broken = await running(either), await either.create(NO_IMAGE)
    with pytest.raises(SandboxImagePullError) as caught:
        await either.bulk_wait_for_creation([box.id, broken.id])
    assert caught.value.sandbox_id == broken.id
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    "wrong", [{"max_attempts": 0}, {"stability_checks": 0}], ids=lambda wrong: next(iter(wrong))
)
async def test_a_wait_that_cannot_be_is_refused_before_sending(
    either: AsyncSandboxClient, platform: LocalPlatform, wrong: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await either.wait_for_creation("sbx_1", **wrong)
    with pytest.raises(ValueError, match="not one string"):
        await either.bulk_wait_for_creation("sbx_1")
    assert platform.ledger()["requests"] == {}


async def test_a_cancelled_wait_ends_at_once_and_leaves_the_others(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    lost = asyncio.create_task(client.wait_for_creation("sbx_nobody"))
    other = asyncio.create_task(client.wait_for_creation(box.id))
    await asyncio.sleep(0)
    lost.cancel()
    with pytest.raises(asyncio.CancelledError):
        await lost
    await other
