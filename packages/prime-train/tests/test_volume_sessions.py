"""SSH sessions on volumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conditions import until

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    NotFoundError,
    TrainClient,
    VolumeBusyError,
    VolumeSessionError,
    VolumeSessionPhase,
    VolumeSessionTimeoutError,
    VolumeSessionUnavailableError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIexample ada"


@pytest.fixture
async def client(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncTrainClient]:
    """The client of somebody with an SSH key, for a team that owns a cluster."""
    account = platform._core.account
    account.ssh_keys.add("k", KEY)
    monkeypatch.setenv("PRIME_TEAM_ID", account.people.lab.id)
    monkeypatch.setattr("prime_train.volume_waiting.PAUSE", 0.05)
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi")
        yield client


def requests(platform: LocalPlatform, operation: str) -> int:
    return platform.ledger()["requests"].get(operation, 0)


async def test_a_session_is_opened_read_and_stopped(client: AsyncTrainClient) -> None:
    sessions = client.volumes.sessions
    made = await sessions.create("research")
    assert (made.volume_name, made.read_only, made.phase, made.ssh_connection) == (
        "research",
        True,
        VolumeSessionPhase.CREATING,
        None,
    )
    ready = await sessions.wait_until_ready("research", made.id)
    assert ready.ssh_connection is not None
    assert ready.ssh_connection.startswith("root@")
    assert ready.host_public_key is not None
    assert await sessions.list("research") == [ready]
    assert await sessions.get("research", made.id) == ready
    with pytest.raises(VolumeBusyError, match="1 active volume SSH session"):
        await client.volumes.delete("research")
    for _ in range(2):
        await sessions.stop("research", made.id)
    assert await sessions.list("research") == []
    with pytest.raises(VolumeSessionError, match="has ended"):
        await sessions.wait_until_ready("research", made.id)
    for missing in (sessions.get("research", "nope"), sessions.stop("other", made.id)):
        with pytest.raises(NotFoundError):
            await missing


async def test_one_session_writes(client: AsyncTrainClient) -> None:
    sessions = client.volumes.sessions
    writer = await sessions.create("research", read_only=False)
    with pytest.raises(VolumeBusyError, match=writer.id):
        await sessions.create("research", read_only=False)
    assert (await sessions.create("research", allow_writable=True)).id == writer.id
    reader = await sessions.create("research")
    assert [each.id for each in await sessions.list("research")] == [reader.id, writer.id]


async def test_a_block_has_a_session_and_stops_it(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    async with client.volumes.sessions.open("research", read_only=False) as session:
        assert session.ssh_connection.startswith("root@")
        assert [each.id for each in await client.volumes.sessions.list("research")] == [session.id]
    assert await client.volumes.sessions.list("research") == []
    with pytest.raises(LookupError):
        async with client.volumes.sessions.open("research"):
            raise LookupError
    assert await client.volumes.sessions.list("research") == []
    assert requests(platform, "stop_volume_session") == 2


async def test_a_session_that_does_not_become_ready_is_stopped(start_platform: Any) -> None:
    platform: LocalPlatform = await start_platform(volume_time=3600)
    account = platform._core.account
    account.ssh_keys.add("k", KEY)
    team = account.people.lab.id
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi", team_id=team)
        with pytest.raises(VolumeSessionTimeoutError, match="creating"):
            async with client.volumes.sessions.open("research", timeout=0.3, team_id=team):
                raise AssertionError("it was entered")
        assert requests(platform, "stop_volume_session") == 1


async def test_a_session_that_fails_is_told(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    failed = (
        '{"id":"s","volumeName":"research","status":"FAILED","readOnly":true,"errorMessage":"x"}'
    )
    platform.add_faults(FaultRule("get_volume_session", status=200, body=failed))
    with pytest.raises(VolumeSessionError, match="x") as caught:
        async with client.volumes.sessions.open("research"):
            raise AssertionError("it was entered")
    assert (caught.value.phase, requests(platform, "stop_volume_session")) == ("FAILED", 1)


async def test_a_cancelled_create_is_stopped(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_volume_session", delay_after=0.3))
    creating = asyncio.create_task(client.volumes.sessions.create("research", read_only=False))
    await until(lambda: requests(platform, "create_volume_session") == 1)
    await asyncio.sleep(0.05)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    await client.aclose()
    assert requests(platform, "stop_volume_session") == 1
    async with AsyncTrainClient() as other:
        assert await other.volumes.sessions.list("research") == []


async def test_a_session_whose_answer_is_lost_is_found(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    first = await client.volumes.sessions.create("research")
    platform.add_faults(FaultRule("create_volume_session", nth=1, reset="after_commit"))
    found = await client.volumes.sessions.create("research")
    assert found.id != first.id
    assert requests(platform, "create_volume_session") == 2
    assert len(await client.volumes.sessions.list("research")) == 2


async def test_who_can_have_none_is_told_why(client: AsyncTrainClient) -> None:
    await client.volumes.create("own", "1Gi", team_id="")
    with pytest.raises(VolumeSessionUnavailableError, match="cluster allocation"):
        await client.volumes.sessions.create("own", team_id="")
    sessions = client.volumes.sessions
    await asyncio.gather(*(sessions.create("research") for _ in range(20)))
    with pytest.raises(VolumeSessionUnavailableError, match="limit"):
        await sessions.create("research")


async def test_a_transfer_goes_through_the_callers_own_session(client: AsyncTrainClient) -> None:
    async with client.volumes.sessions.open("research", read_only=False):
        assert (await client.volumes.route_transfer("research", "get")).via == "session"
        assert (await client.volumes.route_transfer("research", "get", "runs/")).via == "r2"


async def test_the_synchronous_block_stops_its_session(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    def work() -> list[str]:
        with TrainClient() as train:
            with train.volumes.sessions.open("research") as session:
                seen = [session.id]
            return seen + [each.id for each in train.volumes.sessions.list("research")]

    assert len(await asyncio.to_thread(work)) == 1
    assert requests(platform, "stop_volume_session") == 1


async def test_outputs_of_runs_are_fetched_while_a_session_has_the_other_files(
    platform: LocalPlatform, client: AsyncTrainClient, home: Path, tmp_path: Path
) -> None:
    volumes = platform._core.training_volumes
    volumes.attach("research", platform._core.account.people.lab.id, "r1")
    await volumes.write_file("r1", "runs/r1/checkpoints/step_1/a", iter([b"weights"]))
    await volumes.write_file("r1", "runs/.sessions/s/log", iter([b"none of the user's"]))
    volumes.release("r1")
    async with client.volumes.sessions.open("research", read_only=False):
        got = await client.volumes.get("research", "runs/r1/checkpoints/", tmp_path / "back")
        assert got.files == 1
        assert (tmp_path / "back" / "step_1" / "a").read_bytes() == b"weights"
        assert (await client.volumes.get("research", "runs", tmp_path / "all")).ignored == 1
        entries = await client.volumes.ls("research", "runs")
        assert [entry.path for entry in entries] == ["runs/r1/"]
        for refused in (
            client.volumes.get("research", "/", tmp_path / "x"),
            client.volumes.put(tmp_path / "back", "research", "d/"),
        ):
            with pytest.raises(VolumeBusyError, match="stop it, wait for its last sync"):
                await refused
