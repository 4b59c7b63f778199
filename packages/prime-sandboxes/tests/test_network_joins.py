"""Joining a private network as part of a sandbox's creation."""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, LocalPlatform
from prime_sandboxes import (
    AsyncSandboxClient,
    AsyncSandboxHandle,
    ConflictError,
    CreateSandboxRequest,
    LanMembershipError,
    LanNetwork,
    NetworkSyncTimeoutError,
    PaymentRequiredError,
    SandboxNotRunningError,
)
from prime_sandboxes._async import networks as client_networks
from prime_sandboxes.networks import MOST_JOINS, PendingJoin, PendingJoins

if TYPE_CHECKING:
    from conftest import ScriptedServer, StartPlatform

pytestmark = pytest.mark.timeout(30)

BOX: dict[str, Any] = {"name": "box", "docker_image": "python:3.11-slim"}
ENFORCED = Assumptions(unenforced_rules="applied")


@pytest.fixture
async def platform(start_platform: StartPlatform) -> LocalPlatform:
    """A platform that says of its rules that they are in force, as they are in other modes."""
    return await start_platform(assumptions=ENFORCED)


def requests(platform: LocalPlatform, operation: str) -> int:
    return platform.ledger()["requests"].get(operation, 0)


async def created_in(client: AsyncSandboxClient, network: LanNetwork, **fields: Any) -> str:
    request = CreateSandboxRequest(**BOX, lan_network_id=network.id, lan_tags=["web"], **fields)
    return (await client.create(request)).id


async def members_of(client: AsyncSandboxClient, network: LanNetwork) -> list[tuple[str, Any]]:
    found = await client.get_lan_network(network.id)
    return [(member.sandbox_id, member.tags) for member in found.members or ()]


async def test_a_sandbox_joins_its_network_when_its_creation_is_awaited(
    either: AsyncSandboxClient,
) -> None:
    network = await either.create_lan_network("lan")
    one, other = [await created_in(either, network) for _ in range(2)]
    assert await members_of(either, network) == []
    await either.wait_for_creation(one)
    assert await members_of(either, network) == [(one, ["web"])]
    await either.bulk_wait_for_creation([other])
    assert (other, ["web"]) in await members_of(either, network)
    # Once: what somebody changes later is not undone by another wait.
    await either.remove_lan_member(network.id, one)
    await either.wait_for_creation(one)
    assert one not in dict(await members_of(either, network))


async def test_a_join_waits_until_it_is_in_force(start_platform: StartPlatform) -> None:
    await start_platform(network_delay=1.5, assumptions=ENFORCED)
    async with AsyncSandboxClient() as client:
        network = await client.create_lan_network("lan")
        box = await created_in(client, network)
        await client.wait_for_creation(box)
        found = await client.get_lan_network(network.id)
        assert found.synced
        assert [member.synced for member in found.members or ()] == [True]


async def test_a_join_that_is_not_in_force_in_time_can_be_awaited_again(
    start_platform: StartPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_networks, "JOIN_TIMEOUT", 0.5)
    platform = await start_platform(network_delay=60, assumptions=ENFORCED)
    async with AsyncSandboxClient() as client:
        network = await client.create_lan_network("lan")
        box = await created_in(client, network)
        with pytest.raises(NetworkSyncTimeoutError, match=box):
            await client.wait_for_creation(box)
        await platform.advance(61)
        await client.wait_for_creation(box)


async def test_a_member_that_vanishes_ends_the_wait(
    start_platform: StartPlatform,
) -> None:
    await start_platform()  # never in force
    async with AsyncSandboxClient() as client:
        network = await client.create_lan_network("lan")
        box = await created_in(client, network)
        waiting = asyncio.create_task(client.wait_for_creation(box))
        for _ in range(500):
            if await members_of(client, network):
                break
            await asyncio.sleep(0.02)
        await client.remove_lan_member(network.id, box)
        with pytest.raises(RuntimeError, match="no member") as caught:
            await waiting
        assert isinstance(caught.value, LanMembershipError)
        assert (caught.value.sandbox_id, caught.value.network_id) == (box, network.id)


