"""Copies between volumes and buckets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from conditions import until
from pydantic import SecretStr

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    BadRequestError,
    BucketCredentials,
    BucketTransferError,
    BucketTransferStatus,
    BucketTransferTimeoutError,
    NotFoundError,
    VolumeBusyError,
    VolumePathError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]


@pytest.fixture
async def client(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncTrainClient]:
    monkeypatch.setattr("prime_train.volume_waiting.PAUSE", 0.05)
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi")
        yield client


def arguments(platform: LocalPlatform, **changes: Any) -> dict[str, Any]:
    keys = platform.add_bucket("mine")
    credentials = BucketCredentials(
        access_key_id=keys["access_key_id"],
        secret_access_key=SecretStr(keys["secret_access_key"]),
    )
    given: dict[str, Any] = {
        "volume": "research",
        "direction": "import",
        "path": "data/",
        "url": "s3://mine/in",
        "credentials": credentials,
        "endpoint_url": keys["endpoint"],
    }
    return {**given, **changes}


async def test_a_copy_is_asked_for_and_waited_for(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    transfers = client.volumes.bucket_transfers
    directions: tuple[Literal["import", "export"], ...] = ("import", "export")
    for direction in directions:
        made = await transfers.create(**arguments(platform, direction=direction))
        assert (made.direction, made.path, made.url) == (direction, "data", "s3://mine/in")
        done = await transfers.wait("research", made.id)
        assert (done.status, done.completed_at is not None) == (
            BucketTransferStatus.SUCCEEDED,
            True,
        )
        assert await transfers.get("research", made.id) == done
    assert [each.direction for each in await transfers.list("research")] == ["export", "import"]
    await transfers.cancel("research", made.id)
    assert (await transfers.get("research", made.id)).status == BucketTransferStatus.SUCCEEDED
    with pytest.raises(NotFoundError):
        await transfers.get("research", "nope")


async def test_a_copy_that_fails_says_why(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    wrong = BucketCredentials(access_key_id="AK", secret_access_key=SecretStr("hidden-secret"))
    made = await client.volumes.bucket_transfers.create(**arguments(platform, credentials=wrong))
    with pytest.raises(BucketTransferError, match="InvalidAccessKeyId") as caught:
        await client.volumes.bucket_transfers.wait("research", made.id)
    assert (caught.value.status, "hidden-secret" in repr(wrong)) == ("failed", False)


async def test_a_copy_is_cancelled(start_platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_train.volume_waiting.PAUSE", 0.05)
    platform: LocalPlatform = await start_platform(volume_time=3600)
    async with AsyncTrainClient() as client:
        await client.volumes.create("research", "1Gi")
        transfers = client.volumes.bucket_transfers
        made = await transfers.create(**arguments(platform))
        with pytest.raises(BucketTransferTimeoutError, match="queued"):
            await transfers.wait("research", made.id, timeout=0.2)
        with pytest.raises(VolumeBusyError, match="in progress until"):
            await transfers.create(**arguments(platform))
        await transfers.cancel("research", made.id)
        with pytest.raises(BucketTransferError, match="cancelled"):
            await transfers.wait("research", made.id)
        creating = asyncio.create_task(transfers.create(**arguments(platform)))
        platform.add_faults(FaultRule("create_bucket_transfer", delay_after=0.3))
        requests = platform.ledger
        await until(lambda: requests()["requests"]["create_bucket_transfer"] == 3)
        await asyncio.sleep(0.05)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    assert platform.ledger()["requests"]["cancel_bucket_transfer"] == 2


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"path": "runs/a"}, "runs/ holds run outputs"),
        ({"path": "../a"}, "leads out of the volume"),
        ({"url": "https://mine/in"}, "url: a bucket's address"),
        ({"url": "s3://"}, "url: a bucket's address"),
        ({"direction": "move"}, "direction"),
        ({"volume": "Research"}, "a volume's name"),
    ],
)
async def test_wrong_copies_are_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, change: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        await client.volumes.bucket_transfers.create(**arguments(platform, **change))
    secret = arguments(platform)["credentials"].secret_access_key.get_secret_value()
    assert secret not in str(caught.value)
    assert "create_bucket_transfer" not in platform.ledger()["requests"]
    if "path" in change:
        assert isinstance(caught.value, VolumePathError)


async def test_a_secret_stays_out_of_errors(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    given = arguments(platform)
    secret = given["credentials"].secret_access_key.get_secret_value()
    told = f'{{"detail":"no such key: {secret}"}}'
    platform.add_faults(FaultRule("create_bucket_transfer", status=400, body=told))
    with pytest.raises(BadRequestError) as caught:
        await client.volumes.bucket_transfers.create(**given)
    assert secret not in f"{caught.value} {caught.value.body}"
