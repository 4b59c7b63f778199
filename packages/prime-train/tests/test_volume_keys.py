"""Keys of transfers: renewed in time, never shown; and what is damaged or stalled on the way."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
import traceback
from pathlib import Path

import pytest
from sample_files import MIB, tree, write
from transfer_counts import requests, until

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIError,
    APITimeoutError,
    AsyncTrainClient,
    ForbiddenError,
    VolumeBusyError,
    VolumeChecksumError,
    VolumeTransferError,
)
from prime_train.models.volume_transfers import VolumeTransferRoute
from prime_train.transfers import keys as keys_module
from prime_train.transfers import leases
from prime_train.transfers.keys import TemporaryKeys, keys_of


@pytest.mark.usefixtures("small_parts")
async def test_keys_of_a_get_that_expire_in_the_middle_are_renewed(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "w", 48 * MIB)
    await client.volumes.put(tmp_path / "w", volume, "w")
    before = requests(platform, "route_volume_transfer")
    platform.add_faults(FaultRule(operation="GetObject", nth=[4, 5], delay_before=0.5))
    getting = asyncio.ensure_future(client.volumes.get(volume, "w", tmp_path / "back"))
    await until(platform, "GetObject", 5)
    await platform.advance(2 * 3600)
    await getting
    assert (tmp_path / "back").read_bytes() == (tmp_path / "w").read_bytes()
    # Once for all requests that were refused.
    assert requests(platform, "route_volume_transfer") - before == 2


@pytest.mark.usefixtures("small_parts")
async def test_an_upload_keeps_its_hold_for_as_long_as_it_takes(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The platform's clock is advanced, not this machine's: keys are renewed all the time.
    monkeypatch.setattr(keys_module, "RENEWED_BEFORE", 1e6)
    monkeypatch.setattr(keys_module, "PAUSE", 0.05)
    write(tmp_path / "w", 23 * MIB)
    platform.add_faults(FaultRule(operation="UploadPart", nth=[3], delay_before=1.5))
    putting = asyncio.ensure_future(client.volumes.put(tmp_path / "w", volume, "w"))
    await until(platform, "UploadPart", 4)
    for _ in range(4):  # 40 minutes in all, where 15 would end it
        seen = requests(platform, "route_volume_transfer")
        await until(platform, "route_volume_transfer", seen + 2)
        await platform.advance(600)
    await putting
    await client.volumes.get(volume, "w", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "w").read_bytes()
    await client.volumes.put(tmp_path / "w", volume, "w")


async def test_keys_are_renewed_when_five_minutes_are_left_and_needed_at_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1_000.0
    monkeypatch.setattr("prime_train.transfers.keys.time.time", lambda: now)
    made: list[float] = []

    def make() -> TemporaryKeys:
        made.append(now)
        return TemporaryKeys("e", "b", "p/", "a", "s", "t", now + 900, "lease")

    async def renew() -> TemporaryKeys:
        return make()

    ring = keys_module.KeyRing(make(), renew)
    now = 1_000.0 + 779
    await asyncio.gather(*(ring.current() for _ in range(5)))
    assert made == [1_000.0]
    now = 1_000.0 + 781
    await asyncio.gather(*(ring.current() for _ in range(5)))
    assert made == [1_000.0, 1_781.0]  # once for all
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds
        if len(slept) > 4:
            raise asyncio.CancelledError

    monkeypatch.setattr("prime_train.transfers.keys.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await ring.keep()
    assert slept[:3] == [600.0, keys_module.PAUSE, 590.0]


async def test_a_hold_that_can_not_be_kept_ends_the_put(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keys_module, "RENEWED_BEFORE", 1e6)
    write(tmp_path / "f", 5)
    platform.add_faults(
        FaultRule(operation="PutObject", delay_before=30),
        FaultRule(operation="route_volume_transfer", nth=3, status=200, body='{"via": "session"}'),
    )
    with pytest.raises(VolumeTransferError, match="put again"):
        await client.volumes.put(tmp_path / "f", volume, "f")
    assert requests(platform, "release_volume_transfer") == 1


async def test_an_open_session_of_ones_own_is_named(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "f", 5)
    platform.add_faults(
        FaultRule(operation="route_volume_transfer", status=200, body='{"via": "session"}')
    )
    for call in (
        client.volumes.put(tmp_path / "f", volume, "f"),
        client.volumes.get(volume, "/", tmp_path / "x"),
        client.volumes.ls(volume),
    ):
        with pytest.raises(VolumeBusyError, match="Your open session has volume 'research'"):
            await call


@pytest.mark.parametrize("size", [5, 300_000])
async def test_bytes_that_are_damaged_on_their_way_here_are_thrown_away(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path, size: int
) -> None:
    write(tmp_path / "f", size)
    await client.volumes.put(tmp_path / "f", volume, "f")
    (tmp_path / "back").write_bytes(b"old")
    platform.add_faults(FaultRule(operation="GetObject", nth=1, status=200, body="x" * size))
    with pytest.raises(VolumeChecksumError, match="checksum of 'f'") as damaged:
        await client.volumes.get(volume, "f", tmp_path / "back")
    assert damaged.value.expected != damaged.value.actual
    assert pickle.loads(pickle.dumps(damaged.value)).expected == damaged.value.expected
    assert (tmp_path / "back").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "f", "home"]  # noqa: ASYNC240
    await client.volumes.get(volume, "f", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "f").read_bytes()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("size", [5, 300_000, 11 * MIB])
async def test_bytes_that_are_damaged_on_their_way_there_are_told(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path, size: int
) -> None:
    write(tmp_path / "f", size)
    etag = '"d41d8cd98f00b204e9800998ecf8427e"'
    operation = "UploadPart" if size > MIB else "PutObject"
    platform.add_faults(
        FaultRule(operation=operation, nth=1, status=200, headers={"ETag": etag}, body="")
    )
    with pytest.raises(VolumeChecksumError, match="checksum of 'f'"):
        await client.volumes.put(tmp_path / "f", volume, "f")
    assert requests(platform, "CompleteMultipartUpload") == 0
    digest = "<Error><Code>BadDigest</Code></Error>"
    platform.add_faults(FaultRule(operation=operation, nth=1, status=400, body=digest))
    with pytest.raises(VolumeChecksumError, match="checksum of 'f'"):
        await client.volumes.put(tmp_path / "f", volume, "f")
    await client.volumes.put(tmp_path / "f", volume, "f")


async def test_a_store_that_stalls_is_asked_again(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_train.transfers.store.IDLE", 0.3)
    data = tmp_path / "data"
    write(data / "f", 1_000_000)
    write(data / "g", 5)
    platform.add_faults(
        FaultRule(operation="PutObject", nth=[1, 2], delay_before=20),
        FaultRule(operation="GetObject", nth=[1, 2], stall=20),
    )
    await client.volumes.put(data, volume, "/")
    await client.volumes.get(volume, "data/", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(data)


async def test_a_store_that_never_answers_is_given_up(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_train.transfers.store.IDLE", 0.1)
    write(tmp_path / "f", 1_000_000)
    platform.add_faults(FaultRule(operation="PutObject", delay_before=20))
    with pytest.raises(APITimeoutError, match=r"for 0\.1 s"):
        await client.volumes.put(tmp_path / "f", volume, "f")
    assert requests(platform, "PutObject") == 3


async def test_an_object_of_any_type_is_only_bytes(
    client: AsyncTrainClient, volume: str, tmp_path: Path, platform: LocalPlatform
) -> None:
    (tmp_path / "f").write_bytes(b"<html>")
    await client.volumes.put(tmp_path / "f", volume, "page.html")
    headers = {"Content-Type": "text/html", "x-amz-meta-mtime": "1.5"}
    platform.add_faults(
        FaultRule(operation="GetObject", nth=1, status=200, body="<html>", headers=headers)
    )
    await client.volumes.get(volume, "page.html", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"<html>"
    assert (tmp_path / "back").stat().st_mtime_ns == 1_500_000_000
    times = {"x-amz-meta-mtime": "yesterday"}
    platform.add_faults(
        FaultRule(operation="GetObject", nth=1, status=200, body="<html>", headers=times)
    )
    await client.volumes.get(volume, "page.html", tmp_path / "again")
    assert abs((tmp_path / "again").stat().st_mtime - time.time()) < 300


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The keys that are given out."""
    seen: set[str] = set()

    def look(route: VolumeTransferRoute) -> TemporaryKeys:
        keys = keys_of(route)
        assert keys.session_token is not None
        seen.update((keys.access_key_id, keys.secret_access_key, keys.session_token))
        return keys

    monkeypatch.setattr(leases, "keys_of", look)
    return seen


