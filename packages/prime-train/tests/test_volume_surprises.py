"""Files that change while they are put, and a store or a platform that answers as it should not."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from sample_files import write
from transfer_counts import requests, until

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIResponseError,
    AsyncTrainClient,
    SourceChangedError,
    VolumeBusyError,
)

pytestmark = pytest.mark.timeout(30)

ROUTE: dict[str, Any] = {
    "via": "r2",
    "endpoint": "http://127.0.0.1:9",
    "bucket": "b",
    "prefix": "p/",
    "accessKeyId": "a",
    "secretAccessKey": "s",
    "sessionToken": "t",
    "expiresAt": "2099-01-01T00:00:00Z",
    "leaseId": "l",
}


@pytest.mark.parametrize("size", [10, 300_000])
async def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(
    client: AsyncTrainClient, volume: str, tmp_path: Path, size: int
) -> None:
    write(tmp_path / "w" / "file", size)

    def swap(done: int, total: int | None) -> None:
        if not done:
            (tmp_path / "w" / "file").unlink()
            os.mkfifo(tmp_path / "w" / "file")

    with pytest.raises(SourceChangedError, match="changed"):
        await client.volumes.put(tmp_path / "w", volume, "w", progress=swap)


async def test_a_file_that_goes_away_is_said_to_have_changed(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w" / "file", 10)

    def remove(done: int, total: int | None) -> None:
        if not done:
            (tmp_path / "w" / "file").unlink()

    with pytest.raises(SourceChangedError, match="went away"):
        await client.volumes.put(tmp_path / "w", volume, "w", progress=remove)


async def test_a_file_that_is_written_to_between_two_attempts_is_said_to_have_changed(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w", 300_000)
    platform.add_faults(FaultRule("PutObject", nth=1, status=500))
    putting = asyncio.ensure_future(client.volumes.put(tmp_path / "w", volume, "w"))
    await until(platform, "PutObject", 1)
    (tmp_path / "w").write_bytes(bytes(300_000))
    with pytest.raises(SourceChangedError, match="changed"):
        await putting


CIRCLE = (
    "<ListBucketResult><IsTruncated>true</IsTruncated>"
    "<NextContinuationToken>again</NextContinuationToken></ListBucketResult>"
)


async def test_a_listing_that_goes_round_in_a_circle_is_an_error(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str
) -> None:
    platform.add_faults(FaultRule("ListObjectsV2", status=200, body=CIRCLE))
    with pytest.raises(APIResponseError, match="without an end"):
        await client.volumes.ls(volume)
    assert requests(platform, "ListObjectsV2") == 2


async def test_a_page_of_any_size_does_not_fill_the_memory(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_train.transfers.store.ATTEMPTS", 1)
    monkeypatch.setattr("prime_train.transfers.store.MAX_PAGE", 100_000)
    body = "<ListBucketResult>" + "<a>" * 50_000
    platform.add_faults(FaultRule("ListObjectsV2", status=200, body=body))
    with pytest.raises(APIResponseError, match="larger than"):
        await client.volumes.ls(volume)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"via": "ftp"}, APIResponseError, "not known here"),
        ({"via": "session"}, VolumeBusyError, "open session"),
        ({"endpoint": "file:///etc/passwd"}, APIResponseError, "lacks"),
        ({"sessionToken": "a\r\nX: y"}, APIResponseError, "lacks"),
    ],
)
async def test_a_route_that_leads_nowhere_is_refused(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    change: dict[str, Any],
    kind: type[Exception],
    message: str,
) -> None:
    body = json.dumps({**ROUTE, **change})
    platform.add_faults(FaultRule("route_volume_transfer", status=200, body=body))
    with pytest.raises(kind, match=message):
        await client.volumes.ls(volume)


async def test_a_put_without_a_hold_on_the_volume_is_refused(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w", 10)
    body = json.dumps({**ROUTE, "leaseId": None})
    platform.add_faults(FaultRule("route_volume_transfer", nth=2, status=200, body=body))
    with pytest.raises(APIResponseError, match="no hold"):
        await client.volumes.put(tmp_path / "w", volume, "w")


async def test_a_put_whose_hold_is_not_known_says_for_how_long(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w", 10)
    platform.add_faults(FaultRule("route_volume_transfer", nth=2, reset="after_commit"))
    with pytest.raises(ConnectionError, match="A hold of 15 minutes on volume"):
        await client.volumes.put(tmp_path / "w", volume, "w")
