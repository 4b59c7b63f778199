"""A spool says when it can't upload, why, and goes on when it can."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from spools import Arrived, trace, until, waiting

from prime_core.errors import (
    APIError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    UnauthorizedError,
)
from prime_local import FaultRule
from prime_traces import AsyncTracesAPIClient, AsyncTraceSpool


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (401, UnauthorizedError),
        (402, PaymentRequiredError),
        (403, ForbiddenError),
        (404, NotFoundError),
    ],
)
async def test_a_refused_account_pauses_the_spool_until_it_is_accepted(
    arrived: Arrived, tmp_path: Path, status: int, error: type[APIError]
) -> None:
    body = json.dumps({"error": {"code": "some_code", "message": "not now"}})
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=status, body=body))
    async with AsyncTraceSpool(tmp_path / "spool", max_delay=0) as spool:
        await spool.append(trace("one"))
        await until(spool, "paused")
        stats = spool.stats
        assert isinstance(stats.error, error)
        assert stats.pending == 1
        requests = arrived.requests
        await spool.append(trace("two"))  # is taken all the same
        await asyncio.sleep(0.2)
        assert arrived.requests == requests
        with pytest.raises(error, match="not now"):
            await spool.flush()
        arrived.platform.clear_faults()
        assert await spool.flush()
        assert spool.state == "idle"
        assert spool.stats.error is None
    assert arrived.ids() == {"one": 1, "two": 1}


async def test_a_missing_key_pauses_the_spool_and_keeps_the_records(
    arrived: Arrived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIME_API_KEY")
    spool = AsyncTraceSpool(tmp_path / "spool", max_delay=0)
    await spool.append(trace("one"))
    await until(spool, "paused")
    assert "No API key" in str(spool.stats.error)
    assert (await spool.aclose()).pending == 1
    api = AsyncTracesAPIClient(arrived.platform.api_key)
    async with api, AsyncTraceSpool(tmp_path / "spool", api):
        pass
    assert arrived.ids() == {"one": 1}


async def test_an_outage_is_retried_for_as_long_as_it_lasts(
    arrived: Arrived, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500, times=7))
    async with AsyncTraceSpool(tmp_path / "spool", max_delay=0) as spool:
        await spool.append(trace("one"))
        await until(spool, "retrying")
        assert spool.stats.pending == 1
        await until(spool, "idle")
    assert arrived.ids() == {"one": 1}
    assert caplog.text.count("stay there for now") == 1  # said once, not at each try


async def test_a_receipt_of_something_else_is_no_receipt(arrived: Arrived, tmp_path: Path) -> None:
    body = json.dumps({"upload_id": "0" * 64, "status": "committed"})
    arrived.platform.add_faults(
        FaultRule(operation="upload_traces", status=200, body=body, times=1)
    )
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("one"))
        assert await spool.flush()
    assert arrived.ids() == {"one": 1}
    assert arrived.requests == 2


async def test_a_cancelled_flush_leaves_the_upload_alone(arrived: Arrived, tmp_path: Path) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", delay_before=0.3, times=1))
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("one"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(spool.flush(), 0.1)
        assert await spool.flush()
    assert arrived.requests == 1


async def test_a_cancelled_close_ends_soon_and_frees_the_directory(
    arrived: Arrived, tmp_path: Path
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", delay_before=30.0, times=1))
    directory = tmp_path / "spool"
    spool = AsyncTraceSpool(directory, max_delay=0)
    await spool.append(trace("one"))
    closing = asyncio.create_task(spool.aclose(timeout=60))
    await asyncio.sleep(0.2)
    began = asyncio.get_running_loop().time()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert asyncio.get_running_loop().time() - began < 2
    assert len(waiting(directory)) == 1
    async with AsyncTraceSpool(directory) as spool:
        assert await spool.flush()
    assert arrived.ids() == {"one": 1}


async def test_a_cancelled_append_is_written_whole_or_not_at_all(
    arrived: Arrived, tmp_path: Path
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        tasks = [asyncio.create_task(spool.append(trace(f"t{n}"))) for n in range(200)]
        for number, task in enumerate(tasks):
            if number % 2:
                await asyncio.sleep(0)
                task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        confirmed = {f"t{n}" for n, result in enumerate(done) if result is None}
        await spool.flush()
    copies = arrived.ids()
    assert confirmed <= set(copies)
    assert set(copies.values()) == {1}
