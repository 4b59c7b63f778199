"""Volumes as they are made, listed, grown and deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conditions import until

from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_train import (
    APIError,
    AsyncTrainClient,
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    VolumeBusyError,
    VolumeExistsError,
    VolumeNotReadyError,
    VolumePathError,
    VolumeStatus,
    VolumeWaitTimeoutError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]

TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"


def live(platform: LocalPlatform) -> int:
    return platform.ledger()["training_volumes"]["live"]


async def test_a_volume_is_made_read_grown_and_deleted(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    made = await client.volumes.create("research", "500Gi")
    assert (made.name, made.size, made.status, made.created_by_name) == (
        "research",
        "500Gi",
        VolumeStatus.RUNNING,
        "Ada",
    )
    assert made.created_at is not None
    assert made.created_at.tzinfo is not None
    assert await client.volumes.list() == [made] == [await client.volumes.get_volume("research")]
    assert await client.volumes.wait_until_ready("research") == made
    assert (await client.volumes.expand("research", "1Ti")).size == "1Ti"
    with pytest.raises(BadRequestError, match="only grow"):
        await client.volumes.expand("research", "1024Gi")
    assert (await client.volumes.usage()).model_extra == {"usedBytes": 0, "volumeCount": 1}
    await client.volumes.delete("research")
    assert await client.volumes.list() == []
    for gone in (
        client.volumes.get_volume("research"),
        client.volumes.delete("research"),
        client.volumes.expand("research", "2Ti"),
        client.volumes.wait_until_ready("research"),
    ):
        with pytest.raises(NotFoundError):
            await gone


async def test_teams_have_their_own(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    await client.volumes.create("research", "1Gi")
    await client.volumes.create("research", "2Gi", team_id=TEAM)
    assert (await client.volumes.get_volume("research", team_id=TEAM)).size == "2Gi"
    await client.volumes.delete("research", team_id=TEAM)
    assert [each.size for each in await client.volumes.list()] == ["1Gi"]


@pytest.mark.parametrize(
    ("name", "size"),
    [("Research", "1Gi"), ("", "1Gi"), ("a" * 41, "1Gi"), ("a", "1G"), ("a", "21Ti"), ("a", "")],
)
async def test_wrong_names_and_sizes_are_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, name: str, size: str
) -> None:
    for call in (client.volumes.create, client.volumes.expand):
        with pytest.raises(ValueError, match="volume"):
            await call(name, size)
    assert platform.ledger()["requests"] == {}


async def test_a_taken_name_is_never_claimed(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    """Else a create whose answer is lost could take another's volume for its own."""
    await client.volumes.create("research", "1Gi")
    platform.add_faults(FaultRule("create_volume", status=502))
    with pytest.raises(VolumeExistsError, match="research"):
        await client.volumes.create("research", "1Gi")
    assert platform.ledger()["requests"]["create_volume"] == 1
    # Somebody else was faster, after it was looked for.
    platform.clear_faults()
    platform.add_faults(FaultRule("list_volumes", nth=1, status=200, body='{"volumes":[]}'))
    with pytest.raises(VolumeExistsError, match="already exists"):
        await client.volumes.create("research", "1Gi")
    assert live(platform) == 1


