"""Volumes: private copies, publishing, and what the documentation says is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    AsyncSandboxClient,
    BadRequestError,
    CheckpointFailedError,
    CheckpointTimeoutError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    Sandbox,
    VolumeMount,
)

if TYPE_CHECKING:
    from conftest import Requested, Running, StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls")]

Refused = Callable[[AsyncSandboxClient], Coroutine[Any, Any, object]]
Attached = Callable[..., Coroutine[Any, Any, Sandbox]]


@pytest.fixture
async def platform(start_isolated: StartPlatform) -> LocalPlatform:
    return await start_isolated()


@pytest.fixture
def attached(running: Running) -> Attached:
    """Makes a sandbox with the volume `data` at /data."""

    async def make(
        client: AsyncSandboxClient, *, read_only: bool = False, **fields: Any
    ) -> Sandbox:
        mount = VolumeMount(name="data", mount_path="/data", read_only=read_only)
        return await running(client, volumes=[mount], **fields)

    return make


async def write(client: AsyncSandboxClient, sandbox: Sandbox, text: str) -> None:
    result = await client.execute_command(sandbox.id, f"echo {text} > /data/note")
    assert result.exit_code == 0, result


async def read(client: AsyncSandboxClient, sandbox: Sandbox) -> str:
    return (await client.execute_command(sandbox.id, "cat /data/note")).stdout.strip()


async def test_later_sandboxes_see_what_was_published(
    either: AsyncSandboxClient, attached: Attached
) -> None:
    created = await either.volumes.create("data")
    assert (created.name, created.head_checkpoint_id, created.occupied_bytes) == ("data", None, 0)
    writer = await attached(either)
    await write(either, writer, "hello")
    checkpoint = await either.volumes.publish(writer.id, "data")
    assert (checkpoint.state, checkpoint.sandbox_id) == ("DURABLE", writer.id)
    assert await either.list_checkpoints(writer.id) == []
    volume = await either.volumes.get("data")
    assert (volume.id, volume.head_checkpoint_id) == (created.id, checkpoint.id)
    assert volume.occupied_bytes == volume.account_storage_used_bytes == len("hello\n")
    await either.delete(writer.id)

    reader = await attached(either, read_only=True)
    assert await read(either, reader) == "hello"
    refused = await either.execute_command(reader.id, "echo more > /data/note")
    assert "Read-only file system" in refused.stderr
    with pytest.raises(BadRequestError, match="Read-only attachments cannot publish"):
        await either.volumes.publish(reader.id, "data")


async def test_a_copy_is_private_and_never_updated(
    client: AsyncSandboxClient, attached: Attached
) -> None:
    await client.volumes.create("data")
    first, second = await attached(client), await attached(client)
    await write(client, first, "one")
    await client.volumes.publish(first.id, "data")
    assert await read(client, second) == ""
    saved = await client.checkpoint(first.id)
    assert (await client.wait_for_checkpoint(saved.id)).occupied_bytes == 0, "volumes are left out"


async def test_a_stale_copy_is_published_by_force_only(
    client: AsyncSandboxClient, attached: Attached
) -> None:
    await client.volumes.create("data")
    first, second = await attached(client), await attached(client)
    await write(client, first, "one")
    await write(client, second, "two")
    await client.volumes.publish(first.id, "data")
    await client.volumes.publish(first.id, "data")  # upon its own publish it is not stale
    with pytest.raises(ConflictError, match="advanced"):
        await client.volumes.publish(second.id, "data")
    await client.volumes.publish(second.id, "data", force=True)
    with pytest.raises(ConflictError, match="advanced"):
        await client.volumes.publish(first.id, "data")
    assert await read(client, await attached(client)) == "two"


async def test_one_publish_at_a_time(start_isolated: StartPlatform, attached: Attached) -> None:
    platform = await start_isolated(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        await client.volumes.create("data")
        first, second = await attached(client), await attached(client)
        started = await client.volumes.publish(first.id, "data", wait=False)
        assert started.state == "PENDING"
        with pytest.raises(ConflictError, match="Another sandbox is publishing this volume"):
            await client.volumes.publish(second.id, "data", force=True)
        with pytest.raises(CheckpointTimeoutError):
            await client.wait_for_checkpoint(started.id, 0.2)
        assert (await client.volumes.get("data")).head_checkpoint_id is None
        await platform.advance(60)
        assert (await client.volumes.get("data")).head_checkpoint_id == started.id


async def test_a_failed_publish_keeps_what_the_volume_and_the_sandbox_have(
    client: AsyncSandboxClient, platform: LocalPlatform, attached: Attached
) -> None:
    await client.volumes.create("data")
    sandbox = await attached(client)
    await write(client, sandbox, "one")
    head = (await client.volumes.publish(sandbox.id, "data")).id
    await write(client, sandbox, "two")
    platform.add_faults(FaultRule("publish_sandbox_volume", fails="the disk broke", times=1))
    with pytest.raises(CheckpointFailedError, match="the disk broke"):
        await client.volumes.publish(sandbox.id, "data")
    assert (await client.volumes.get("data")).head_checkpoint_id == head
    assert await read(client, sandbox) == "two"
    assert (await client.volumes.publish(sandbox.id, "data")).parent_id == head


async def test_a_publish_is_sent_once(
    client: AsyncSandboxClient, platform: LocalPlatform, attached: Attached
) -> None:
    await client.volumes.create("data")
    sandbox = await attached(client)
    platform.add_faults(FaultRule("publish_sandbox_volume", reset="after_commit"))
    with pytest.raises(APIConnectionError):
        await client.volumes.publish(sandbox.id, "data")
    assert platform.ledger()["requests"]["publish_sandbox_volume"] == 1


async def test_names_are_unique_in_their_scope(either: AsyncSandboxClient) -> None:
    personal = await either.volumes.create("data")
    team = await either.volumes.create("data", team_id="team-a")
    assert (personal.team_id, team.team_id) == (None, "team-a")
    for scope in (None, "team-a"):
        with pytest.raises(ConflictError, match="already exists in this scope"):
            await either.volumes.create("data", team_id=scope)
    assert (await either.volumes.get("data", team_id="team-a")).id == team.id
    await either.volumes.delete("data")
    with pytest.raises(NotFoundError, match="Volume not found"):
        await either.volumes.get("data")
    assert (await either.volumes.get("data", team_id="team-a")).id == team.id


async def test_the_configured_team_is_the_scope(
    platform: LocalPlatform, attached: Attached, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-a")
    async with AsyncSandboxClient() as client:
        volume = await client.volumes.create("data")
        assert volume.team_id == "team-a"
        assert [each.id async for each in client.volumes.iter()] == [volume.id]
        assert (await client.volumes.list(team_id="")).volumes == []
        with pytest.raises(NotFoundError, match="Volume not found"):
            await attached(client, team_id="")
        await client.volumes.publish((await attached(client)).id, "data")


async def test_a_member_may_not_delete_the_volumes_of_a_team(
    start_platform: StartPlatform,
) -> None:
    await start_platform(assumptions=Assumptions(team_role="member"))
    async with AsyncSandboxClient() as client:
        await client.volumes.create("data", team_id="team-a")
        with pytest.raises(ForbiddenError, match="Team admin required"):
            await client.volumes.delete("data", team_id="team-a")


async def test_volumes_are_listed_page_by_page(either: AsyncSandboxClient) -> None:
    names = [f"v{number}" for number in range(5)]
    for name in names:
        await either.volumes.create(name)
    page = await either.volumes.list(page=2, per_page=2)
    assert [volume.name for volume in page.volumes] == ["v2", "v3"]
    assert (page.total, page.page, page.per_page, page.has_next) == (5, 2, 2, True)
    assert (page.storage_used_bytes, page.storage_limit_gb) == (0, 500)
    assert not (await either.volumes.list(page=3, per_page=2)).has_next
    assert [volume.name async for volume in either.volumes.iter()] == names


async def test_an_attached_volume_cannot_be_deleted(
    client: AsyncSandboxClient, attached: Attached
) -> None:
    await client.volumes.create("data")
    sandbox = await attached(client)
    head = await client.volumes.publish(sandbox.id, "data")
    with pytest.raises(ConflictError, match="Volume is mounted by one or more sandboxes"):
        await client.volumes.delete("data")
    with pytest.raises(ConflictError):
        await client.delete_checkpoint(head.id)
    await client.delete(sandbox.id)
    with pytest.raises(ConflictError, match="present version"):
        await client.delete_checkpoint(head.id)
    await client.volumes.delete("data")
    with pytest.raises(NotFoundError):
        await client.get_checkpoint(head.id)


async def test_a_delete_is_repeated_while_data_is_removed(
    start_isolated: StartPlatform, attached: Attached, requested: Requested
) -> None:
    platform = await start_isolated(removal_time=60)
    async with AsyncSandboxClient() as client:
        await client.volumes.create("data")
        sandbox = await attached(client)
        await client.volumes.publish(sandbox.id, "data")
        await client.delete(sandbox.id)
        deleting = asyncio.ensure_future(client.volumes.delete("data"))
        await requested(platform, "delete_sandbox_volume")
        with pytest.raises(ConflictError, match="being removed"):
            await attached(client)
        assert not deleting.done()
        await platform.advance(60)
        await deleting
        assert (await client.volumes.list()).volumes == []


async def test_only_what_is_attached_can_be_published(
    client: AsyncSandboxClient, running: Running, attached: Attached
) -> None:
    sandbox = await running(client)
    with pytest.raises(NotFoundError, match="Volume is not attached to this sandbox"):
        await client.volumes.publish(sandbox.id, "data")
    with pytest.raises(NotFoundError, match="Sandbox not found"):
        await client.volumes.publish("sbx_none", "data")
    with pytest.raises(NotFoundError, match="Volume not found"):
        await attached(client)


async def test_a_restored_sandbox_takes_volumes_too(
    client: AsyncSandboxClient, running: Running, attached: Attached
) -> None:
    await client.volumes.create("data")
    sandbox = await attached(client)
    await write(client, sandbox, "hello")
    await client.volumes.publish(sandbox.id, "data")
    await client.execute_command(sandbox.id, "echo own > note")
    saved = await client.wait_for_checkpoint((await client.checkpoint(sandbox.id)).id)
    restored = await attached(client, docker_image=None, checkpoint_id=saved.id)
    assert (await client.execute_command(restored.id, "cat note")).stdout == "own\n"
    assert await read(client, restored) == "hello"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("name", lambda client: client.volumes.create("My-Data")),
        ("name", lambda client: client.volumes.create("-a")),
        ("name", lambda client: client.volumes.create("a" * 41)),
        ("name", lambda client: client.volumes.get("")),
        ("name", lambda client: client.volumes.get("a\n")),
        ("name", lambda client: client.volumes.delete("a/b")),
        ("name", lambda client: client.volumes.publish("sbx_1", "a_b")),
        ("sandbox_id", lambda client: client.volumes.publish("", "data")),
        ("timeout_seconds", lambda client: client.volumes.publish("s", "a", timeout_seconds=-1)),
        ("per_page", lambda client: client.volumes.list(per_page=101)),
        ("page", lambda client: client.volumes.list(page=0)),
    ],
)
async def test_wrong_input_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, name: str, call: Refused
) -> None:
    with pytest.raises(ValueError, match=name):
        await call(client)
    assert platform.ledger()["requests"] == {}
