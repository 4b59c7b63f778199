"""The account, Slurm and the factory over plain HTTP: what survives, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, FaultRule, LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import RawClient

    Opened = Callable[..., AbstractAsyncContextManager[tuple[LocalPlatform, RawClient]]]

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample ada"
# Not in one piece, lest it be taken for a real one.
PRIVATE_KEY = "-----BEGIN OPENSSH {}-----".format("PRIVATE KEY")
LOGIN = "/api/v1/auth_challenge"


@pytest.fixture
def opened(helpers: Any) -> Opened:
    """Starts a platform for a block of code, with a client of it."""

    @asynccontextmanager
    async def start(**options: Any) -> AsyncIterator[tuple[LocalPlatform, RawClient]]:
        async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
            yield platform, client

    return start


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def get(client: RawClient, path: str, key: str | None = None) -> Any:
    headers = None if key is None else {"Authorization": f"Bearer {key}"}
    answer = await client.call("GET", f"/api/v1{path}", headers=headers)
    assert answer.status == 200, answer.body
    return answer.body


async def post(client: RawClient, path: str, body: object = None) -> Any:
    answer = await client.call("POST", f"/api/v1{path}", body)
    assert answer.status in (200, 201, 204), answer.body
    return answer.body


async def status(client: RawClient, method: str, path: str, body: object = None) -> int:
    return (await client.call(method, f"/api/v1{path}", body)).status


async def test_an_account_survives_a_restart(opened: Opened, tmp_path: Path) -> None:
    async with opened(data_dir=tmp_path) as (platform, client):
        await post(client, "/ssh_keys/", {"name": "laptop", "publicKey": KEY})
        await post(client, "/secrets/", {"name": "KEY", "value": "hunter2"})
        await client.call("PATCH", "/api/v1/user/slug", {"slug": "ada-1"})
        spare = platform.add_key("spare", limits={"maxConcurrentTunnels": 2})
        (team, _) = (await get(client, "/user/teams"))["data"]
        await post(client, f"/slurm-clusters/{team['teamId']}/deploy", {"displayName": "mine"})
        seen = [await get(client, path) for path in ("/ssh_keys/", "/secrets/", "/tokens/")]
        clusters = await get(client, f"/slurm-clusters/{team['teamId']}")
    async with opened(data_dir=tmp_path) as (_, client):
        assert [await get(client, path) for path in ("/ssh_keys/", "/secrets/")] == seen[:2]
        assert [each["id"] for each in (await get(client, "/tokens/"))["data"]] == [
            each["id"] for each in seen[2]["data"]
        ]
        assert await get(client, f"/slurm-clusters/{team['teamId']}") == clusters
        me = (await get(client, "/user/whoami", spare))["data"]
        assert (me["slug"], me["key_limits"]["max_concurrent_tunnels"]) == ("ada-1", 2)
    stored = bytes_below(tmp_path)
    assert b"hunter2" not in stored
    assert spare.encode() not in stored


async def test_a_reset_forgets_the_account(opened: Opened) -> None:
    async with opened() as (platform, client):
        (own,) = (await get(client, "/tokens/"))["data"]
        await post(client, "/ssh_keys/", {"name": "laptop", "publicKey": KEY})
        await post(client, f"/tokens/{own['id']}/disable")
        assert await status(client, "GET", "/ssh_keys/") == 401
        await platform.reset()
        assert (await get(client, "/ssh_keys/"))["data"] == []


async def test_counts_come_in_both_spellings_with_or_without_a_slash(
    opened: Opened,
) -> None:
    async with opened() as (_, client):
        await post(client, "/ssh_keys", {"name": "laptop", "publicKey": KEY})
        page = await get(client, "/ssh_keys?limit=1")
        assert (page["total_count"], page["totalCount"], page["limit"]) == (1, 1, 1)


async def test_what_is_no_public_key_or_no_base64_is_refused(opened: Opened) -> None:
    async with opened() as (_, client):
        for text in ("nonsense", f"{KEY}\n{KEY}", PRIVATE_KEY):
            body = {"name": "laptop", "publicKey": text}
            assert await status(client, "POST", "/ssh_keys/", body) == 422
        file = {"name": "FILE", "value": "no base64!", "isFile": True}
        assert await status(client, "POST", "/secrets/", file) == 400
        for name in ("lower", "K" * 256, ""):
            assert await status(client, "POST", "/secrets/", {"name": name, "value": "v"}) == 422


async def test_a_key_does_what_its_scopes_say(opened: Opened) -> None:
    async with opened() as (platform, client):
        (team, _) = (await get(client, "/user/teams"))["data"]
        clusters = f"/api/v1/slurm-clusters/{team['teamId']}"
        key = platform.add_key("reader", scopes={"teams": {"read": True, "write": False}})
        headers = {"Authorization": f"Bearer {key}"}
        assert (await get(client, "/user/whoami", key))["data"]["scope"]["instances"] is None
        await get(client, "/user/teams", key)
        # 401 is documented for all, 403 for the routes that have a scope of their own.
        assert (await client.call("GET", "/api/v1/pods/", headers=headers)).status == 401
        assert (await client.call("GET", clusters, headers=headers)).status == 403


@pytest.mark.parametrize("role", ["admin", "member"])
async def test_the_assumed_role_shows(role: Any, opened: Opened) -> None:
    async with opened(assumptions=Assumptions(team_role=role)) as (_, client):
        (team, duo) = (await get(client, "/user/teams"))["data"]
        assert {team["role"], duo["role"]} == {role.upper()}
        members = (await get(client, f"/teams/{team['teamId']}/members"))["data"]
        assert members[0]["role"] == role.upper()


async def test_a_login_needs_its_own_token(opened: Opened) -> None:
    async with opened() as (platform, client):
        body = {"encryptionPublicKey": "no key"}
        assert (await client.call("POST", f"{LOGIN}/generate", body, {})).status == 422
        code = "NO-CODE"
        assert (await client.call("GET", f"{LOGIN}/status?challenge={code}")).status == 404
        with pytest.raises(ValueError, match="NO-CODE"):
            platform.approve_login(code)


def test_a_process_makes_keys_and_tells_wrong_limits() -> None:
    with PlatformProcess() as platform:
        assert platform.add_key("spare", lifetime=60).startswith("pit_")
        with pytest.raises(OSError, match="422"):
            platform.add_key("spare", limits={"unknown": 1})
        with pytest.raises(OSError, match="409"):
            platform.approve_login("NO-CODE")


async def test_a_change_that_could_not_be_verified_is_made(opened: Opened) -> None:
    async with opened(faults=[FaultRule("resize_slurm_cluster", fails="labels differ")]) as (
        _,
        client,
    ):
        (team, _) = (await get(client, "/user/teams"))["data"]
        clusters = f"/slurm-clusters/{team['teamId']}"
        (row,) = (await get(client, clusters))["data"]
        path = f"{clusters}/{row['id']}/resize"
        assert await status(client, "POST", path, {"numNodes": 7}) == 502
        assert (await get(client, clusters))["data"][0]["gpuCount"] == 56


async def test_jobs_of_years_are_bounded(opened: Opened) -> None:
    async with opened() as (platform, client):
        (team, _) = (await get(client, "/user/teams"))["data"]
        await platform.advance(10 * 365 * 86400)
        path = f"/factory/workloads?team_id={team['teamId']}&state=all"
        answer = await get(client, path)
        assert (len(answer["workloads"]), answer["truncated"]) == (50, True)
        ends = [job["ended_at"] for job in answer["workloads"] if job["ended_at"]]
        assert ends == sorted(ends, reverse=True)
        assert await status(client, "GET", f"{path}&since=2026-01-01T00:00:00") == 422
        assert len((await get(client, f"/factory/utilization?team_id={team['teamId']}"))["points"])
