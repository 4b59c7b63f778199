"""What ends an upload from outside says what was stored and of which batches that is not known."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from raw_server import Gate, RawServer
from upload_requests import SMALL, digests, ids, receipt

from prime_traces import (
    AsyncTracesClient,
    PartialUpload,
    TracesClient,
    partial_upload,
)

if TYPE_CHECKING:
    from conftest import MakeRecord

KEY = "pit_c0ffee-0123456789-secret"


def records_of(make_record: MakeRecord) -> list[dict[str, Any]]:
    return [make_record(number) for number in range(500)]


def check(partial: PartialUpload | None, records: list[dict[str, Any]], begun: int) -> None:
    """Two batches are stored, the rest of those that were begun were in flight."""
    assert partial is not None
    batches = digests(records)
    assert sorted(ids(partial.receipts)) == sorted(batches[:2])
    assert [failed.upload_id for failed in partial.failed] == batches[2:begun]
    assert {failed.error for failed in partial.failed} == {
        "it was broken off: whether it is stored is not known"
    }
    assert partial.next_line_number == partial.failed[-1].last_line_number + 1


async def in_flight(server: RawServer) -> None:
    """Returns once two batches are stored and four more are on their way."""
    await server.arrived(6)


@pytest.fixture
def stuck(server: RawServer) -> RawServer:
    server.steps = [receipt, receipt, Gate().before(receipt)]
    return server


@pytest.mark.parametrize("caught_in", ["caller", "task", "wait_for"])
async def test_a_cancelled_upload_says_what_was_stored(
    client: AsyncTracesClient, stuck: RawServer, make_record: MakeRecord, caught_in: str
) -> None:
    records = records_of(make_record)
    caught: list[BaseException] = []

    async def upload() -> None:
        try:
            await client.upload_records(records, target_batch_bytes=SMALL)
        except BaseException as error:
            if caught_in == "task":
                caught.append(error)
            raise

    if caught_in == "wait_for":
        with pytest.raises(asyncio.TimeoutError) as timeout:
            await asyncio.wait_for(upload(), 1.0)
        caught.append(timeout.value)
    else:
        task = asyncio.create_task(upload())
        await in_flight(stuck)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        if caught_in == "caller":
            caught.append(cancelled.value)
    [error] = caught
    check(partial_upload(error), records, 6)


def test_ctrl_c_in_a_sync_upload_says_what_was_stored(
    stuck: RawServer, make_record: MakeRecord
) -> None:
    records = records_of(make_record)

    def interrupt() -> None:
        asyncio.run(in_flight(stuck))
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with (
        TracesClient(api_key=KEY, base_url=stuck.url) as client,
        pytest.raises(KeyboardInterrupt) as caught,
    ):
        client.upload_records(records, target_batch_bytes=SMALL)
    interrupting.join()
    check(partial_upload(caught.value), records, 6)


class Stop(BaseException):
    """Neither an Exception nor one that asyncio knows."""


@pytest.mark.parametrize("kind", [Stop, asyncio.CancelledError])
@pytest.mark.parametrize("source", ["plain", "async"])
async def test_what_the_source_raises_that_is_no_exception_says_what_was_stored(
    client: AsyncTracesClient,
    server: RawServer,
    make_record: MakeRecord,
    kind: type[BaseException],
    source: str,
) -> None:
    server.steps = [receipt]
    records = records_of(make_record)

    def plain() -> Iterator[dict[str, Any]]:
        yield from records
        raise kind("enough")

    async def with_pauses() -> AsyncIterator[dict[str, Any]]:
        for record in plain():
            yield record

    items: Any = plain() if source == "plain" else with_pauses()
    with pytest.raises(kind) as caught:
        await client.upload_records(items, target_batch_bytes=SMALL)
    partial = partial_upload(caught.value)
    assert partial is not None
    accounted = ids(partial.receipts) + [failed.upload_id for failed in partial.failed]
    begun = len(accounted)
    assert sorted(accounted) == sorted(digests(records)[:begun])
    assert begun > 10


@pytest.mark.parametrize(
    "kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError], ids=lambda kind: kind.__name__
)
def test_an_interrupt_out_of_the_records_of_a_sync_upload_says_what_was_stored(
    server: RawServer, make_record: MakeRecord, kind: type[BaseException]
) -> None:
    server.steps = [receipt]
    records = records_of(make_record)

    def source() -> Iterator[dict[str, Any]]:
        yield from records
        raise kind

    with TracesClient(api_key=KEY, base_url=server.url) as client:
        with pytest.raises((kind, concurrent.futures.CancelledError)) as caught:
            client.upload_records(source(), target_batch_bytes=SMALL)
        partial = partial_upload(caught.value)
        assert partial is not None
        assert len(partial.receipts) + len(partial.failed) > 10
        assert len(client.upload_records(records[:1])) == 1  # the client goes on


async def test_what_progress_raises_says_what_was_stored(
    client: AsyncTracesClient, server: RawServer, make_record: MakeRecord
) -> None:
    server.steps = [receipt]

    def progress(done: int, total: int | None) -> None:
        if done >= at:
            raise RuntimeError("the bar is broken")

    for at in (0, 1):
        with pytest.raises(RuntimeError, match="bar") as caught:
            await client.upload_records(
                records_of(make_record), target_batch_bytes=SMALL, progress=progress
            )
        partial = partial_upload(caught.value)
        assert partial is not None
        assert (len(partial.receipts) > 0) == (at == 1)
