"""What ends an upload before its time: nothing is lost silently, nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from raw_server import Gate, RawServer, answer
from upload_requests import SMALL, digests, ids, later, receipt

from prime_traces import (
    APIError,
    AsyncTracesClient,
    Batch,
    BatchRejectedError,
    InvalidRecordError,
    UploadReceipt,
    ValidationRejectedError,
    iter_batches,
    partial_upload,
)
from prime_traces.records import encode_record

if TYPE_CHECKING:
    from conftest import MakeRecord, Stored


@pytest.mark.parametrize("attempts", [1, 2, 4])
async def test_a_batch_is_sent_as_often_as_asked_for(
    client: AsyncTracesClient,
    server: RawServer,
    make_record: MakeRecord,
    quick_retries: None,
    attempts: int,
) -> None:
    server.steps = [answer(500)]
    with pytest.raises(APIError) as caught:
        await client.upload_records([make_record(1)], max_attempts=attempts)
    assert caught.value.attempts == len(server.requests) == attempts
    partial = partial_upload(caught.value)
    assert partial is not None
    assert (partial.receipts, partial.next_line_number) == ([], 2)


async def test_a_rejected_batch_names_the_line_and_leaves_the_other_receipts(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord
) -> None:
    lines = [encode_record(make_record(number)) for number in range(200)]
    lines[60] = encode_record({**make_record(60), "timing": {"start": 5.0}})  # in 1970
    lines[50:50] = [b"\n", b" \r\n"]
    lines[10:10] = [b"\n"]
    told: list[str] = []
    with pytest.raises(BatchRejectedError) as caught:
        await uploader.upload_lines(
            lines, target_batch_bytes=SMALL, on_batch=lambda batch, _: told.append(batch.digest)
        )
    error = caught.value
    assert isinstance(error, ValidationRejectedError)
    assert error.line_number == 64
    assert lines[error.line_number - 1] == encode_record(
        {**make_record(60), "timing": {"start": 5.0}}
    )
    assert error.first_line_number <= 64 <= error.last_line_number
    assert "line 64" in str(error)
    assert error.code == "created_at_out_of_window"
    batches = list(iter_batches(lines, target_bytes=SMALL))
    [bad] = [batch for batch in batches if b'"start":5.0' in batch.data]
    before = [batch.digest for batch in batches[: batches.index(bad)]]
    # Those in flight were brought to their end, not abandoned.
    assert ids(error.receipts)[: len(before)] == before
    assert told == ids(error.receipts)
    assert stored.uploads() == sorted(ids(error.receipts))
    partial = partial_upload(error)
    assert partial is not None
    [failed] = partial.failed
    assert failed.upload_id == bad.digest
    assert (failed.first_line_number, failed.last_line_number) == (
        error.first_line_number,
        error.last_line_number,
    )
    # Nothing is unaccounted for: what follows was not sent.
    sent = {line for batch in batches for line in batch.data.splitlines(keepends=True)} - set(
        lines[partial.next_line_number - 1 :]
    )
    assert len(sent) == sum(stored.copies().values()) + bad.num_lines


async def test_a_refusal_that_names_no_line_names_the_lines_of_the_batch(
    client: AsyncTracesClient, server: RawServer, make_record: MakeRecord
) -> None:
    body = {"error": {"code": "digest_mismatch", "message": "not the bytes"}}
    server.steps = [answer(400, body)]
    with pytest.raises(BatchRejectedError, match="one of the lines 1 to 3") as caught:
        await client.upload_records([make_record(number) for number in range(3)])
    assert caught.value.line_number is None
    assert len(server.requests) == 1


@pytest.mark.parametrize("source", ["plain", "async"])
async def test_what_the_source_raises_says_what_was_stored(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord, source: str
) -> None:
    records = [make_record(number) for number in range(110)]

    def plain() -> Iterator[dict[str, Any]]:
        yield from records
        raise KeyError("the producer's")

    async def with_pauses() -> AsyncIterator[dict[str, Any]]:
        for record in plain():
            yield record

    items: Any = plain() if source == "plain" else with_pauses()
    with pytest.raises(KeyError, match="producer") as caught:
        await uploader.upload_records(items, target_batch_bytes=SMALL)
    partial = partial_upload(caught.value)
    assert partial is not None
    # Whole batches were stored; the last records, which another may join, were not.
    assert ids(partial.receipts) == digests(records)[:-1]
    assert set(stored.copies()) == {
        record["id"] for record in records[: partial.next_line_number - 1]
    }


@pytest.mark.parametrize("source", ["plain", "async"])
async def test_a_bad_record_is_named_before_its_batch_is_sent(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord, source: str
) -> None:
    records = [make_record(number) for number in range(110)]
    records[100]["loss"] = float("nan")
    items: Any = records if source == "plain" else later(records)
    with pytest.raises(InvalidRecordError, match=r"line 101: loss is nan") as caught:
        await uploader.upload_records(items, target_batch_bytes=SMALL)
    partial = partial_upload(caught.value)
    assert partial is not None
    assert partial.next_line_number <= 101
    assert set(stored.copies()) == {
        record["id"] for record in records[: partial.next_line_number - 1]
    }


async def test_a_bad_line_is_named_before_its_batch_is_sent(
    uploader: AsyncTracesClient, stored: Stored, tmp_path: Path, make_record: MakeRecord
) -> None:
    path = tmp_path / "rows.jsonl"
    row = b'{"prompt": "p", "completion": "c", "reward": 1.0}\n'
    path.write_bytes(b"\n" + encode_record(make_record(1)) + row)
    with pytest.raises(InvalidRecordError, match=r"line 3: .*legacy sample"):
        await uploader.upload_file(path)
    with pytest.raises(InvalidRecordError, match=r"line 2: .*UTF-8"):
        await uploader.upload_lines([encode_record(make_record(1)), b'{"id":"\xff"}\n'])
    assert not stored.copies()


async def test_what_on_batch_raises_ends_the_upload_and_its_batch_is_accounted_for(
    uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord
) -> None:
    records = [make_record(number) for number in range(200)]

    def on_batch(batch: Batch, receipt: UploadReceipt) -> None:
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="disk") as caught:
        await uploader.upload_records(records, target_batch_bytes=SMALL, on_batch=on_batch)
    partial = partial_upload(caught.value)
    assert partial is not None
    assert sorted(ids(partial.receipts)) == stored.uploads()
    assert partial.failed == []
    assert 0 < len(partial.receipts) < len(digests(records))


@pytest.mark.parametrize("source", ["file", "generator", "async"])
async def test_cancellation_lets_go_of_everything(
    client: AsyncTracesClient,
    server: RawServer,
    make_record: MakeRecord,
    tmp_path: Path,
    source: str,
) -> None:
    server.steps = [Gate().before(receipt)]
    lines = [encode_record(make_record(number)) for number in range(500)]
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b"".join(lines))
    closed: list[bool] = []

    def generator() -> Iterator[bytes]:
        try:
            yield from lines
        finally:
            closed.append(True)

    async def async_generator() -> AsyncIterator[bytes]:
        try:
            for line in lines:
                yield line
        finally:
            closed.append(True)

    threads = threading.active_count()
    tasks = len(asyncio.all_tasks())
    upload: Awaitable[list[UploadReceipt]]
    if source == "file":
        upload = client.upload_file(path, target_batch_bytes=SMALL)
    else:
        items: Any = generator() if source == "generator" else async_generator()
        upload = client.upload_lines(items, target_batch_bytes=SMALL)
        del items
    uploading = asyncio.ensure_future(upload)
    del upload
    await server.arrived(4)
    uploading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    assert len(asyncio.all_tasks()) == tasks
    if source == "file":
        assert str(path) not in {str(each) for each in open_files()}
    else:
        del uploading  # what was raised holds the caller's own generator, and asyncio that
        await asyncio.sleep(0.01)
        gc.collect()
        assert closed == [True]
    for _ in range(100):
        if threading.active_count() <= threads:
            break
        await asyncio.sleep(0.01)
    assert threading.active_count() <= threads
    assert len(server.requests) == 4


def open_files() -> Iterator[Path]:
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield link.readlink()
        except OSError:
            continue


async def test_a_source_that_goes_on_for_ever_stops_with_its_upload(
    client: AsyncTracesClient, server: RawServer, make_record: MakeRecord
) -> None:
    taken = 0
    begun = threading.Event()

    def records() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            if taken == 100:
                begun.set()
            yield make_record(taken)

    uploading = asyncio.create_task(client.upload_records(records()))
    await asyncio.to_thread(begun.wait, 10)
    uploading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    before = taken
    await asyncio.sleep(0.1)
    assert taken == before
    assert server.requests == []