async def test_joins_to_one_network_share_their_questions(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(network_delay=0.5, assumptions=ENFORCED)
    async with AsyncSandboxClient() as client:
        network = await client.create_lan_network("lan")
        boxes = [await created_in(client, network) for _ in range(30)]
        await client.bulk_wait_for_creation(boxes)
        assert len(await members_of(client, network)) == 30
        assert requests(platform, "get_lan_network") <= 6
        assert requests(platform, "put_lan_member") == 30


async def test_a_refused_join_is_the_error_of_the_wait(client: AsyncSandboxClient) -> None:
    network = await client.create_lan_network("lan", team_id="t1")
    box = await created_in(client, network)
    with pytest.raises(ConflictError, match="same team or user"):
        await client.wait_for_creation(box)


async def test_what_is_deleted_or_ends_joins_nothing(
    platform: LocalPlatform, client: AsyncSandboxClient
) -> None:
    network = await client.create_lan_network("lan")
    one, other = [await created_in(client, network) for _ in range(2)]
    await client.delete(one)
    await client.bulk_delete([other])
    assert client._joins == {}
    with pytest.raises(SandboxNotRunningError):
        await client.wait_for_creation(one)
    assert requests(platform, "put_lan_member") == 0


async def test_the_network_is_not_sent_with_the_create(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_BASE_URL", scripted.url)
    scripted.answer_json(402, {"detail": "Insufficient balance"})
    request = CreateSandboxRequest(**BOX, lan_network_id="net_1", lan_tags=["a"])
    async with AsyncSandboxClient("key") as client:
        with pytest.raises(PaymentRequiredError):
            await client.create(request)
        assert client._joins == {}
    sent = json.loads(scripted.received[0].body)
    assert not {"lan_network_id", "lan_tags"} & sent.keys()


@pytest.mark.parametrize("tags", [["Web"], [f"t{n}" for n in range(17)], ["ok", ""]])
def test_a_request_refuses_tags_that_are_none(tags: list[str]) -> None:
    with pytest.raises(ValueError, match="tag"):
        CreateSandboxRequest(**BOX, lan_network_id="net_1", lan_tags=tags)
    with pytest.raises(ValueError, match="lan_network_id"):
        CreateSandboxRequest(**BOX, lan_tags=["web"])


async def test_the_sandboxes_of_a_fleet_join_their_network(client: AsyncSandboxClient) -> None:
    network = await client.create_lan_network("lan")
    request = CreateSandboxRequest(**BOX, lan_network_id=network.id, lan_tags=["worker"])

    async def work(sandbox: AsyncSandboxHandle, item: int) -> Any:
        return dict(await members_of(client, network))[sandbox.id]

    async with client.fleet(limit=2) as fleet:
        outcomes = [outcome async for outcome in fleet.map(work, range(3), request=request)]
    assert [outcome.value for outcome in outcomes] == [["worker"]] * 3
    assert client._joins == {}


WAIT_ELSEWHERE = """
import asyncio, pickle, sys

async def main():
    async with pickle.load(sys.stdin.buffer) as client:
        await client.wait_for_creation(sys.argv[1])

asyncio.run(main())
"""


async def test_a_pickled_client_knows_what_is_to_join(client: AsyncSandboxClient) -> None:
    network = await client.create_lan_network("lan")
    box = await created_in(client, network)
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WAIT_ELSEWHERE, box, stdin=asyncio.subprocess.PIPE
    )
    await asyncio.wait_for(other.communicate(pickle.dumps(client)), 20)
    assert other.returncode == 0
    assert await members_of(client, network) == [(box, ["web"])]


def test_joins_that_nobody_waits_for_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    joins = PendingJoins()
    for number in range(MOST_JOINS + 1):
        joins.note(f"sbx_{number}", PendingJoin("net_1", None))
    assert len(joins) == MOST_JOINS
    assert "sbx_0" in caplog.text
    assert "sbx_0" not in joins
