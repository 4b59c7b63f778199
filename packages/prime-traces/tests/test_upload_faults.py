"""Whatever the network and the service do, every record is stored, and none twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from raw_server import RawServer, Received, Wire
from upload_requests import SMALL, digests, ids, later, lines_of, receipt

from prime_local import FaultRule, LocalPlatform
from prime_traces import AsyncTracesClient, TracesClient

if TYPE_CHECKING:
    from conftest import MakeRecord, Stored

UPLOAD = "upload_traces"
WAIT = {"Retry-After": "0"}
RATE = 0.025  # of the requests, for each of four ways to break one


def faults(seed: int) -> list[FaultRule]:
    return [
        FaultRule(UPLOAD, probability=RATE, seed=seed, reset="before_commit"),
        FaultRule(UPLOAD, probability=RATE, seed=seed + 1, reset="after_commit"),
        # While it is answered: committed, but the receipt is cut short.
        FaultRule(UPLOAD, probability=RATE, seed=seed + 2, truncate=10),
        FaultRule(UPLOAD, probability=RATE, seed=seed + 3, bad_chunk=5),
        FaultRule(UPLOAD, probability=RATE, seed=seed + 4, status=429, headers=WAIT),
        FaultRule(UPLOAD, probability=RATE, seed=seed + 5, status=503, headers=WAIT),
        FaultRule(UPLOAD, probability=RATE, seed=seed + 6, status=502, body="bad gateway"),
    ]


@pytest.fixture(autouse=True)
def quick(quick_retries: None) -> None:
    pass


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_record_is_stored_once_under_faults(
    platform: LocalPlatform,
    uploader: AsyncTracesClient,
    stored: Stored,
    make_record: MakeRecord,
    seed: int,
) -> None:
    platform.add_faults(*faults(seed * 100))
    records = [make_record(number) for number in range(6000)]
    receipts = await uploader.upload_records(
        later(records), target_batch_bytes=SMALL, max_in_flight=8
    )
    assert ids(receipts) == digests(records)
    assert stored.copies() == {record["id"]: 1 for record in records}
    ledger = platform.ledger()
    assert ledger["requests"][UPLOAD] > len(receipts) * 1.1


async def test_the_sync_client_stores_every_record_once_under_faults(
    platform: LocalPlatform, stored: Stored, make_record: MakeRecord
) -> None:
    platform.add_faults(*faults(7))
    records = [make_record(number) for number in range(1500)]

    def upload() -> list[str]:
        with TracesClient() as client:
            return ids(client.upload_records(records, target_batch_bytes=SMALL))

    assert await asyncio.to_thread(upload) == digests(records)
    assert stored.copies() == {record["id"]: 1 for record in records}


async def test_an_upload_that_breaks_off_is_completed_by_another(
    platform: LocalPlatform, uploader: AsyncTracesClient, stored: Stored, make_record: MakeRecord
) -> None:
    records = [make_record(number) for number in range(1000)]
    platform.add_faults(FaultRule(UPLOAD, nth=10, delay_before=5.0))
    uploading = asyncio.create_task(
        uploader.upload_records(records, target_batch_bytes=SMALL, max_in_flight=2)
    )
    while platform.ledger()["requests"].get(UPLOAD, 0) < 10:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    uploading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    platform.clear_faults()
    receipts = await uploader.upload_records(records, target_batch_bytes=SMALL)
    assert ids(receipts) == digests(records)
    assert stored.copies() == {record["id"]: 1 for record in records}


async def test_a_connection_reset_while_a_body_is_sent_sends_all_of_it_again(
    client: AsyncTracesClient, server: RawServer, make_record: MakeRecord
) -> None:
    async def break_off(wire: Wire, request: Received) -> None:
        await wire.reader.read(65_536)
        wire.reset()

    async def take(wire: Wire, request: Received) -> None:
        request.body = await wire.reader.readexactly(int(request.headers["content-length"]))
        await receipt(wire, request)

    server.read_bodies = False
    server.steps = [break_off, break_off, take]
    records = [make_record(number, text="x" * 1000) for number in range(10_000)]
    receipts = await client.upload_records(records, compress=False)
    assert ids(receipts) == digests(records, 30 * 1024 * 1024)
    assert len(server.requests) == 3
    assert len(lines_of(server.requests[2])) == len(records)
