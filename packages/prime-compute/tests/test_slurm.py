"""Slurm deployments, against the local platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from prime_compute import (
    APIConnectionError,
    APIError,
    AsyncComputeClient,
    BadRequestError,
    ConfigurationError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ServerError,
    SlurmNotRunningError,
    SlurmResize,
    SlurmResizeUnverifiedError,
    SlurmUnavailableError,
    SlurmWaitTimeoutError,
)
from prime_compute.models import SlurmCluster
from prime_local import Assumptions, FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import StartPlatform

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExhFWFSkaWSzEan2yiepw dan"


@pytest.fixture
async def team(client: AsyncComputeClient) -> str:
    return (await client.teams.list()).data[0].team_id


@pytest.fixture
async def cluster(client: AsyncComputeClient, team: str) -> SlurmCluster:
    (row,) = await client.slurm.list(team)
    assert (row.status, row.gpu_count) == ("RUNNING", 48)
    return row


@pytest.fixture
def quick_waits(quick_polls: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_compute.resizing.PAUSE", 0.05)


async def test_a_deployment_begins_pending_and_comes_to_run(start_platform: StartPlatform) -> None:
    platform = await start_platform(provisioning_time=30)
    async with AsyncComputeClient() as client:
        team = (await client.teams.list()).data[0].team_id
        made = await client.slurm.deploy({"displayName": "mine", "numNodes": 3}, team_id=team)
        assert (made.status, made.display_name, made.gpu_count) == ("PENDING", "mine", 24)
        with pytest.raises(ConflictError):
            await client.slurm.connection(made.id)
        for status in ("DEPLOYING", "RUNNING"):
            await platform.advance(30)
            rows = {row.id: row for row in await client.slurm.list(team)}
            assert rows[made.id].status == status
        connection = await client.slurm.connection(made.id)
        assert (connection.connectable, connection.ssh_port) == (True, 2222)


async def test_what_can_not_be_planned_fails_in_the_call(
    client: AsyncComputeClient, team: str
) -> None:
    with pytest.raises(ConflictError, match="idle nodes"):
        await client.slurm.deploy({"numNodes": 6}, team_id=team)
    with pytest.raises(BadRequestError):
        await client.slurm.deploy({"numNodes": 0}, team_id=team)
    with pytest.raises(NotFoundError):
        await client.slurm.deploy({"primeClusterId": "other"}, team_id=team)
    assert len(await client.slurm.list(team)) == 1


@pytest.mark.parametrize("operation", ["deploy_slurm_cluster", "resize_slurm_cluster"])
async def test_what_may_have_been_done_is_not_sent_again(
    operation: str,
    platform: LocalPlatform,
    client: AsyncComputeClient,
    team: str,
    cluster: SlurmCluster,
) -> None:
    platform.add_faults(FaultRule(operation, reset="after_commit"))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "deploy_slurm_cluster": lambda: client.slurm.deploy({}, team_id=team),
        "resize_slurm_cluster": lambda: client.slurm.resize(cluster.id, 7, team_id=team),
    }
    with pytest.raises(APIConnectionError, match="may have done it"):
        await calls[operation]()
    assert platform.ledger()["requests"][operation] == 1


async def test_members_come_and_go(
    client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    dan = (await client.teams.list_members(team)).data[3]
    added = await client.slurm.add_member(
        cluster.id, "dan", [PUBLIC_KEY], linked_user_id=dan.user_id, team_id=team
    )
    assert (added.uid, added.linked_user_name, added.sudo) == (1002, "Dan", False)
    names = [each.username for each in await client.slurm.list_members(cluster.id, team_id=team)]
    assert names == ["carol", "dan"]
    with pytest.raises(ConflictError):
        await client.slurm.add_member(cluster.id, "dan", [PUBLIC_KEY], team_id=team)
    await client.slurm.remove_member(cluster.id, "dan", team_id=team)
    with pytest.raises(NotFoundError):
        await client.slurm.remove_member(cluster.id, "dan", team_id=team)


async def test_keys_are_checked_before_they_are_sent(
    platform: LocalPlatform, client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    with pytest.raises(TypeError, match="list of keys"):
        await client.slurm.add_member(cluster.id, "dan", PUBLIC_KEY, team_id=team)
    with pytest.raises(ValueError, match="ssh_authorized_keys"):
        await client.slurm.add_member(cluster.id, "dan", ["no key"], team_id=team)
    assert "add_slurm_member" not in platform.ledger()["requests"]


async def test_a_resize_is_waited_for(start_platform: StartPlatform, quick_waits: None) -> None:
    platform = await start_platform(provisioning_time=60)
    async with AsyncComputeClient() as client:
        team = (await client.teams.list()).data[0].team_id
        (before,) = await client.slurm.list(team)
        grown = await client.slurm.resize(before.id, 8, team_id=team)
        assert (grown.num_nodes, grown.added, grown.removed) == (8, ["gpu-15", "gpu-16"], [])
        with pytest.raises(ConflictError, match="Another resize"):
            await client.slurm.resize(before.id, 9, team_id=team)
        waiting = asyncio.create_task(client.slurm.wait_for_resize(before, grown, team_id=team))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await platform.advance(60)
        after = await asyncio.wait_for(waiting, 5)
        assert after.gpu_count == 64
        wrong = SlurmResize(num_nodes=9, added=["gpu-17"])
        with pytest.raises(SlurmWaitTimeoutError, match="64 GPUs") as caught:
            await client.slurm.wait_for_resize(after, wrong, team_id=team, timeout=0.2)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status == "RUNNING"


async def test_a_shrink_releases_idle_nodes_alone(
    platform: LocalPlatform, client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    await platform.advance(120)  # a job runs on two nodes
    shrunk = await client.slurm.resize(cluster.id, 1, team_id=team)
    assert (shrunk.num_nodes, len(shrunk.removed)) == (2, 4)
    row = await client.slurm.wait_for_resize(cluster, shrunk, team_id=team)
    assert row.gpu_count == 16


async def test_a_wait_ends_when_the_deployment_does(
    platform: LocalPlatform, client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    resize = SlurmResize(num_nodes=7, added=["gpu-15"])
    row = cluster.model_dump_json(by_alias=True).replace("RUNNING", "FAILED")
    for body in (f'{{"data":[{row}]}}', '{"data":[]}'):
        platform.clear_faults()
        platform.add_faults(FaultRule("list_slurm_clusters", status=200, body=body))
        with pytest.raises(SlurmNotRunningError) as caught:
            await client.slurm.wait_for_resize(cluster, resize, team_id=team)
        assert not isinstance(caught.value, TimeoutError)


async def test_a_row_that_is_not_of_the_resize_is_refused(
    client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    resize = SlurmResize(num_nodes=1, added=["gpu-15"])
    with pytest.raises(ValueError, match="before"):
        await client.slurm.wait_for_resize(cluster, resize, team_id=team)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequestError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (409, ConflictError),
        (500, ServerError),
        (502, SlurmResizeUnverifiedError),
        (503, SlurmUnavailableError),
    ],
)
async def test_each_status_of_a_resize_has_its_error(
    status: int,
    error: type[APIError],
    platform: LocalPlatform,
    client: AsyncComputeClient,
    team: str,
    cluster: SlurmCluster,
) -> None:
    platform.add_faults(FaultRule("resize_slurm_cluster", status=status))
    with pytest.raises(error) as caught:
        await client.slurm.resize(cluster.id, 7, team_id=team)
    assert type(caught.value) is error
    assert caught.value.status_code == status
    assert platform.ledger()["requests"]["resize_slurm_cluster"] == 1


async def test_a_resize_that_could_not_be_verified_shows_in_the_list(
    platform: LocalPlatform, client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    platform.add_faults(FaultRule("resize_slurm_cluster", fails="labels differ"))
    with pytest.raises(SlurmResizeUnverifiedError, match="labels differ"):
        await client.slurm.resize(cluster.id, 7, team_id=team)
    assert (await client.slurm.list(team))[0].gpu_count == 56


@pytest.mark.parametrize("nodes", [0, -1, 1.5, True, "8"])
async def test_an_impossible_number_of_nodes_is_not_sent(
    nodes: Any,
    platform: LocalPlatform,
    client: AsyncComputeClient,
    cluster: SlurmCluster,
    team: str,
) -> None:
    with pytest.raises(ValueError, match="num_nodes"):
        await client.slurm.resize(cluster.id, nodes, team_id=team)
    assert "resize_slurm_cluster" not in platform.ledger()["requests"]


async def test_too_many_nodes_are_refused(
    client: AsyncComputeClient, team: str, cluster: SlurmCluster
) -> None:
    with pytest.raises(BadRequestError):
        await client.slurm.resize(cluster.id, 65, team_id=team)
    with pytest.raises(ConflictError, match="idle nodes"):
        await client.slurm.resize(cluster.id, 12, team_id=team)


async def test_members_of_a_team_may_look_and_admins_may_change(
    start_platform: StartPlatform,
) -> None:
    await start_platform(assumptions=Assumptions(team_role="member"))
    async with AsyncComputeClient() as client:
        team = (await client.teams.list()).data[0].team_id
        (row,) = await client.slurm.list(team)
        await client.slurm.list_members(row.id, team_id=team)
        for change in (
            client.slurm.deploy({}, team_id=team),
            client.slurm.resize(row.id, 7, team_id=team),
            client.slurm.add_member(row.id, "dan", [PUBLIC_KEY], team_id=team),
            client.slurm.remove_member(row.id, "carol", team_id=team),
        ):
            with pytest.raises(ForbiddenError):
                await change


async def test_a_key_without_the_factorys_scope_may_not_resize(
    platform: LocalPlatform, team: str, cluster: SlurmCluster
) -> None:
    scopes = {"slurm_clusters": {"read": True, "write": True}, "teams": {"read": True}}
    async with AsyncComputeClient(platform.add_key("slurm", scopes=scopes)) as client:
        assert await client.slurm.list(team)
        with pytest.raises(ForbiddenError, match="factory:write"):
            await client.slurm.resize(cluster.id, 7, team_id=team)


async def test_without_a_team_nothing_is_sent(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    with pytest.raises(ConfigurationError, match="PRIME_TEAM_ID"):
        await client.slurm.list()
    assert "list_slurm_clusters" not in platform.ledger()["requests"]


async def test_what_belongs_to_others_is_not_found(
    client: AsyncComputeClient, cluster: SlurmCluster
) -> None:
    with pytest.raises(NotFoundError):
        await client.slurm.connection("unknown")
    duo = (await client.teams.list()).data[1].team_id
    with pytest.raises(NotFoundError):
        await client.slurm.list_members(cluster.id, team_id=duo)
    with pytest.raises(ForbiddenError):
        await client.slurm.list("cmg0team5x0002zz4m1k6w7bd")