async def test_keys_are_in_no_log_error_or_repr(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    tmp_path: Path,
    home: Path,
    secrets: set[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    write(tmp_path / "f", 1_000_000)

    async def refuse(operation: str) -> APIError:
        """A store that repeats all it was sent, as some do."""
        body = f"<Error><Code>AccessDenied</Code><Message>{' '.join(secrets)}</Message></Error>"
        platform.add_faults(FaultRule(operation=operation, nth=1, status=403, body=body))
        putting = operation == "PutObject"
        volumes = client.volumes
        with pytest.raises(ForbiddenError, match="HTTP 403 AccessDenied") as refused:
            await (
                volumes.put(tmp_path / "f", volume, "f")
                if putting
                else volumes.get(volume, "/", tmp_path / "back")
            )
        return refused.value

    await client.volumes.put(tmp_path / "f", volume, "f")
    errors = [await refuse("PutObject"), await refuse("GetObject")]
    assert len(secrets) >= 12
    shown = [caplog.text, repr(client.volumes)]
    for error in errors:
        shown += [repr(error), str(vars(error)), str(pickle.dumps(error))]
        shown += traceback.format_exception(error)
    shown += [path.read_text() for path in (home / ".prime" / "transfers").iterdir()]
    assert not [secret for secret in secrets if any(secret in text for text in shown)]
    assert any("lease" in text for text in shown)  # the journals were looked at
    assert "hidden" not in repr(TemporaryKeys("e", "b", "p", "hidden", "hidden", "hidden", 0, None))
