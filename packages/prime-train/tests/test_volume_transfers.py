"""Files of volumes, put and got over the platform's own object store."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from code_blocks import python_blocks
from sample_files import MIB, sample, tree, write

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    ConfigurationError,
    NotFoundError,
    TrainClient,
    VolumeEntry,
    VolumeFileNotFoundError,
    VolumePathError,
    VolumePut,
)
from prime_train.transfers.store import VolumeStore


async def test_a_folder_comes_back_as_it_was(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    data = sample(tmp_path)
    put = await client.volumes.put(data, volume, "datasets/")
    assert put == VolumePut(files=3, directories=1, bytes=100_005, skipped_links=0)
    got = await client.volumes.get(volume, "datasets/my-data/", tmp_path / "back")
    assert (got.files, got.directories, got.bytes, got.ignored) == (3, 1, 100_005, 0)
    assert tree(tmp_path / "back") == tree(data)
    await client.volumes.get(volume, "datasets", tmp_path / "here")
    assert tree(tmp_path / "here" / "datasets" / "my-data") == tree(data)
    await client.volumes.get(volume, "/", tmp_path / "everything")
    assert tree(tmp_path / "everything" / "datasets" / "my-data") == tree(data)


async def test_a_large_file_travels_in_parts(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    md5 = write(tmp_path / "weights", 150 * MIB + 17)
    told: list[tuple[int, int | None]] = []
    await client.volumes.put(
        tmp_path / "weights",
        volume,
        "models/w",
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[0] == (0, 150 * MIB + 17)
    assert told[-1] == (150 * MIB + 17, 150 * MIB + 17)
    await client.volumes.get(volume, "models/w", tmp_path / "back")
    back = (tmp_path / "back").read_bytes()
    assert hashlib.md5(back, usedforsecurity=False).hexdigest() == md5
    requests = platform.ledger()["requests"]
    assert requests["UploadPart"] == 3
    assert requests["GetObject"] == 3
    assert requests["CompleteMultipartUpload"] == 1
    assert not requests.get("PutObject")


async def test_a_lone_file_lands_where_the_rules_say(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    write(tmp_path / "f", 3)
    for path in ("/", "a/", "b/c", "a", "b"):  # the last two are folders by then
        await client.volumes.put(tmp_path / "f", volume, path)
    usage = await client.volumes.du(volume)
    assert (usage.objects, usage.bytes) == (4, 12)
    entries = [*await client.volumes.ls(volume), *await client.volumes.ls(volume, "b")]
    assert [entry.path for entry in entries] == ["a/", "b/", "f", "b/c", "b/f"]


async def test_the_root_takes_contents(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    data = sample(tmp_path)
    await client.volumes.put(f"{data}/", volume, "/")
    await client.volumes.get(volume, "/", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(data)


async def test_what_is_listed_and_counted(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    assert await client.volumes.ls(volume) == []
    await client.volumes.put(sample(tmp_path), volume, "datasets/")
    now = datetime.now(timezone.utc)
    entries = await client.volumes.ls(volume, "datasets/my-data")
    assert [(entry.path, entry.kind, entry.size) for entry in entries] == [
        ("datasets/my-data/a", "file", 100_000),
        ("datasets/my-data/empty/", "directory", None),
        ("datasets/my-data/sub/", "directory", None),
    ]
    assert entries[0].modified is not None
    assert abs(entries[0].modified - now) < timedelta(minutes=5)
    assert await client.volumes.ls(volume) == [VolumeEntry("datasets/", "directory")]
    (lone,) = await client.volumes.ls(volume, "datasets/my-data/sub/b")
    assert (lone.path, lone.size) == ("datasets/my-data/sub/b", 5)
    usage = await client.volumes.du(volume, "datasets/my-data/sub")
    assert (usage.bytes, usage.objects) == (5, 2)
    assert (usage.volume_bytes, usage.volume_objects) == (100_005, 4)
    assert (usage.capacity, usage.capacity_bytes) == ("1Ti", 2**40)
    assert usage.used_percent == 100 * 100_005 / 2**40


async def test_what_is_not_there_is_said(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    for call in (
        client.volumes.get(volume, "nothing", tmp_path / "x"),
        client.volumes.ls(volume, "nothing"),
        client.volumes.du(volume, "nothing"),
    ):
        with pytest.raises(VolumeFileNotFoundError, match="no 'nothing' on volume 'research'"):
            await call
    with pytest.raises(NotFoundError):
        await client.volumes.get("another", "/", tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        await client.volumes.put(tmp_path / "nothing", volume, "x")
    got = await client.volumes.get(volume, "/", tmp_path / "x")
    assert got.files == 0


async def test_what_is_refused_moves_nothing(
    client: AsyncTrainClient, platform: LocalPlatform, volume: str, tmp_path: Path
) -> None:
    data = sample(tmp_path)
    write(tmp_path / "f", 1)
    await client.volumes.put(tmp_path / "f", volume, "x/file")
    await client.volumes.put(tmp_path / "f", volume, "y/my-data/a/inner")
    before = platform.ledger()["requests"]
    for source, path, words in (
        (data, "runs/", "runs/ holds run outputs"),
        (data, "../x", "out of the volume"),
        (data, "with blank", "no name on a volume"),
        (data, "x/file", "'x/file' is a file"),
        (data, "x/file/below", "'x/file' is a file"),
        (data, "y/", "'y/my-data/a' is a folder"),
        (tmp_path / "f", "x/file/f", "'x/file' is a file"),
    ):
        with pytest.raises(VolumePathError, match=words):
            await client.volumes.put(source, volume, path)
    with pytest.raises(VolumePathError, match="is a file, and no folder"):
        await client.volumes.get(volume, "/", tmp_path / "f")
    after = platform.ledger()["requests"]
    for operation in ("PutObject", "GetObject", "CreateMultipartUpload", "UploadPart"):
        assert after.get(operation) == before.get(operation)
    assert after["route_volume_transfer"] > before["route_volume_transfer"]


async def test_a_put_overwrites_and_leaves_the_rest(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    data = sample(tmp_path)
    await client.volumes.put(data, volume, "d/")
    write(data / "a", 10, seed=1)
    (data / "sub" / "b").unlink()
    await client.volumes.put(data, volume, "d/")
    await client.volumes.get(volume, "d/my-data/", tmp_path / "back")
    assert (tmp_path / "back" / "a").read_bytes() == (data / "a").read_bytes()
    assert (tmp_path / "back" / "sub" / "b").exists()


async def test_sync_clients_transfer_too(
    client: AsyncTrainClient, volume: str, tmp_path: Path
) -> None:
    data = sample(tmp_path)

    def work() -> None:
        with TrainClient() as sync:
            sync.volumes.put(str(data), volume, "d/", progress=True)
            sync.volumes.get(volume, "d/my-data/", tmp_path / "back", progress=True)
            assert len(sync.volumes.ls(volume, "d/my-data")) == 3
            assert sync.volumes.du(volume).volume_bytes == 100_005

    await asyncio.to_thread(work)
    assert tree(tmp_path / "back") == tree(data)


async def test_many_files_are_listed_in_pages(
    client: AsyncTrainClient, volume: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = VolumeStore._page
    monkeypatch.setattr(
        VolumeStore,
        "_page",
        lambda store, prefix, more: pages(store, prefix, {"MaxKeys": 20, **more}),
    )
    data = tmp_path / "many"
    data.mkdir()
    for number in range(105):
        (data / f"f{number}").write_bytes(b"x")
    await client.volumes.put(f"{data}/", volume, "many")
    assert len(await client.volumes.ls(volume, "many")) == 105
    got = await client.volumes.get(volume, "many/", tmp_path / "back")
    assert got.files == 105


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule(operation="UploadPart", nth=[1, 3], reset="before_commit"),
        FaultRule(operation="UploadPart", nth=[1, 3], reset="after_commit"),
        FaultRule(operation="UploadPart", nth=[1, 2, 3], status=503),
        FaultRule(operation="PutObject", nth=[1, 2], status=500),
        FaultRule(operation="CreateMultipartUpload", nth=1, reset="after_commit"),
        FaultRule(operation="CompleteMultipartUpload", nth=1, reset="after_commit"),
        FaultRule(operation="CompleteMultipartUpload", nth=1, status=500),
        FaultRule(operation="GetObject", nth=[1, 2], truncate=100_000),
        FaultRule(operation="GetObject", nth=[1, 2], reset="after_commit"),
        FaultRule(operation="GetObject", nth=[1, 2, 3], status=503),
        FaultRule(operation="ListObjectsV2", every=2, status=503),
        FaultRule(operation="release_volume_transfer", nth=1, reset="before_commit"),
        FaultRule(operation="ListObjectsV2", every=2, status=200, body="<html/>"),
        FaultRule(operation="ListObjectsV2", every=2, truncate=100),
        FaultRule(operation="CreateMultipartUpload", nth=1, garbage=True),
        FaultRule(operation="CompleteMultipartUpload", nth=1, status=200, body="<Error></Error>"),
        FaultRule(operation="UploadPart", nth=2, status=200, body=""),
    ],
    ids=lambda rule: f"{rule.operation}-{rule.status or rule.reset or 'garbled'}",
)
async def test_scattered_faults_are_got_over(
    client: AsyncTrainClient,
    platform: LocalPlatform,
    volume: str,
    small_parts: None,
    tmp_path: Path,
    rule: FaultRule,
) -> None:
    data = tmp_path / "data"
    write(data / "large", 13 * MIB)
    write(data / "small", 1_000_000)
    platform.add_faults(rule)
    put = await client.volumes.put(data, volume, "d/")
    await client.volumes.get(volume, "d/data/", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(data)
    assert put.bytes == 13 * MIB + 1_000_000
    # Nothing holds the volume, and no upload is left half done.
    await client.volumes.put(data / "small", volume, "again")


async def test_the_readmes_snippet_runs(
    client: AsyncTrainClient, volume: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    (code,) = [code for _, code in python_blocks(readme) if "volumes.put" in code]
    data = sample(tmp_path)
    monkeypatch.chdir(tmp_path)
    await asyncio.to_thread(exec, code, {"__name__": "snippet"})
    assert tree(tmp_path / "copy") == tree(data)


async def test_a_key_that_is_too_long_in_the_store_is_refused(
    client: AsyncTrainClient, volume: str, tmp_path: Path, platform: LocalPlatform
) -> None:
    write(tmp_path / "f", 1)
    with pytest.raises(VolumePathError, match="longer than 1024"):
        await client.volumes.put(tmp_path / "f", volume, "/".join(["a" * 250] * 4) + "/" + "b" * 15)
    assert platform.ledger()["requests"].get("PutObject") is None


async def test_without_botocore_what_to_install_is_said(
    client: AsyncTrainClient, volume: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prime_train.transfers.s3_protocol", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'prime-train\[volumes\]'"):
        await client.volumes.get(volume, "/", tmp_path / "back")
