"""Records, lines and files arrive in batches; what fails says what was stored."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from raw_server import Gate, RawServer, answer, reset
from upload_requests import SMALL, digests, ids, later, lines_of, receipt

from prime_local import FaultRule, LocalPlatform
from prime_traces import (
    AsyncTracesClient,
    Batch,
    LineFormat,
    LineFormatConflictError,
    TracesClient,
    UploadReceipt,
    iter_batches,
    partial_upload,
)
from prime_traces.records import encode_record

if TYPE_CHECKING:
    from conftest import MakeRecord, Stored


class Rollout:
    """What a producer makes; it knows which thread asked it for its record."""

    threads: ClassVar[set[int]] = set()

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record

    def to_record(self) -> dict[str, Any]:
        self.threads.add(threading.get_ident())
        return self._record


SOURCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "generator": lambda items: (item for item in items),
    "async generator": later,
    "objects": lambda items: [Rollout(item) for item in items],
    "async objects": lambda items: later([Rollout(item) for item in items]),
}


@pytest.mark.parametrize("source", SOURCES)
async def test_every_record_is_stored_once_and_receipts_come_in_order(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord, source: str
) -> None:
    records = [make_record(number) for number in range(500)]
    Rollout.threads.clear()
    receipts = await uploader.upload_records(SOURCES[source](records), target_batch_bytes=SMALL)
    assert ids(receipts) == digests(records)
    assert len(receipts) > 10
    assert {each.status for each in receipts} == {"committed"}
    assert stored.copies() == {record["id"]: 1 for record in records}
    # Records are made into lines in threads, so that the event loop goes on.
    assert threading.get_ident() not in Rollout.threads


async def test_the_same_upload_again_stores_nothing_twice(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord
) -> None:
    records = [make_record(number) for number in range(100)]
    first = await uploader.upload_records(records, target_batch_bytes=SMALL)
    again = await uploader.upload_records(
        iter(records), target_batch_bytes=SMALL, compress=False, max_in_flight=1
    )
    assert again == first
    assert stored.copies() == {record["id"]: 1 for record in records}


async def test_a_sync_client_uploads_records_lines_and_files(
    platform: LocalPlatform, stored: Stored, make_record: MakeRecord, tmp_path: Path
) -> None:
    records = [make_record(number) for number in range(90)]
    lines = [encode_record(record) for record in records]
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"".join(lines[60:]))
    told: list[tuple[int, int]] = []

    def on_batch(batch: Batch, receipt: UploadReceipt) -> None:
        [again] = client.upload_lines([batch.data])  # a callback may use the client
        assert again == receipt
        assert batch.digest == receipt.upload_id
        told.append((batch.first_line_number, batch.num_lines))

    def upload() -> list[UploadReceipt]:
        with client:
            return [
                *client.upload_records(iter(records[:30]), on_batch=on_batch),
                *client.upload_lines(iter(lines[30:60]), on_batch=on_batch),
                *client.upload_file(str(path), on_batch=on_batch, context={"source": "test"}),
            ]

    client = TracesClient()
    receipts = await asyncio.to_thread(upload)
    assert sorted(ids(receipts)) == stored.uploads()
    assert told == [(1, 30)] * 3
    assert stored.copies() == {record["id"]: 1 for record in records}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_a_file_is_uploaded_as_it_is(
    uploader: AsyncTracesClient,
    stored: Stored,
    make_record: MakeRecord,
    tmp_path: Path,
    end: bytes,
) -> None:
    path = tmp_path / "traces.jsonl"
    records = [make_record(number) for number in range(40)]
    lines = [json.dumps(record).encode() + end for record in records]
    path.write_bytes((end * 2).join(lines) + b" \t" + end + lines[0].replace(b"000000", b"x")[:-1])
    receipts = await uploader.upload_file(path, target_batch_bytes=SMALL)
    batches = list(iter_batches(path.open("rb"), target_bytes=SMALL))
    assert ids(receipts) == [batch.digest for batch in batches]
    assert sum(batch.num_lines for batch in batches) == 41
    assert stored.copies() == {**{record["id"]: 1 for record in records}, "tr-x": 1}


async def test_nothing_gives_no_receipts(uploader: AsyncTracesClient, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"")
    assert await uploader.upload_file(path) == []
    assert await uploader.upload_lines([b"\n", b" \r\n"]) == []
    assert await uploader.upload_records(later([])) == []


async def test_a_file_that_is_missing_is_said_so(uploader: AsyncTracesClient) -> None:
    with pytest.raises(FileNotFoundError):
        await uploader.upload_file("nowhere.jsonl")


async def test_episodes_are_uploaded_as_such(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord
) -> None:
    episode = {"id": "ep-1", "traces": [make_record(1), make_record(2)]}
    await uploader.upload_records([Rollout(episode)], line_format=LineFormat.EPISODE)
    assert stored.episodes() == ["ep-1"]
    assert stored.copies() == {"tr-000001": 1, "tr-000002": 1}


async def test_agent_sessions_are_uploaded_as_such(
    client: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [receipt]
    session: Any = [{"type": "session", "id": "s-1"}, {"type": "message"}]
    await client.upload_records([session], line_format="prime_agent")
    (request,) = server.requests
    assert request.headers["x-prime-line-format"] == "prime_agent"
    assert [json.loads(line) for line in lines_of(request)] == [session]


async def test_the_same_bytes_in_another_format_are_a_conflict(
    uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    line = json.dumps({**make_record(1), "traces": []}).encode()
    await uploader.upload_lines([line], line_format=LineFormat.EPISODE)
    with pytest.raises(LineFormatConflictError) as caught:
        await uploader.upload_lines([line])
    partial = partial_upload(caught.value)
    assert partial is not None
    assert [batch.first_line_number for batch in partial.failed] == [1]


@pytest.mark.parametrize("kind", ["plain", "async", "object"])
async def test_on_batch_is_told_in_order_even_when_a_batch_is_late(
    platform: LocalPlatform, uploader: AsyncTracesClient, make_record: MakeRecord, kind: str
) -> None:
    platform.add_faults(FaultRule("upload_traces", nth=1, delay_before=0.3))
    told: list[str] = []
    busy: list[bool] = []

    def note(batch: Batch, receipt: UploadReceipt) -> None:
        assert receipt.upload_id == batch.digest
        told.append(batch.digest)

    async def note_later(batch: Batch, receipt: UploadReceipt) -> None:
        assert not busy
        busy.append(True)
        await asyncio.sleep(0.001)
        busy.clear()
        note(batch, receipt)

    class Noting:
        async def __call__(self, batch: Batch, receipt: UploadReceipt) -> None:
            note(batch, receipt)

    on_batch: Any = {"plain": note, "async": note_later, "object": Noting()}[kind]
    records = [make_record(number) for number in range(200)]
    receipts = await uploader.upload_records(records, target_batch_bytes=SMALL, on_batch=on_batch)
    assert told == ids(receipts) == digests(records)


async def test_several_batches_are_in_flight_but_no_more_than_asked_for(
    client: AsyncTracesClient, server: RawServer, make_record: MakeRecord
) -> None:
    gate = Gate()
    server.steps = [gate.before(receipt)]
    taken = 0

    def records() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for number in range(500):
            taken += 1
            yield make_record(number)

    uploading = asyncio.create_task(
        client.upload_records(records(), target_batch_bytes=SMALL, max_in_flight=3)
    )
    await server.arrived(3)
    await asyncio.sleep(0.2)
    assert len(server.requests) == 3
    # Records are taken as batches are needed, not ahead of them.
    assert taken == sum(len(lines_of(request)) for request in server.requests) + 1
    gate.open()
    receipts = await uploading
    assert sorted(ids(receipts)) == sorted(
        request.headers["idempotency-key"].removeprefix("sha256:") for request in server.requests
    )


async def test_batches_in_memory_are_bounded_in_total(
    client: AsyncTracesClient,
    server: RawServer,
    make_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_traces.uploading.MEMORY", 2 * SMALL + 10)
    gate = Gate()
    server.steps = [gate.before(receipt)]
    records = [make_record(number) for number in range(200)]
    uploading = asyncio.create_task(
        client.upload_records(records, target_batch_bytes=SMALL, compress=False, max_in_flight=8)
    )
    await server.arrived(2)
    await asyncio.sleep(0.2)
    assert len(server.requests) == 2
    gate.open()
    assert ids(await uploading) == digests(records)


@pytest.mark.parametrize("compress", [True, False])
async def test_a_batch_is_sent_again_byte_for_byte(
    client: AsyncTracesClient,
    server: RawServer,
    make_record: MakeRecord,
    quick_retries: None,
    compress: bool,
) -> None:
    server.steps = [reset(), answer(503), answer(429, None, Retry_After="0"), receipt]
    records = [make_record(number) for number in range(20)]
    receipts = await client.upload_records(records, compress=compress)
    assert ids(receipts) == digests(records, 30 * 1024 * 1024)
    assert len(server.requests) == 4
    assert len({request.body for request in server.requests}) == 1
    assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
    assert lines_of(server.requests[3]) == [encode_record(record) for record in records]


async def test_progress_is_told_of_what_is_stored(
    uploader: AsyncTracesClient, make_record: MakeRecord, tmp_path: Path
) -> None:
    told: list[Any] = []
    records = [make_record(number) for number in range(100)]
    lines = b"".join(encode_record(record) for record in records)
    await uploader.upload_records(
        records, target_batch_bytes=SMALL, progress=lambda *each: told.append(each)
    )
    assert told[0] == (0, None)
    assert told[-1] == (len(lines), None)
    assert told == sorted(told)
    assert len(told) > 4
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"\n" + lines)
    told.clear()
    await uploader.upload_file(path, progress=lambda *each: told.append(each))
    assert told[0] == (0, len(lines) + 1)
    assert told[-1] == (len(lines) + 1, len(lines) + 1)


async def test_a_progress_bar_is_no_trouble_where_nobody_sees_it(
    uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    assert len(await uploader.upload_records([make_record(1)], progress=True)) == 1


@pytest.mark.parametrize(
    ("options", "error", "about"),
    [
        ({"target_batch_bytes": 0}, ValueError, "target"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"max_in_flight": 0}, ValueError, "max_in_flight"),
        ({"max_in_flight": 9}, ValueError, "max_in_flight"),
        ({"line_format": "parquet"}, ValueError, "parquet"),
        ({"context": {"source": 1}}, TypeError, "source"),
        ({"context": "source"}, TypeError, "context"),
        ({"context": {1: "source"}}, TypeError, "names are strings; 1 is"),
        ({"context": {"source": "\ud800"}}, ValueError, "half a character"),
        ({"context": {"source": "x" * 70_000}}, ValueError, "context has 70,"),
        ({"schema_version": "1"}, TypeError, "schema_version"),
        ({"schema_version": 2}, ValueError, "schema_version is 1"),
        ({"target_batch_bytes": 1e6}, ValueError, "target"),
        ({"compress": "no"}, TypeError, "compress"),
        ({"progress": "yes"}, TypeError, "progress"),
        ({"progress": lambda: None}, TypeError, "progress is called with"),
        ({"on_batch": 5}, TypeError, "on_batch"),
        ({"on_batch": lambda batch: None}, TypeError, "on_batch is called with"),
    ],
)
async def test_a_bad_argument_is_named_before_anything_is_read(
    client: AsyncTracesClient,
    server: RawServer,
    options: dict[str, Any],
    error: type[Exception],
    about: str,
) -> None:
    def records() -> Iterator[dict[str, Any]]:
        raise AssertionError
        yield

    with pytest.raises(error, match=about):
        await client.upload_records(records(), **options)
    assert server.requests == []


async def test_what_holds_no_records_is_refused(client: AsyncTracesClient) -> None:
    trace: Any = {"id": "tr-1", "timing": {"start": 1}}
    path: Any = "traces.jsonl"
    number: Any = 5
    for wrong in (trace, path, number):
        with pytest.raises(TypeError, match="records is an iterable"):
            await client.upload_records(wrong)
    with pytest.raises(TypeError, match="upload_file"):
        await client.upload_lines(path)
    with pytest.raises(TypeError, match="lines is an iterable"):
        await client.upload_lines(trace)
    text: Any = io.StringIO("{}\n")
    with pytest.raises(TypeError, match="bytes, not str"):
        await client.upload_lines(text)


async def test_without_the_fast_extra_the_same_is_stored(
    platform: LocalPlatform, stored: Stored, make_record: MakeRecord
) -> None:
    records = [make_record(number, loss=1e-7 * number, text="\u00e9") for number in range(50)]
    program = f"""
import sys
sys.modules["orjson"] = sys.modules["isal"] = sys.modules["isal.isal_zlib"] = None
from prime_traces import TracesClient
with TracesClient() as client:
    for receipt in client.upload_records({records!r}, target_batch_bytes={SMALL}):
        print(receipt.upload_id)
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert output.decode().split() == digests(records)
    assert stored.copies() == {record["id"]: 1 for record in records}
