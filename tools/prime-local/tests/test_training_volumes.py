"""Volumes of training, looked at without the SDK."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from s3_client import client_of
from volume_calls import call, lab_with_key, made, refusal, route

from prime_local import Assumptions, FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient


async def test_a_volume_is_made_listed_grown_and_deleted(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    created = await made(client)
    assert (created["status"], created["size"], created["createdByName"]) == (
        "RUNNING",
        "500Gi",
        "Ada",
    )
    assert (await call(client, "GET", ""))["volumes"] == [created]
    assert (await call(client, "GET", "?teamId=team-1"))["volumes"] == []
    assert (await call(client, "PATCH", "/research", {"size": "2Ti"}))["size"] == "2Ti"
    for size in ("2Ti", "2048Gi", "1Ti"):
        refused = await refusal(client, "PATCH", "/research", {"size": size})
        assert refused == (400, "volumes can only grow")
    await call(client, "DELETE", "/research")
    assert (await call(client, "GET", ""))["volumes"] == []
    assert (await refusal(client, "DELETE", "/research"))[0] == 404
    counts = {"live": 0, "peak": 1, "created": 1, "deleted": 1}
    assert prime_platform.ledger()["training_volumes"] == counts


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"name": "Research"}, 422),
        ({"name": "-a"}, 422),
        ({"name": "a" * 41}, 422),
        ({"name": "ab", "size": "5T"}, 422),
        ({"name": "ab", "size": "0Gi"}, 422),
        ({"name": "ab", "size": "21Ti"}, 400),
        ({"name": "ab", "size": "9" * 5000 + "Gi"}, 400),
        ({"name": "research"}, 409),
    ],
)
async def test_wrong_volumes_are_refused(
    client: RawClient, fields: dict[str, Any], status: int
) -> None:
    await made(client)
    body = {"size": "5Ti", **fields}
    assert (await refusal(client, "POST", "", body))[0] == status


async def test_its_size_is_paid_for_from_creation_to_deletion(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    await made(client, size="100Gi", teamId="team-1")
    await prime_platform.advance(3600)
    await call(client, "PATCH", "/research", {"size": "200Gi", "teamId": "team-1"})
    await prime_platform.advance(3600)
    await call(client, "DELETE", "/research?teamId=team-1")
    await prime_platform.advance(3600)
    wallet = (await client.call("GET", "/api/v1/billing/wallet?teamId=team-1")).body
    (row,) = wallet["recent_billings"]
    assert row["resource_type"] == "training"
    assert Decimal(str(row["amount_usd"])) == Decimal("0.0375")


async def test_an_empty_wallet_pays_for_no_volume(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    await made(client)
    prime_platform.set_balance(0)
    for method, path, body in (
        ("POST", "", {"name": "other", "size": "1Gi"}),
        ("PATCH", "/research", {"size": "1Ti"}),
    ):
        refused = await refusal(client, method, path, body)
        assert refused == (402, "Insufficient funds in the wallet")


async def test_deletion_takes_its_time_and_may_fail(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(
        volume_time=60, faults=[FaultRule("delete_volume", nth=1, fails="the bucket")]
    )
    await made(client)
    await call(client, "DELETE", "/research")
    assert (await call(client, "GET", ""))["volumes"][0]["status"] == "TOMBSTONED"
    await call(client, "DELETE", "/research")
    assert (await call(client, "GET", ""))["volumes"][0]["status"] == "TERMINATING"
    assert (await refusal(client, "POST", "", {"name": "research", "size": "1Gi"}))[0] == 409
    assert (await refusal(client, "POST", "/research/transfer", {"mode": "get", "path": ""}))[
        0
    ] == 409
    await platform.advance(60)
    assert (await call(client, "GET", ""))["volumes"] == []


async def test_members_do_not_delete_a_teams_volume(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(assumptions=Assumptions(team_role="member"))
    await made(client, teamId="team-1")
    assert (await refusal(client, "DELETE", "/research?teamId=team-1"))[0] == 403


async def test_what_is_put_is_got_and_goes_with_its_volume(client: RawClient) -> None:
    await made(client)
    put = await route(client, "put", "datasets/")
    assert (put["via"], put["bucket"], put["prefix"][-10:]) == (
        "r2",
        "training-volumes",
        "/research/",
    )
    key = put["prefix"] + "datasets/a.bin"
    await client_of(put)("put_object", Key=key, Body=b"hello")
    await call(client, "POST", "/research/transfer/release", {"leaseId": put["leaseId"]})
    get = await route(client, "get")
    assert get["leaseId"] is None
    reader = client_of(get)
    assert await reader.keys(Prefix=get["prefix"]) == [key]
    assert await reader.read(key) == b"hello"
    assert (await call(client, "GET", "/usage"))["usedBytes"] == 5
    await call(client, "DELETE", "/research")
    assert await reader.error("get_object", Key=key) == ("InvalidAccessKeyId", 403)
    await made(client)
    again = await route(client, "get")
    assert await client_of(again).keys(Prefix=again["prefix"]) == []


@pytest.mark.parametrize(
    ("path", "entries", "allowed", "forbidden"),
    [
        ("datasets/", None, ["datasets/", "datasets/a/b"], ["datasets", "datasets2", "models/a"]),
        ("datasets", None, ["datasets", "datasets/a"], ["datasets2", "models/a"]),
        ("", ["m", "r.md"], ["m", "m/a", "r.md"], ["other", "mm", "runs/a"]),
    ],
)
async def test_put_keys_reach_the_destination_alone(
    client: RawClient,
    path: str,
    entries: list[str] | None,
    allowed: list[str],
    forbidden: list[str],
) -> None:
    await made(client)
    fields = {} if entries is None else {"entries": entries}
    put = await route(client, "put", path, **fields)
    s3, prefix = client_of(put), put["prefix"]
    for key in allowed:
        await s3("put_object", Key=prefix + key, Body=b"x")
    for key in forbidden:
        assert await s3.error("put_object", Key=prefix + key, Body=b"x") == ("AccessDenied", 403)
        assert await s3.error("get_object", Key=prefix + key) == ("AccessDenied", 403)
    assert await s3.error("list_objects_v2", Prefix=prefix) == ("AccessDenied", 403)
    assert await s3.error("list_objects_v2") == ("AccessDenied", 403)
    top = allowed[1].split("/")[0] + "/"
    assert await s3.keys(Prefix=prefix + top) != []


async def test_get_keys_only_read(client: RawClient) -> None:
    await made(client)
    s3 = client_of(get := await route(client, "get", "datasets/"))
    key = get["prefix"] + "datasets/a"
    refused = ("AccessDenied", 403)
    assert await s3.error("get_object", Key=key) == ("NoSuchKey", 404)
    assert await s3.error("put_object", Key=key, Body=b"x") == refused
    assert await s3.error("delete_object", Key=key) == refused
    assert await s3.error("create_multipart_upload", Key=key) == refused
    assert await s3.error("get_object", Key=get["prefix"] + "models/a") == refused


async def test_put_keys_expire_unless_they_are_refreshed(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    await made(client)
    put = await route(client, "put", "d/")
    key = put["prefix"] + "d/a"
    await prime_platform.advance(600)
    fresh = await route(client, "put", "d/", leaseId=put["leaseId"])
    assert (fresh["leaseId"], fresh["accessKeyId"] != put["accessKeyId"]) == (put["leaseId"], True)
    await client_of(put)("put_object", Key=key, Body=b"x")
    await prime_platform.advance(301)
    assert await client_of(put).error("put_object", Key=key, Body=b"x") == ("ExpiredToken", 400)
    await client_of(fresh)("put_object", Key=key, Body=b"x")
    body = {"mode": "put", "path": "other/", "leaseId": put["leaseId"]}
    assert (await refusal(client, "POST", "/research/transfer", body))[0] == 400
    await prime_platform.advance(600)
    assert await client_of(fresh).error("put_object", Key=key, Body=b"x") == ("ExpiredToken", 400)
    lapsed = {"mode": "put", "path": "d/", "leaseId": put["leaseId"]}
    assert (await refusal(client, "POST", "/research/transfer", lapsed))[0] == 409
    await call(client, "DELETE", "/research")


async def test_one_upload_at_a_time(prime_platform: LocalPlatform, client: RawClient) -> None:
    await made(client)
    put = await route(client, "put", "d/")
    text = "an upload to volume 'research' is in progress until "
    for method, path, body in (
        ("POST", "/research/transfer", {"mode": "put", "path": "e/"}),
        ("DELETE", "/research", None),
    ):
        status, detail = await refusal(client, method, path, body)
        assert (status, detail.startswith(text), "Z; retry" in detail) == (409, True, True)
    await route(client, "get")
    await call(client, "POST", "/research/transfer/release", {"leaseId": put["leaseId"]})
    await call(client, "POST", "/research/transfer/release", {"leaseId": put["leaseId"]})
    assert await client_of(put).error("put_object", Key=put["prefix"] + "d/a", Body=b"") == (
        "InvalidAccessKeyId",
        403,
    )
    second = await route(client, "put", "e/")
    await prime_platform.advance(901)  # its program has died
    third = await route(client, "put", "f/")
    assert len({put["leaseId"], second["leaseId"], third["leaseId"]}) == 3


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"mode": "put", "path": "runs/a"}, 400, "runs/ holds run outputs"),
        ({"mode": "put", "path": "/./runs"}, 400, "runs/ holds run outputs"),
        ({"mode": "put", "path": "", "entries": ["runs"]}, 400, "runs/ holds run outputs"),
        ({"mode": "put", "path": ""}, 400, "names its entries"),
        ({"mode": "put", "path": "", "entries": ["a/b"]}, 400, "part of a path"),
        ({"mode": "put", "path": "", "entries": [".."]}, 400, "name"),
        ({"mode": "put", "path": "", "entries": ["a"] * 257}, 422, "validation"),
        ({"mode": "get", "path": "../x"}, 400, "out of the volume"),
        ({"mode": "get", "path": "a/../../x"}, 400, "out of the volume"),
        ({"mode": "get", "path": "a b"}, 400, "part of a path"),
        ({"mode": "get", "path": "x" * 256}, 400, "part of a path"),
        ({"mode": "get", "path": "/".join(["x" * 200] * 6)}, 400, "1024"),
        ({"mode": "move", "path": ""}, 422, "validation"),
    ],
)
async def test_wrong_paths_are_refused(
    client: RawClient, body: dict[str, Any], status: int, text: str
) -> None:
    await made(client)
    answered, detail = await refusal(client, "POST", "/research/transfer", body)
    assert (answered, text in detail) == (status, True), detail


async def test_a_run_is_the_only_writer(prime_platform: LocalPlatform, client: RawClient) -> None:
    await made(client, size="1Gi")
    volumes = prime_platform._core.training_volumes
    volumes.attach("research", None, "run-1")
    volumes.attach("research", None, "run-1")
    for method, path, body, text in (
        ("POST", "/research/transfer", {"mode": "put", "path": "d/"}, "attached read-write by"),
        ("DELETE", "/research", None, "is mounted by 1 live run(s)"),
    ):
        status, detail = await refusal(client, method, path, body)
        assert (status, text in detail) == (409, True)
    await volumes.write_file("run-1", "runs/run-1/checkpoints/step_1/a", _pieces())
    with pytest.raises(OSError, match="quota"):
        await volumes.write_file("run-1", "runs/run-1/big", (bytes(2**20) for _ in range(1024)))
    volumes.release("run-1")
    get = await route(client, "get", "runs/run-1/")
    key = get["prefix"] + "runs/run-1/checkpoints/step_1/a"
    assert await client_of(get).read(key) == b"ab" * 2**20
    assert await client_of(get).keys(Prefix=get["prefix"] + "runs/run-1/") == [key]
    await route(client, "put", "d/")


def _pieces() -> Iterator[bytes]:
    yield b"ab" * 2**20


async def test_a_hosted_run_leaves_its_checkpoints_on_its_volume(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    await made(client)
    config = {
        "max_steps": 4,
        "ckpt": {"interval": 2},
        "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
        "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]}},
        "inference": {},
    }
    body = {"config": config, "gpuType": "H200_141GB", "volume": "research"}
    run = (await client.call("POST", "/api/v1/training/runs", body)).body["runId"]
    put = {"mode": "put", "path": "d/"}
    assert run in (await refusal(client, "POST", "/research/transfer", put))[1]
    assert (await refusal(client, "DELETE", "/research"))[0] == 409
    await prime_platform.advance(3600)
    get = await route(client, "get", f"runs/{run}/")
    reader, folder = client_of(get), f"{get['prefix']}runs/{run}/checkpoints/"
    keys = await reader.keys(Prefix=folder)
    assert {key[len(folder) :].split("/")[0] for key in keys} == {"step_2", "step_4"}
    assert f"{folder}step_4/trainer/.metadata" in keys
    shard = next(key for key in keys if key.endswith(".distcp"))
    head = await reader("head_object", Key=shard)
    digest = base64.b64encode(hashlib.md5(await reader.read(shard)).digest()).decode()
    assert head["Metadata"]["md5chksum"] == digest
    assert re.fullmatch(r"\d+(\.\d*[1-9])?", head["Metadata"]["mtime"])
    await route(client, "put", "d/")


async def test_sessions_need_a_key_and_an_allocation(client: RawClient) -> None:
    await made(client)
    answer = await refusal(client, "POST", "/research/sessions", {})
    assert answer == (409, "no SSH public key is configured for your account")
    team = await lab_with_key(client)
    status, detail = await refusal(client, "POST", "/research/sessions", {})
    assert (status, "SSH sessions need a cluster allocation" in detail) == (409, True)
    await made(client, teamId=team, warm=False)
    await call(client, "POST", "/research/sessions", {"teamId": team})


async def test_a_session_goes_through_its_phases(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(volume_time=10)
    team = await lab_with_key(client)
    await made(client, teamId=team, warm=False)
    session = await call(client, "POST", "/research/sessions", {"teamId": team, "readOnly": False})
    path = f"/research/sessions/{session['id']}?teamId={team}"

    async def seen() -> tuple[str, str, bool]:
        found = await call(client, "GET", path)
        return found["phase"], found["status"], found["sshConnection"] is not None

    phases = [await seen()]
    for _ in range(2):
        await platform.advance(10)
        phases.append(await seen())
    assert phases == [
        ("creating", "PENDING", False),
        ("staging", "PENDING", False),
        ("ready", "RUNNING", True),
    ]
    text = "has an active read-write session"
    body = {"teamId": team, "readOnly": False}
    assert text in (await refusal(client, "POST", "/research/sessions", body))[1]
    reused = await call(
        client, "POST", "/research/sessions", {"teamId": team, "allowWritable": True}
    )
    assert reused["id"] == session["id"]
    for mode in ("put", "get"):
        body = {"mode": mode, "path": "d/", "teamId": team}
        answer = await call(client, "POST", "/research/transfer", body)
        assert (answer["via"], answer["session"]["id"]) == ("session", session["id"])
    runs = await call(
        client, "POST", "/research/transfer", {"mode": "get", "path": "runs/", "teamId": team}
    )
    assert runs["via"] == "r2"
    await call(client, "DELETE", path)
    await call(client, "DELETE", path)
    assert (await seen())[0] == "syncing"
    body = {"mode": "put", "path": "d/", "teamId": team}
    status, detail = await refusal(client, "POST", "/research/transfer", body)
    assert (status, "has a live read-write SSH session" in detail) == (409, True)
    await platform.advance(10)
    assert (await seen())[0] == "finalizing"
    status, detail = await refusal(client, "DELETE", f"/research?teamId={team}")
    assert (status, "has 1 active volume SSH session(s)" in detail) == (409, True)
    await platform.advance(10)
    assert (await seen())[:2] == ("stopped", "STOPPED")
    assert (await call(client, "GET", f"/research/sessions?teamId={team}"))["sessions"] == []
    await call(client, "DELETE", f"/research?teamId={team}")


async def test_an_idle_session_stops(prime_platform: LocalPlatform, client: RawClient) -> None:
    team = await lab_with_key(client)
    await made(client, teamId=team)  # which warms it up
    listing = f"/research/sessions?teamId={team}"
    (session,) = (await call(client, "GET", listing))["sessions"]
    assert (session["readOnly"], session["phase"]) == (True, "ready")
    await prime_platform.advance(1801)
    assert (await call(client, "GET", listing))["sessions"] == []


async def test_a_team_has_twenty_sessions(client: RawClient) -> None:
    team = await lab_with_key(client)
    await made(client, teamId=team, warm=False)
    await asyncio.gather(
        *(call(client, "POST", "/research/sessions", {"teamId": team}) for _ in range(20))
    )
    refused = await refusal(client, "POST", "/research/sessions", {"teamId": team})
    assert refused == (409, "Volume SSH session limit (20) reached")


async def test_volumes_outlive_a_restart(helpers: Any, tmp_path: Path) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        team = await lab_with_key(client)
        await made(client)
        await made(client, "of-team", teamId=team)
        put = await route(client, "put", "d/")
        key = put["prefix"] + "d/a"
        await client_of(put)("put_object", Key=key, Body=b"hello")
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        volumes = (await call(client, "GET", ""))["volumes"]
        assert [each["name"] for each in volumes] == ["research"]
        listing = f"/of-team/sessions?teamId={team}"
        assert len((await call(client, "GET", listing))["sessions"]) == 1
        again = await route(client, "put", "d/", leaseId=put["leaseId"])
        assert await client_of(again).read(key) == b"hello"
        await platform.advance(3600)
        wallet = (await client.call("GET", "/api/v1/billing/wallet")).body
        assert wallet["recent_billings"][0]["amount_usd"] > 0