async def test_an_empty_wallet_is_told(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    await client.volumes.create("research", "1Gi")
    platform.set_balance(0)
    with pytest.raises(PaymentRequiredError):
        await client.volumes.create("other", "1Gi")
    with pytest.raises(PaymentRequiredError):
        await client.volumes.expand("research", "2Gi")


@pytest.mark.parametrize(
    ("fault", "made"),
    [
        ({"reset": "after_commit"}, True),
        ({"garbage": True}, True),
        ({"truncate": 10}, True),
        ({"reset": "before_commit"}, False),
        ({"status": 504}, False),
    ],
)
async def test_a_volume_whose_answer_is_lost_is_found_or_was_not_made(
    platform: LocalPlatform, client: AsyncTrainClient, fault: dict[str, Any], made: bool
) -> None:
    platform.add_faults(FaultRule("create_volume", nth=1, **fault))
    if made:
        assert (await client.volumes.create("research", "1Gi")).name == "research"
    else:
        with pytest.raises(APIError):
            await client.volumes.create("research", "1Gi")
    await client.aclose()
    assert platform.ledger()["requests"]["create_volume"] == 1
    assert live(platform) == made


async def test_what_is_made_after_a_failed_create_is_nobody_elses_to_delete(
    platform: LocalPlatform, client: AsyncTrainClient, quick_looks: None
) -> None:
    platform.add_faults(FaultRule("create_volume", nth=1, status=500))
    with pytest.raises(APIError, match="Volume 'research' may be there"):
        await client.volumes.create("research", "1Gi")
    await client.volumes.create("research", "1Gi")
    await asyncio.sleep(1)  # twice as long as a late one is looked for
    await client.aclose()
    assert live(platform) == 1


async def cancelled(
    platform: LocalPlatform, client: AsyncTrainClient, late: float, **options: Any
) -> asyncio.Task[Any]:
    """A create that is cancelled when its volume is there, so many seconds before its answer."""
    platform.add_faults(FaultRule("create_volume", nth=1, delay_after=late))
    creating = asyncio.create_task(client.volumes.create("research", "1Gi", **options))
    await until(lambda: live(platform) == 1)
    creating.cancel()
    return creating


async def test_a_cancelled_create_leaves_nothing(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    creating = await cancelled(platform, client, 0.3)
    with pytest.raises(asyncio.CancelledError):
        await creating
    await client.aclose()
    counts = platform.ledger()["training_volumes"]
    assert (counts["created"], counts["deleted"]) == (1, 1)


async def test_a_volume_of_another_program_outlives_a_cancelled_create_of_its_name(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    fault = FaultRule("create_volume", nth=1, delay_before=0.3, reset="before_commit")
    platform.add_faults(fault)
    creating = asyncio.create_task(client.volumes.create("research", "1Gi"))
    await until(lambda: platform.ledger()["requests"].get("create_volume") == 1)
    creating.cancel()
    await asyncio.wait([creating])
    async with AsyncTrainClient() as another:
        await another.volumes.create("research", "1Gi")
    await client.aclose()
    assert live(platform) == 1


@pytest.mark.parametrize("fault", [{"reset": "after_commit"}, {"status": 500}, {"status": 429}])
async def test_a_volume_that_is_made_anew_is_not_taken_for_the_unwanted_one(
    platform: LocalPlatform, client: AsyncTrainClient, fault: dict[str, Any]
) -> None:
    platform.add_faults(FaultRule("create_volume", nth=1, delay_after=0.3))
    platform.add_faults(FaultRule("delete_volume", nth=1, delay_after=0.3, **fault))
    creating = asyncio.create_task(client.volumes.create("research", "1Gi"))
    await until(lambda: live(platform) == 1)
    creating.cancel()
    await asyncio.wait([creating])
    await until(lambda: platform.ledger()["requests"].get("delete_volume") == 1)
    async with AsyncTrainClient() as another:
        if live(platform):
            await another.volumes.delete("research")
        await another.volumes.create("research", "1Gi")
    await client.aclose()
    assert live(platform) == 1


async def test_an_unwanted_volume_that_can_t_be_told_from_another_is_left_and_logged(
    platform: LocalPlatform, client: AsyncTrainClient, caplog: pytest.LogCaptureFixture
) -> None:
    creating = await cancelled(platform, client, 0.5)
    await asyncio.wait([creating])
    listed = '{"volumes":[{"name":"research","status":"RUNNING","size":"1Gi"}]}'
    platform.add_faults(FaultRule("list_volumes", status=200, body=listed))
    await client.aclose()
    assert live(platform) == 1
    assert "does not tell when it was made" in caplog.text


async def test_a_create_waits_while_a_cancelled_one_of_its_name_is_undone(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_volume", nth=1, delay_after=0.5))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(client.volumes.create("research", "1Gi"), 0.2)
    await client.volumes.create("research", "1Gi")
    await client.aclose()
    counts = platform.ledger()["training_volumes"]
    assert (counts["created"], counts["deleted"], counts["live"]) == (2, 1, 1)


async def test_a_create_that_is_not_wanted_stops_its_warm_session(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    team = await lab_with_key(platform)
    creating = await cancelled(platform, client, 0.3, warm=True, team_id=team)
    with pytest.raises(asyncio.CancelledError):
        await creating
    await client.aclose()
    assert live(platform) == 0
    assert platform.ledger()["requests"]["stop_volume_session"] == 1


async def test_a_new_volume_that_another_program_works_on_is_left(
    platform: LocalPlatform, client: AsyncTrainClient, caplog: pytest.LogCaptureFixture
) -> None:
    team = await lab_with_key(platform)
    creating = await cancelled(platform, client, 0.5, warm=True, team_id=team)
    async with AsyncTrainClient() as another:
        await another.volumes.sessions.create("research", team_id=team)
    await asyncio.wait([creating])
    await client.aclose()
    assert live(platform) == 1
    assert "stop_volume_session" not in platform.ledger()["requests"]
    assert "could not be undone" in caplog.text


async def test_an_expand_whose_answer_is_lost_is_seen(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "1Gi")
    lost = FaultRule("expand_volume", nth=1, reset="after_commit")
    garbled = FaultRule("expand_volume", nth=1, garbage=True)
    for size, fault in {"2Gi": lost, "3Gi": garbled}.items():
        platform.add_faults(fault)
        assert (await client.volumes.expand("research", size)).size == size
    platform.add_faults(FaultRule("expand_volume", nth=1, status=502))
    with pytest.raises(APIError):
        await client.volumes.expand("research", "4Gi")
    assert (await client.volumes.get_volume("research")).size == "3Gi"


async def test_a_delete_whose_answer_is_lost_is_done(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "1Gi")
    platform.add_faults(FaultRule("delete_volume", nth=1, reset="after_commit"))
    await client.volumes.delete("research")
    assert live(platform) == 0


async def test_what_is_used_is_not_deleted(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "1Gi")
    volumes = platform._core.training_volumes
    volumes.attach("research", None, "run-1")
    with pytest.raises(VolumeBusyError, match="1 live run"):
        await client.volumes.delete("research")
    with pytest.raises(VolumeBusyError, match="run-1"):
        await client.volumes.route_transfer("research", "put", "d/")
    volumes.release("run-1")
    route = await client.volumes.route_transfer("research", "put", "d/")
    with pytest.raises(VolumeBusyError) as caught:
        await client.volumes.delete("research")
    assert (route.expires_at is not None, caught.value.until is not None) == (True, True)
    assert route.expires_at is not None
    assert caught.value.until is not None
    assert abs((caught.value.until - route.expires_at).total_seconds()) < 2


async def test_only_admins_delete_a_teams_volume(start_platform: Any) -> None:
    await start_platform(assumptions=Assumptions(team_role="member"))
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi", team_id=TEAM)
        with pytest.raises(ForbiddenError):
            await client.volumes.delete("research", team_id=TEAM)


async def test_a_volume_that_cannot_be_used_is_not_waited_for(start_platform: Any) -> None:
    platform = await start_platform(volume_time=3600)
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi")
        await client.volumes.delete("research")
        await client.volumes.delete("research")
        with pytest.raises(VolumeNotReadyError, match="TERMINATING") as caught:
            await client.volumes.wait_until_ready("research")
        assert not isinstance(caught.value, TimeoutError)
        pending = '{"volumes":[{"name":"research","status":"PENDING"}]}'
        platform.add_faults(FaultRule("list_volumes", status=200, body=pending))
        with pytest.raises(VolumeWaitTimeoutError, match="PENDING"):
            await client.volumes.wait_until_ready("research", timeout=0.2)


async def test_a_wait_survives_failures(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    await client.volumes.create("research", "1Gi")
    platform.add_faults(FaultRule("list_volumes", nth=[1, 2, 3, 4], status=502))
    assert (await client.volumes.wait_until_ready("research", timeout=20)).name == "research"


async def test_routes_are_asked_for_refreshed_and_released(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "1Gi")
    route = await client.volumes.route_transfer("research", "put", "", entries=["a", "b"])
    assert (route.via, route.bucket, route.endpoint) == (
        "r2",
        "training-volumes",
        platform.url + "/s3",
    )
    assert route.secret_access_key is not None
    assert route.secret_access_key.get_secret_value() not in repr(route)
    assert route.lease_id is not None
    again = await client.volumes.route_transfer(
        "research", "put", entries=["a", "b"], lease_id=route.lease_id
    )
    assert (again.lease_id, again.access_key_id != route.access_key_id) == (route.lease_id, True)
    with pytest.raises(VolumeBusyError):
        await client.volumes.route_transfer("research", "put", "c/")
    read = await client.volumes.route_transfer("research", "get", "datasets/")
    assert read.lease_id is None
    for _ in range(2):
        await client.volumes.release_transfer("research", route.lease_id)
    await client.volumes.route_transfer("research", "put", "c/")


@pytest.mark.parametrize(
    ("mode", "path", "options", "text"),
    [
        ("put", "runs/a", {}, "runs/ holds run outputs"),
        ("put", "/runs", {}, "runs/ holds run outputs"),
        ("put", "", {}, "1 to 256 entries"),
        ("put", "", {"entries": ["a/b"]}, "no name on a volume"),
        ("put", "", {"entries": ["runs"]}, "runs/ holds run outputs"),
        ("put", "", {"entries": [str(number) for number in range(257)]}, "1 to 256 entries"),
        ("put", "d/", {"entries": ["a"]}, "a put to the root"),
        ("get", "../a", {}, "leads out of the volume"),
        ("get", "a b", {}, "no name on a volume"),
        ("get", "", {"lease_id": "x"}, "belong to a put"),
        ("move", "", {}, "mode is"),
    ],
)
async def test_wrong_routes_are_not_sent(
    platform: LocalPlatform,
    client: AsyncTrainClient,
    mode: Any,
    path: str,
    options: Any,
    text: str,
) -> None:
    with pytest.raises(ValueError, match=text):
        await client.volumes.route_transfer("research", mode, path, **options)
    assert platform.ledger()["requests"] == {}


async def test_a_cancelled_route_is_released(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "1Gi")
    made = platform._core.training_volumes.get("research", None).id
    platform.add_faults(FaultRule("route_volume_transfer", nth=1, delay_after=0.3))
    asking = asyncio.create_task(client.volumes.route_transfer("research", "put", "d/"))
    await until(lambda: platform._core.training_volumes.leases.of(made) is not None)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await client.aclose()
    assert platform.ledger()["requests"]["release_volume_transfer"] == 1
    async with AsyncTrainClient() as other:
        await other.volumes.route_transfer("research", "put", "d/")


def test_path_errors_are_value_errors() -> None:
    assert issubclass(VolumePathError, ValueError)


async def lab_with_key(platform: LocalPlatform) -> str:
    """Give the caller an SSH key, and return the team that owns a cluster."""
    account = platform._core.account
    account.ssh_keys.add("k", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIexample ada")
    return account.people.lab.id
