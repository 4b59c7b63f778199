"""Parquet files of external runs' samples: presigned, put, confirmed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from prime_local import LocalPlatform

if TYPE_CHECKING:
    from conftest import RawClient

PARQUET = b"PAR1 rows and a footer PAR1"
TYPE = {"Content-Type": "application/parquet"}
PRESIGN, CONFIRM = "/api/v1/rft/samples/presign", "/api/v1/rft/samples/confirm"


async def external_run(client: RawClient) -> str:
    team = "cmb4f0k2p0001l8zq7h3n9x5t"
    body = {"base_model": "m", "max_steps": 5, "environments": [], "team_id": team}
    run_id: str = (await client.call("POST", "/api/v1/rft/external-runs", body)).body["run"]["id"]
    return run_id


async def presign(client: RawClient, run_id: str, step: int = 10) -> dict[str, str]:
    answer = await client.call("POST", PRESIGN, {"run_id": run_id, "step": step})
    assert answer.status == 200, answer.body
    data: dict[str, str] = answer.body["data"]
    return data


async def put(url: str, data: bytes = PARQUET, headers: dict[str, str] = TYPE) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.put(url, data=data, headers=headers) as r,
    ):
        return r.status


async def files(client: RawClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.call("GET", "/_local/training/samples")).body[
        "files"
    ]
    return found


async def test_samples_are_put_to_an_address_and_confirmed(client: RawClient) -> None:
    run_id = await external_run(client)
    ticket = await presign(client, run_id)
    body = {"run_id": run_id, "step": 10, "s3_key": ticket["s3Key"]}
    assert (await client.call("POST", CONFIRM, body)).status == 400  # nothing is there yet
    assert await put(ticket["presignedUrl"]) == 200
    assert [each["confirmed"] for each in await files(client)] == [False]
    assert (await client.call("POST", CONFIRM, body)).status == 200
    assert await files(client) == [
        {
            "run_id": run_id,
            "step": 10,
            "s3_key": ticket["s3Key"],
            "confirmed": True,
            "size": len(PARQUET),
            "sha256": hashlib.sha256(PARQUET).hexdigest(),
        }
    ]


async def test_a_step_that_is_sent_again_is_one_file(client: RawClient) -> None:
    run_id = await external_run(client)
    first, second = await presign(client, run_id), await presign(client, run_id)
    assert first["s3Key"] == second["s3Key"]
    assert await put(first["presignedUrl"]) == await put(second["presignedUrl"]) == 200
    assert len(await files(client)) == 1


@pytest.mark.parametrize("header", ["Authorization", "X-Prime-Team-ID"])
async def test_a_presigned_address_takes_no_other_headers(client: RawClient, header: str) -> None:
    url = (await presign(client, await external_run(client)))["presignedUrl"]
    assert await put(url, headers={**TYPE, header: "Bearer x"}) == 403


async def test_a_presigned_address_has_its_type_its_signature_and_its_time(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    run_id = await external_run(client)
    url = (await presign(client, run_id))["presignedUrl"]
    assert await put(url, headers={"Content-Type": "application/octet-stream"}) == 403
    assert await put(url.partition("?")[0]) == 403
    assert await put(url.replace("step_10", "step_11")) == 403
    await prime_platform.advance(901)
    assert await put(url) == 403
    assert (await client.call("GET", url.removeprefix(prime_platform.url))).status == 405


async def test_what_is_no_parquet_file_of_the_step_is_not_confirmed(client: RawClient) -> None:
    run_id = await external_run(client)
    ticket = await presign(client, run_id)
    body = {"run_id": run_id, "step": 10, "s3_key": ticket["s3Key"]}
    for data in (b"", b"PAR1PAR1", b"PAR1 and no end"):
        assert await put(ticket["presignedUrl"], data) == 200
        assert (await client.call("POST", CONFIRM, body)).status == 400
    assert (await client.call("POST", CONFIRM, {**body, "step": 11})).status == 400
    unknown = {"run_id": "unknown", "step": 0}
    assert (await client.call("POST", PRESIGN, unknown)).status == 404


async def test_samples_outlive_a_restart(tmp_path: Path, helpers: Any) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        ticket = await presign(client, await external_run(client))
        assert await put(ticket["presignedUrl"]) == 200
        before = await files(client)
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        assert await files(client) == before
