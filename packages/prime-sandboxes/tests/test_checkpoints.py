"""Checkpoints: saving a sandbox's files, waiting for it, restoring and deleting."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from prime_core.reaper import reaper
from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    AsyncSandboxClient,
    BatchStatusUnsupportedError,
    CheckpointFailedError,
    CheckpointTimeoutError,
    ConflictError,
    CreateSandboxRequest,
    NotFoundError,
    PrimeError,
    SandboxCheckpoint,
)

if TYPE_CHECKING:
    from conftest import Requested, Running, StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls")]

Refused = Callable[[AsyncSandboxClient], Coroutine[Any, Any, object]]


async def test_a_sandbox_is_restored_with_the_files_of_a_checkpoint(
    either: AsyncSandboxClient, running: Running
) -> None:
    source = await running(either, disk_size_gb=7)
    await either.execute_command(source.id, "echo before > note; chmod 640 note; ln -s note link")
    checkpoint = await either.checkpoint(source.id)
    assert (checkpoint.sandbox_id, checkpoint.state) == (source.id, "PENDING")
    await either.execute_command(source.id, "echo after > note")

    durable = await either.wait_for_checkpoint(checkpoint.id, timeout_seconds=20)
    assert (durable.id, durable.state, durable.error) == (checkpoint.id, "DURABLE", None)
    assert durable.occupied_bytes == durable.stored_bytes == len("before\n")
    await either.delete(source.id)
    restored = await either.create(CreateSandboxRequest(name="again", checkpoint_id=durable.id))
    await either.wait_for_creation(restored.id)
    assert (restored.docker_image, restored.disk_size_gb) == (source.docker_image, 7)
    shown = await either.execute_command(restored.id, "cat link; stat -c %a note; echo > new")
    assert shown.stdout == "before\n640\n"
    assert shown.exit_code == 0


async def test_checkpoints_are_listed_oldest_first_and_read_by_id(
    either: AsyncSandboxClient, running: Running
) -> None:
    sandbox, other = await running(either), await running(either)
    first = await either.checkpoint(sandbox.id)
    await either.checkpoint(other.id)
    second = await either.checkpoint(sandbox.id)
    for checkpoint in (first, second):
        await either.wait_for_checkpoint(checkpoint.id)
    listed = await either.list_checkpoints(sandbox.id)
    assert [each.id for each in listed] == [first.id, second.id]
    assert await either.list_checkpoints(sandbox.id, second.id) == [listed[1]]
    assert await either.list_checkpoints(sandbox.id, "ckpt_none") == []
    assert await either.get_checkpoint(first.id) == listed[0]
    answer = await either.get_checkpoints([second.id, "ckpt_none", first.id])
    assert answer.checkpoints == [listed[1], listed[0]]
    assert [(each.checkpoint_id, each.code) for each in answer.errors] == [
        ("ckpt_none", "NOT_FOUND")
    ]


async def test_a_deleted_checkpoint_is_gone(either: AsyncSandboxClient, running: Running) -> None:
    sandbox = await running(either)
    checkpoint = await either.checkpoint(sandbox.id)
    await either.wait_for_checkpoint(checkpoint.id)
    await either.delete_checkpoint(checkpoint.id)
    with pytest.raises(NotFoundError, match="Checkpoint not found"):
        await either.get_checkpoint(checkpoint.id)
    with pytest.raises(NotFoundError, match="Checkpoint not found"):
        await either.delete_checkpoint(checkpoint.id)


async def test_what_a_live_sandbox_builds_on_cannot_be_deleted(
    either: AsyncSandboxClient, running: Running
) -> None:
    source = await running(either)
    used, free = await either.checkpoint(source.id), await either.checkpoint(source.id)
    await either.wait_for_checkpoint(used.id)
    await either.wait_for_checkpoint(free.id)
    child = await either.create(CreateSandboxRequest(name="child", checkpoint_id=used.id))
    with pytest.raises(ConflictError, match="live sandbox"):
        await either.delete_checkpoint(used.id)
    answer = await either.delete_sandbox_checkpoints(source.id)
    assert answer.deleted == [free.id]
    assert [(each.checkpoint_id, each.code) for each in answer.errors] == [(used.id, "CONFLICT")]
    await either.delete(child.id)
    assert (await either.delete_sandbox_checkpoints(source.id)).deleted == [used.id]
    assert await either.list_checkpoints(source.id) == []


async def test_what_does_not_exist_is_not_found(either: AsyncSandboxClient) -> None:
    for call in (
        either.checkpoint("sbx_none"),
        either.list_checkpoints("sbx_none"),
        either.delete_sandbox_checkpoints("sbx_none"),
        either.get_checkpoint("ckpt_none"),
        either.wait_for_checkpoint("ckpt_none"),
        either.create(CreateSandboxRequest(name="a", checkpoint_id="ckpt_none")),
    ):
        with pytest.raises(NotFoundError):
            await call


async def test_only_a_running_sandbox_can_be_saved(
    client: AsyncSandboxClient, running: Running
) -> None:
    sandbox = await running(client)
    await client.delete(sandbox.id)
    with pytest.raises(ConflictError, match="not running"):
        await client.checkpoint(sandbox.id)


@pytest.mark.parametrize("state", ["PENDING", "UPLOADING"])
async def test_a_wait_ends_when_the_checkpoint_is_durable_whatever_it_was_before(
    start_platform: StartPlatform, running: Running, state: Any
) -> None:
    platform = await start_platform(
        checkpoint_time=60, assumptions=Assumptions(unfinished_checkpoint=state)
    )
    async with AsyncSandboxClient() as client:
        checkpoint = await client.checkpoint((await running(client)).id)
        assert checkpoint.state == state
        with pytest.raises(ConflictError):
            await client.create(CreateSandboxRequest(name="early", checkpoint_id=checkpoint.id))
        waiting = asyncio.ensure_future(client.wait_for_checkpoint(checkpoint.id))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await platform.advance(60)
        assert (await waiting).state == "DURABLE"


async def test_a_wait_that_is_over_is_no_failure_of_the_checkpoint(
    start_platform: StartPlatform, running: Running
) -> None:
    platform = await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        checkpoint = await client.checkpoint((await running(client)).id)
        with pytest.raises(TimeoutError) as caught:
            await client.wait_for_checkpoint(checkpoint.id, timeout_seconds=0.2)
        error = caught.value
        assert isinstance(error, CheckpointTimeoutError)
        assert isinstance(error, PrimeError)
        assert (error.checkpoint_id, error.timeout) == (checkpoint.id, 0.2)
        assert checkpoint.id in str(error)
        await platform.advance(60)
        assert (await client.wait_for_checkpoint(checkpoint.id)).state == "DURABLE"


async def test_a_checkpoint_that_failed_ends_the_wait(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    platform.add_faults(FaultRule("create_checkpoint", fails="the disk broke"))
    checkpoint = await either.checkpoint((await running(either)).id)
    with pytest.raises(RuntimeError) as caught:
        await either.wait_for_checkpoint(checkpoint.id)
    error = caught.value
    assert isinstance(error, CheckpointFailedError)
    assert isinstance(error, PrimeError)
    assert (error.checkpoint_id, error.state) == (checkpoint.id, "FAILED")
    assert "the disk broke" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args, vars(copy)) == (type(error), error.args, vars(error))
    await either.delete_checkpoint(checkpoint.id)


async def test_a_checkpoint_is_lost_with_its_sandbox_until_it_is_durable(
    start_platform: StartPlatform, running: Running
) -> None:
    platform = await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        sandbox = await running(client)
        checkpoint = await client.checkpoint(sandbox.id)
        waiting = asyncio.ensure_future(client.wait_for_checkpoint(checkpoint.id))
        await asyncio.sleep(0.1)
        await client.delete(sandbox.id)
        with pytest.raises(CheckpointFailedError, match="ended before"):
            await waiting
        await platform.advance(60)
        assert (await client.get_checkpoint(checkpoint.id)).state == "FAILED"


async def test_a_checkpoint_that_is_being_deleted_ends_the_wait(
    start_platform: StartPlatform, running: Running
) -> None:
    await start_platform(removal_time=60)
    async with AsyncSandboxClient() as client:
        checkpoint = await client.checkpoint((await running(client)).id)
        await client.wait_for_checkpoint(checkpoint.id)
        await client.delete_checkpoint(checkpoint.id)
        with pytest.raises(CheckpointFailedError, match="DELETING"):
            await client.wait_for_checkpoint(checkpoint.id)


async def test_all_waits_of_a_client_share_their_questions(
    start_platform: StartPlatform, running: Running
) -> None:
    platform = await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        sandbox = await running(client)
        made = await asyncio.gather(*(client.checkpoint(sandbox.id) for _ in range(150)))
        waits = [client.wait_for_checkpoint(each.id) for each in [*made, made[0]]]
        waiting = asyncio.gather(*waits)
        await asyncio.sleep(0.1)
        await platform.advance(60)
        found = await waiting
    assert [each.id for each in found] == [each.id for each in [*made, made[0]]]
    assert all(each.state == "DURABLE" for each in found)
    requests = platform.ledger()["requests"]
    assert requests["batch_get_checkpoints"] <= 40
    assert "get_checkpoint" not in requests


@pytest.mark.parametrize("status", [404, 405])
async def test_waiting_works_without_the_batch_route(
    start_platform: StartPlatform, running: Running, status: Any
) -> None:
    platform = await start_platform(assumptions=Assumptions(batch_routes=status))
    async with AsyncSandboxClient() as client:
        sandbox = await running(client)
        made = [await client.checkpoint(sandbox.id) for _ in range(2)]
        for each in made:
            assert (await client.wait_for_checkpoint(each.id)).state == "DURABLE"
        with pytest.raises(NotFoundError):
            await client.wait_for_checkpoint("ckpt_none")
        assert platform.ledger()["requests"]["batch_get_checkpoints"] == 1
        with pytest.raises(BatchStatusUnsupportedError, match=rf"^HTTP {status}: "):
            await client.get_checkpoints([made[0].id])


async def test_closing_the_client_ends_its_waits(
    start_platform: StartPlatform, running: Running
) -> None:
    await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        checkpoint = await client.checkpoint((await running(client)).id)
        waiting = asyncio.ensure_future(client.wait_for_checkpoint(checkpoint.id))
        await asyncio.sleep(0.1)
    with pytest.raises(RuntimeError, match="closed"):
        await waiting


async def test_a_lost_answer_is_not_followed_by_a_second_checkpoint(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    sandbox = await running(client)
    platform.add_faults(FaultRule("create_checkpoint", reset="after_commit"))
    with pytest.raises(APIConnectionError) as caught:
        await client.checkpoint(sandbox.id)
    assert caught.value.sent == "unknown"
    assert len(await client.list_checkpoints(sandbox.id)) == 1


async def test_a_checkpoint_that_nobody_waits_for_any_more_is_deleted(
    start_platform: StartPlatform, running: Running, requested: Requested
) -> None:
    platform = await start_platform(checkpoint_time=60)
    platform.add_faults(FaultRule("create_checkpoint", delay_after=0.3))
    async with AsyncSandboxClient() as client:
        sandbox = await running(client)
        call = asyncio.ensure_future(client.checkpoint(sandbox.id))
        await requested(platform, "create_checkpoint")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await requested(platform, "delete_checkpoint")  # refused while it is in progress
        assert len(await client.list_checkpoints(sandbox.id)) == 1
        await platform.advance(60)
        await reaper.drain(client._transport)
        assert await client.list_checkpoints(sandbox.id) == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sandbox_id", lambda client: client.checkpoint("")),
        ("sandbox_id", lambda client: client.list_checkpoints("")),
        ("checkpoint_id", lambda client: client.list_checkpoints("sbx_1", "")),
        ("sandbox_id", lambda client: client.delete_sandbox_checkpoints("")),
        ("checkpoint_id", lambda client: client.get_checkpoint("")),
        ("checkpoint_id", lambda client: client.get_checkpoint("x" * 65)),
        ("checkpoint_id", lambda client: client.delete_checkpoint("a\n")),
        ("checkpoint_id", lambda client: client.wait_for_checkpoint("")),
        ("checkpoint_ids", lambda client: client.get_checkpoints([])),
        ("checkpoint_ids", lambda client: client.get_checkpoints("ckpt_1")),
        ("checkpoint_ids", lambda client: client.get_checkpoints([str(n) for n in range(101)])),
        ("repeated", lambda client: client.get_checkpoints(["a", "a"])),
        ("timeout_seconds", lambda client: client.wait_for_checkpoint("a", 0)),
        ("timeout_seconds", lambda client: client.wait_for_checkpoint("a", float("inf"))),
        ("timeout_seconds", lambda client: client.wait_for_checkpoint("a", float("nan"))),
    ],
)
async def test_wrong_input_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, name: str, call: Refused
) -> None:
    with pytest.raises(ValueError, match=name):
        await call(client)
    assert platform.ledger()["requests"] == {}


def test_a_state_that_is_not_known_here_is_read() -> None:
    checkpoint = SandboxCheckpoint.model_validate(
        {
            "id": "ckpt_1",
            "sandbox_id": "sbx_1",
            "state": "THAWING",
            "depth": 1,
            "docker_image": "a",
            "created_at": "2026-11-20T09:15:00",
            "updated_at": "2026-11-20T09:15:00Z",
        }
    )
    assert checkpoint.state == "THAWING"
    assert checkpoint.created_at == checkpoint.updated_at
