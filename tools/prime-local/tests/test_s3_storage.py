"""The S3 endpoint's files, memory, faults and restarts."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    EndpointConnectionError,
    ResponseStreamingError,
)
from s3_client import MIB, S3Client, complete, own_bucket, upload

from prime_local import FaultRule, LocalPlatform, PlatformProcess

PART = 5 * MIB


@pytest.fixture
def s3(prime_platform: LocalPlatform) -> S3Client:
    return own_bucket(prime_platform)


def of_part(number: int) -> bytes:
    return random.Random(number).randbytes(PART)


async def test_objects_and_uploads_outlive_a_restart(tmp_path: Path) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform:
        s3 = own_bucket(platform)
        await s3("put_object", Key="a", Body=b"one", Metadata={"mtime": "1.5"})
        upload_id = await upload(s3, "big", [of_part(1), b"end"])
        port = int(platform.url.rpartition(":")[2])
    stray = tmp_path / "s3" / "stray"
    stray.touch()
    async with LocalPlatform(data_dir=tmp_path, port=port):
        assert (await s3("head_object", Key="a"))["Metadata"] == {"mtime": "1.5"}
        assert await s3.read("a") == b"one"
        await complete(s3, "big", upload_id)
        assert await s3.read("big") == of_part(1) + b"end"
        assert not stray.exists()


async def test_a_killed_platform_has_what_it_confirmed(tmp_path: Path) -> None:
    with PlatformProcess(["--data-dir", str(tmp_path)]) as platform:
        s3 = own_bucket(platform)
        await s3("put_object", Key="a", Body=b"one")
        os.kill(platform.pid, signal.SIGKILL)
    with PlatformProcess(["--data-dir", str(tmp_path)]) as platform:
        assert await own_bucket(platform).read("a") == b"one"


async def test_what_is_replaced_leaves_nothing_on_the_disk(tmp_path: Path) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform:
        s3 = own_bucket(platform)
        for content in (b"one", b"two"):
            await s3("put_object", Key="a", Body=content)
        upload_id = await upload(s3, "b", [of_part(1), of_part(1)])
        await s3("upload_part", Key="b", UploadId=upload_id, PartNumber=1, Body=b"")
        await s3("abort_multipart_upload", Key="b", UploadId=upload_id)
        for _ in range(100):
            if len(files := list((tmp_path / "s3").iterdir())) == 1:
                break
            await asyncio.sleep(0.01)
        assert [file.read_bytes() for file in files] == [b"two"]
        await platform.reset()
        own_bucket(platform)
        assert await s3.error("get_object", Key="a") == ("InvalidAccessKeyId", 403)


async def test_a_reader_has_the_object_that_it_began_with(
    prime_platform: LocalPlatform, s3: S3Client
) -> None:
    part = random.Random(0).randbytes(16 * MIB)
    await complete(s3, "a", await upload(s3, "a", [part, part]))
    answer = await s3("get_object", Key="a")
    first = await asyncio.to_thread(answer["Body"].read, 1000)
    await s3("put_object", Key="a", Body=b"other")
    await prime_platform._core.tasks.settle(1)  # which delete what nobody reads
    rest = await asyncio.to_thread(answer["Body"].read)
    assert first + rest == part + part
    assert await s3.read("a") == b"other"


async def test_an_object_that_cannot_be_read_breaks_off(tmp_path: Path) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform:
        s3 = own_bucket(platform)
        await s3("put_object", Key="a", Body=b"x" * MIB)
        for file in (tmp_path / "s3").iterdir():
            file.unlink()
        with pytest.raises((ResponseStreamingError, ConnectionClosedError)):
            await s3.read("a")


async def test_zeros_take_no_room(tmp_path: Path) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform:
        s3 = own_bucket(platform)
        await s3("put_object", Key="a", Body=bytes(32 * MIB) + b"end")
        (file,) = (tmp_path / "s3").iterdir()
        assert file.stat().st_size == 32 * MIB + 3
        assert file.stat().st_blocks * 512 < MIB
        assert await s3.read("a", Range=f"bytes={32 * MIB - 1}-") == b"\0end"


@pytest.mark.parametrize("fault", ["status", "before", "after", "truncated"])
async def test_faults_spoil_requests_to_the_storage(
    prime_platform: LocalPlatform, s3: S3Client, fault: str
) -> None:
    await s3("put_object", Key="a", Body=bytes(3 * MIB))
    rule = {
        "status": FaultRule("GetObject", nth=1, status=503),
        "before": FaultRule("PutObject", nth=1, reset="before_commit"),
        "after": FaultRule("PutObject", nth=1, reset="after_commit"),
        "truncated": FaultRule("GetObject", nth=1, truncate=10, after_envelopes=1),
    }[fault]
    prime_platform.add_faults(rule)
    if fault == "status":
        assert await s3.error("get_object", Key="a") == ("SlowDown", 503)
    elif fault == "truncated":
        with pytest.raises(ResponseStreamingError):
            await s3.read("a")
        assert len(await s3.read("a")) == 3 * MIB
    else:
        with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
            await s3("put_object", Key="a", Body=b"new")
        expected = bytes(3 * MIB) if fault == "before" else b"new"
        assert await s3.read("a") == expected


async def test_a_body_that_breaks_off_leaves_nothing(
    prime_platform: LocalPlatform, s3: S3Client
) -> None:
    host, port = prime_platform.url.removeprefix("http://").split(":")
    request = signed_put(s3, 100)
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(request + b"only a bit")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    await s3("put_object", Key="b", Body=b"")
    assert await s3.keys() == ["b"]


def signed_put(s3: S3Client, size: int) -> bytes:
    """Return the head of a request whose body does not follow."""
    seen: list[Any] = []

    def stop(request: Any, **_: Any) -> Any:
        seen.append(request)
        raise InterruptedError

    s3.client.meta.events.register("before-send.s3.PutObject", stop)
    with pytest.raises(InterruptedError):
        s3.client.put_object(Bucket=s3.bucket, Key="a", Body=bytes(size))
    s3.client.meta.events.unregister("before-send.s3.PutObject", stop)
    (request,) = seen
    path = "/" + request.url.split("/", 3)[3]
    head = [f"PUT {path} HTTP/1.1", "Host: " + request.url.split("/")[2]]
    for name, value in request.headers.items():
        text = value.decode() if isinstance(value, bytes) else value
        if name.lower() not in ("host", "expect"):
            head.append(f"{name}: {text}")
    return ("\r\n".join(head) + "\r\n\r\n").encode()


async def test_a_large_object_goes_through_little_memory(tmp_path: Path) -> None:
    """A GiB in parts of 64 MiB, four at once; `tests` of the SDK move five."""
    with PlatformProcess(["--data-dir", str(tmp_path)]) as platform:
        s3 = own_bucket(platform, max_pool_connections=4)
        await s3("put_object", Key="warm", Body=bytes(8 * MIB))
        before = peak_memory(platform.pid)
        begun = await s3("create_multipart_upload", Key="big")
        part = bytes(64 * MIB)
        sent = [
            s3(
                "upload_part",
                Key="big",
                UploadId=begun["UploadId"],
                PartNumber=number,
                Body=part,
            )
            for number in range(1, 5)
        ]
        await asyncio.gather(*sent)
        await complete(s3, "big", begun["UploadId"])
        assert await s3.read("big", Range=f"bytes={200 * MIB}-{200 * MIB + 9}") == bytes(10)
        assert peak_memory(platform.pid) - before < 48 * MIB
        files = (tmp_path / "s3").iterdir()
        assert sum(file.stat().st_blocks for file in files) * 512 < 9 * MIB


def peak_memory(pid: int) -> int:
    """Return the most bytes that a process has had in memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")
