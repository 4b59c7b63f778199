"""Uploads of traces that are repeated, doubled, reset and killed: stored once, whole or not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from trace_uploads import (
    BOUNDARY,
    Uploads,
    ids,
    key_of,
    lines,
    multipart,
    parts,
    record,
    rows,
)

from prime_local import FaultRule, LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def platform(open_platform: OpenPlatform, tmp_path: Path) -> tuple[LocalPlatform, Uploads]:
    running, client = await open_platform(data_dir=tmp_path)
    return running, Uploads(client)


@pytest.fixture
def uploads(platform: tuple[LocalPlatform, Uploads]) -> Uploads:
    return platform[1]


def episode(episode_id: Any = "e1", *traces: Any, **fields: Any) -> dict[str, Any]:
    return {"id": episode_id, "traces": list(traces), **fields}


def batch(name: str) -> bytes:
    return lines(*(record(f"{name}-{number}", note="x" * 20_000) for number in range(20)))


async def test_a_repeat_gets_the_receipt_and_stores_nothing(
    platform: tuple[LocalPlatform, Uploads], tmp_path: Path
) -> None:
    running, uploads = platform
    data = lines(record("a"))
    first = await uploads.send(data)
    before = rows(tmp_path, "SELECT * FROM traces")
    await running.advance(60)
    context = b'{"schema_version":1,"context":{"other":"words"}}'
    assert await uploads.send(data, form=parts(data, context)) == first
    assert rows(tmp_path, "SELECT * FROM traces") == before
    assert len(rows(tmp_path, "SELECT * FROM uploads")) == 1


async def test_the_same_bytes_in_another_format_conflict(uploads: Uploads) -> None:
    data = b"\n"
    assert (await uploads.send(data)).status == 201
    error = (await uploads.send(data, line_format="episode")).error
    assert error == "409 line_format_conflict: upload already exists with line format 'trace'"
    assert (await uploads.send(data, line_format="episode", team="other")).status == 201


async def test_a_rejected_key_is_not_remembered(
    platform: tuple[LocalPlatform, Uploads], tmp_path: Path
) -> None:
    running, uploads = platform
    data = lines(record("early", timing={"start": time.time() + 400}))
    assert (await uploads.send(data)).status == 400
    await running.advance(200)
    assert (await uploads.send(data)).status == 201
    assert ids(tmp_path) == ["early"]


async def test_copies_are_counted_and_the_last_is_the_newest(
    uploads: Uploads, tmp_path: Path
) -> None:
    for number in range(3):
        await uploads.stored(record("a", number=number), record(f"b{number}"))
        await uploads.stored(episode("e", record("c", number=number)), line_format="episode")
    query = "SELECT generation, newest, document FROM traces JOIN documents ON trace = id"
    found = rows(tmp_path, query + " WHERE trace_id = 'a' ORDER BY id")
    assert [(row["generation"], row["newest"]) for row in found] == [(1, 0), (2, 0), (3, 1)]
    assert json.loads(found[2]["document"])["number"] == 2
    found = rows(tmp_path, "SELECT generation, newest FROM episodes ORDER BY id")
    assert [tuple(row.values()) for row in found] == [(1, 0), (2, 0), (3, 1)]


async def test_one_batch_sent_eight_times_at_once_is_stored_once(
    uploads: Uploads, tmp_path: Path
) -> None:
    data = lines(*(record(f"t{number}", note="x" * 2000) for number in range(500)))
    outcomes = await asyncio.gather(*(uploads.send(data) for _ in range(8)))
    assert {outcome.status for outcome in outcomes} == {201}
    assert len({outcome.body["upload_id"] for outcome in outcomes}) == 1
    found = rows(tmp_path, "SELECT count(*) AS n, max(generation) AS g FROM traces")
    assert found == [{"n": 500, "g": 1}]


async def test_a_reset_before_or_after_the_commit_stores_none_or_all(
    platform: tuple[LocalPlatform, Uploads], tmp_path: Path
) -> None:
    running, uploads = platform
    for moment, stored in (("before_commit", []), ("after_commit", ["after_commit"])):
        rule = FaultRule(operation="upload_traces", reset=moment, times=1)  # type: ignore[arg-type]
        running.add_faults(rule)
        with pytest.raises(aiohttp.ClientConnectionError):
            await uploads.stored(record(moment))
        assert ids(tmp_path) == stored


async def test_a_sender_that_leaves_stores_nothing(
    platform: tuple[LocalPlatform, Uploads], tmp_path: Path
) -> None:
    running, uploads = platform
    data = lines(record("a"))
    host, port = running.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = (
        "POST /traces/api/v1/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
        f"Authorization: Bearer {running.api_key}\r\nIdempotency-Key: {key_of(data)}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
    )
    writer.write(head.encode() + multipart(parts(data)))
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.transport.abort()
    await uploads.stored(record("b"))
    assert ids(tmp_path) == ["b"]


async def test_a_receipt_outlives_a_kill_and_no_upload_is_half_stored(
    tmp_path: Path, helpers: Any
) -> None:
    batches = {f"b{number}": batch(f"b{number}") for number in range(24)}
    receipts: list[str] = []

    async def send(name: str) -> None:
        with contextlib.suppress(aiohttp.ClientError):
            if (await uploads.send(batches[name])).status == 201:
                receipts.append(name)
                if len(receipts) == 4:
                    os.kill(server.pid, signal.SIGKILL)

    with PlatformProcess(["--data-dir", str(tmp_path)], isolation="process") as server:
        async with helpers.client_of(server) as client:
            uploads = Uploads(client)
            await asyncio.gather(*map(send, batches))
    assert 4 <= len(receipts) < len(batches)

    with PlatformProcess(["--data-dir", str(tmp_path)], isolation="process") as server:
        sizes = {
            name: sum(each.startswith(f"{name}-") for each in ids(tmp_path)) for name in batches
        }
        assert {sizes[name] for name in receipts} == {20}
        assert set(sizes.values()) <= {0, 20}
        async with helpers.client_of(server) as client:
            uploads = Uploads(client)
            for name in batches:
                assert (await uploads.send(batches[name])).status == 201
        assert len(ids(tmp_path)) == 20 * len(batches)
        server.reset()
        assert ids(tmp_path) == []
        assert rows(tmp_path, "SELECT * FROM uploads") == []


async def test_leaving_a_platform_in_the_middle_of_an_upload(tmp_path: Path, helpers: Any) -> None:
    data = lines(*(record(f"t{number}", note="x" * 100_000) for number in range(600)))
    status = 0
    async with contextlib.AsyncExitStack() as leaving:
        running = await leaving.enter_async_context(LocalPlatform(data_dir=tmp_path))
        async with helpers.client_of(running) as client:
            sending = asyncio.create_task(Uploads(client).send(data))
            # The writer has begun, as soon as what it writes begins to fill the log.
            log = tmp_path / "traces.sqlite3-wal"
            while log.stat().st_size < 1_000_000:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            await leaving.aclose()
            with contextlib.suppress(aiohttp.ClientError):
                status = (await sending).status
    async with LocalPlatform(data_dir=tmp_path):
        assert len(ids(tmp_path)) in {0: (0, 600), 201: (600,), 503: (0,)}[status]


async def test_the_loop_goes_on_while_an_upload_is_stored(uploads: Uploads) -> None:
    data = lines(*(record(f"t{number}", note="x" * 100_000) for number in range(300)))
    longest = 0.0
    sending = asyncio.create_task(uploads.send(data))
    while not sending.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)
    assert (await sending).status == 201
    assert longest < 1.0
