"""A spool's records arrive, each of them once, and it says where they are."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
from spools import Arrived, trace, waiting

from prime_local import FaultRule
from prime_traces import (
    AsyncTracesAPIClient,
    AsyncTracesClient,
    AsyncTraceSpool,
    LineFormat,
    SpoolClosedError,
    SpoolError,
    TracesAPIClient,
    TraceSpool,
)
from prime_traces.errors import InvalidRecordError


async def test_what_is_appended_arrives_and_leaves_the_disk(
    arrived: Arrived, tmp_path: Path
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        for number in range(5):
            await spool.append(trace(f"t{number}"))
        assert await spool.flush()
        assert arrived.in_order() == [f"t{number}" for number in range(5)]
        stats = spool.stats
    assert (stats.appended, stats.uploaded, stats.pending) == (5, 5, 0)
    assert waiting(tmp_path / "spool") == []
    assert arrived.requests == 1
    assert spool.state == "closed"


async def test_mappings_objects_and_lines_of_bytes_are_records(
    arrived: Arrived, tmp_path: Path
) -> None:
    class Rollout:
        def to_record(self) -> dict[str, Any]:
            return trace("object")

    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        await spool.append(trace("mapping"))
        await spool.append(Rollout())
        await spool.append(json.dumps(trace("without line feed")).encode())
        await spool.append(json.dumps(trace("with line feed")).encode() + b"\n")
    assert arrived.in_order() == ["mapping", "object", "without line feed", "with line feed"]


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"id": "a"}, InvalidRecordError),
        (trace("a", score=float("nan")), InvalidRecordError),
        (b'{"id": "a"}', InvalidRecordError),
        (b"\n", InvalidRecordError),
        (b"{}\n{}\n", ValueError),
        ("text", TypeError),
    ],
)
async def test_what_is_no_record_is_refused_before_it_is_written(
    arrived: Arrived, tmp_path: Path, record: Any, error: type[Exception]
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        with pytest.raises(error):
            await spool.append(record)
        assert spool.stats.appended == 0
    assert arrived.requests == 0


async def test_episodes_and_traces_of_two_spools_in_one_directory_keep_their_format_and_context(
    arrived: Arrived, tmp_path: Path
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=500))
    directory = tmp_path / "spool"
    first = AsyncTraceSpool(directory, line_format=LineFormat.EPISODE, context={"run": "one"})
    await first.append({"id": "episode", "traces": [trace("member")]})
    assert (await first.aclose(timeout=0.1)).pending == 1
    arrived.platform.clear_faults()
    async with AsyncTraceSpool(directory, context={"run": "two"}) as second:
        await second.append(trace("alone"))
        assert await second.flush()
    assert arrived.episodes() == ["episode"]
    assert arrived.contexts() == {"member": '{"run": "one"}', "alone": '{"run": "two"}'}


async def test_what_is_left_at_the_end_is_said_and_goes_on_with_the_next_spool(
    arrived: Arrived, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=503))
    directory = tmp_path / "spool"
    spool = AsyncTraceSpool(directory)
    for number in range(3):
        await spool.append(trace(f"t{number}"))
    assert not await spool.flush(timeout=0.3)
    left = await spool.aclose(timeout=0.1)
    assert (left.pending, left.uploaded, left.state) == (3, 0, "closed")
    assert f"3 records stay in {directory}" in caplog.text
    arrived.platform.clear_faults()
    async with AsyncTraceSpool(directory) as spool:
        assert spool.stats.pending == 3
        assert await spool.flush()
    assert arrived.in_order() == ["t0", "t1", "t2"]


async def test_records_go_on_under_resets_throttles_and_outages_and_arrive_once(
    arrived: Arrived, tmp_path: Path
) -> None:
    now = {"Retry-After": "0"}
    often = FaultRule(operation="upload_traces", probability=0.1)
    arrived.platform.add_faults(
        dataclasses.replace(often, seed=1, reset="before_commit"),
        dataclasses.replace(often, seed=2, reset="after_commit"),
        dataclasses.replace(often, seed=3, status=503, headers=now),
        dataclasses.replace(often, seed=4, status=429, headers=now),
        dataclasses.replace(often, seed=5, garbage=True),
    )
    async with AsyncTraceSpool(tmp_path / "spool", segment_bytes=2000, max_delay=0) as spool:
        for start in range(0, 300, 50):
            await asyncio.gather(*(spool.append(trace(f"t{start + n}")) for n in range(50)))
        assert await spool.flush()
    assert arrived.ids() == {f"t{number}": 1 for number in range(300)}
    assert arrived.uploads() < arrived.requests


async def test_a_record_waits_no_longer_for_others_than_it_may(
    arrived: Arrived, tmp_path: Path
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool", max_delay=0.2) as spool:
        await spool.append(trace("first"))
        await spool.append(trace("second"))
        assert arrived.requests == 0
        await asyncio.sleep(0.7)
        assert arrived.uploads() == 1
    assert arrived.in_order() == ["first", "second"]


async def test_both_copies_of_a_trace_in_one_segment_arrive_the_later_last(
    arrived: Arrived, tmp_path: Path
) -> None:
    async with AsyncTraceSpool(tmp_path / "spool", max_delay=60) as spool:
        for number in range(8):
            await spool.append(trace(f"t{number % 3}", f"text {number}"))
        assert await spool.flush()
        assert spool.stats.rejected == 0
    assert arrived.ids() == {"t0": 3, "t1": 3, "t2": 2}
    assert arrived.in_order() == [f"t{number % 3}" for number in range(8)]


async def test_the_same_bytes_in_two_segments_are_one_upload(
    arrived: Arrived, tmp_path: Path
) -> None:
    record = trace("same")
    async with AsyncTraceSpool(tmp_path / "spool", segment_bytes=1) as spool:
        await spool.append(record)
        await spool.append(record)
        assert await spool.flush()
    assert arrived.ids() == {"same": 1}
    assert arrived.requests == 2


async def test_a_refused_record_is_set_aside_with_its_reason_and_the_others_go_on(
    arrived: Arrived, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "spool"
    async with AsyncTraceSpool(directory, max_delay=60, context={"run": "one"}) as spool:
        for number in range(9):
            record = trace(f"t{number}")
            if number in (2, 7):
                record["timing"]["start"] = 4e9
            await spool.append(record)
        assert await spool.flush()
        stats = spool.stats
    assert (stats.uploaded, stats.rejected, stats.pending) == (7, 2, 0)
    assert arrived.in_order() == [f"t{number}" for number in range(9) if number not in (2, 7)]
    set_aside = list((directory / "rejected").glob("*.jsonl"))
    assert {json.loads(path.read_text())["id"] for path in set_aside} == {"t2", "t7"}
    reason = json.loads(set_aside[0].with_suffix(".json").read_text())
    assert reason["code"] == "created_at_out_of_window"
    assert reason["context"] == {"run": "one"}
    assert str(set_aside[0]) in caplog.text

    requests = arrived.requests
    async with AsyncTraceSpool(directory) as spool:  # does not send them again, nor forget them
        assert await spool.flush()
        await spool.append(trace("later", timing={"start": 4e9}))
        assert await spool.flush()
    assert arrived.requests == requests + 1
    assert len(list((directory / "rejected").glob("*.jsonl"))) == 3


async def test_bytes_that_are_stored_as_another_format_are_set_aside(
    arrived: Arrived, tmp_path: Path
) -> None:
    record = {"id": "both", "timing": {"start": trace("")["timing"]["start"]}, "traces": []}
    async with AsyncTraceSpool(tmp_path / "one", line_format="episode") as spool:
        await spool.append(record)
    async with AsyncTraceSpool(tmp_path / "two", line_format="trace") as spool:
        await spool.append(record)
        assert await spool.flush()
        assert spool.stats.rejected == 1
    [reason] = (tmp_path / "two" / "rejected").glob("*.json")
    assert json.loads(reason.read_text())["code"] == "line_format_conflict"


async def test_records_of_another_team_are_not_uploaded_to_this_one(
    arrived: Arrived, tmp_path: Path
) -> None:
    arrived.platform.add_faults(FaultRule(operation="upload_traces", status=503))
    async with AsyncTracesAPIClient(team_id="red") as red:
        spool = AsyncTraceSpool(tmp_path / "spool", red)
        await spool.append(trace("secret"))
        await spool.aclose(timeout=0)
    arrived.platform.clear_faults()
    async with AsyncTracesAPIClient(team_id="blue") as blue:
        other = AsyncTraceSpool(tmp_path / "spool", blue)
        with pytest.raises(SpoolError, match="the team 'red'"):
            await other.append(trace("mine"))
        await other.aclose()
    assert arrived.ids() == {}


async def test_one_spool_serves_many_event_loops_at_once(arrived: Arrived, tmp_path: Path) -> None:
    spool = AsyncTraceSpool(tmp_path / "spool")

    async def append(name: str) -> None:
        await asyncio.gather(*(spool.append(trace(f"{name}-{n}")) for n in range(20)))

    threads = [
        threading.Thread(target=lambda name=name: asyncio.run(append(name))) for name in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await spool.aclose()
    assert arrived.ids() == {f"{name}-{n}": 1 for name in "abc" for n in range(20)}


async def test_the_sync_spool_makes_its_own_client_or_shares_one(
    arrived: Arrived, tmp_path: Path
) -> None:
    def work() -> None:
        with TraceSpool(tmp_path / "own") as spool:
            spool.append(trace("own"))
            assert spool.flush()
        with (
            TracesAPIClient() as client,
            TraceSpool(tmp_path / "shared", client) as spool,
        ):
            spool.append(trace("shared"))
            assert spool.close().uploaded == 1

    await asyncio.to_thread(work)
    assert arrived.in_order() == ["own", "shared"]


async def test_a_client_that_is_shared_works_on_after_the_spool(
    arrived: Arrived, tmp_path: Path
) -> None:
    async with AsyncTracesClient() as client:
        async with AsyncTraceSpool(tmp_path / "spool", client.api_client) as spool:
            await spool.append(trace("one"))
        async with AsyncTraceSpool(tmp_path / "spool", client=client.api_client.client) as spool:
            await spool.append(trace("two"))
    assert arrived.in_order() == ["one", "two"]


async def test_a_closed_spool_takes_nothing_and_closes_again(
    arrived: Arrived, tmp_path: Path
) -> None:
    spool = AsyncTraceSpool(tmp_path / "spool")
    await spool.append(trace("one"))
    first = await spool.aclose()
    assert first == await spool.aclose()
    with pytest.raises(SpoolClosedError):
        await spool.append(trace("two"))
    with pytest.raises(SpoolClosedError):
        await spool.flush()


async def test_a_spool_that_was_never_used_touches_nothing(tmp_path: Path) -> None:
    spool = AsyncTraceSpool(tmp_path / "spool", AsyncTracesAPIClient("key"))
    assert (await spool.aclose()).state == "closed"
    assert not (tmp_path / "spool").exists()


async def test_a_forgotten_spool_is_warned_of(
    arrived: Arrived, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    spool = AsyncTraceSpool(tmp_path / "spool")
    await spool.append(trace("one"))
    await spool.flush()
    with pytest.warns(ResourceWarning, match="was not closed"):
        spool.__del__()
    await spool.aclose()


def test_a_spool_does_not_pickle(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="another directory"):
        pickle.dumps(AsyncTraceSpool(tmp_path, AsyncTracesAPIClient("key")))


@pytest.mark.parametrize(
    "options",
    [
        {"fsync": 0},
        {"fsync": "sometimes"},
        {"max_bytes": 0},
        {"segment_bytes": 0},
        {"segment_bytes": 2**40},
        {"max_delay": -1},
        {"line_format": "novel format"},
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused_at_once(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=next(iter(options)).split("_")[-1]):
        AsyncTraceSpool(tmp_path, AsyncTracesAPIClient("key"), **options)


def test_a_client_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="api_client"):
        AsyncTraceSpool(tmp_path, AsyncTracesClient(api_key="key"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="context"):
        AsyncTraceSpool(tmp_path, AsyncTracesAPIClient("key"), context={"n": 1})  # type: ignore[dict-item]


@pytest.fixture(autouse=True)
def warnings_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="prime_traces")


@pytest.mark.parametrize(
    ("options", "about"),
    [
        ({"schema_version": 2}, "schema_version is 1"),
        ({"context": {"source": "x" * 70_000}}, "context has 70,"),
        ({"context": {"source": "\ud800"}}, "half a character"),
        ({"max_bytes": "1G"}, "max_bytes"),
        ({"segment_bytes": 1e6}, "segment_bytes"),
        ({"directory": ""}, "directory"),
    ],
    ids=str,
)
def test_what_would_have_all_records_refused_is_refused_before_them(
    arrived: Arrived, tmp_path: Path, options: dict[str, Any], about: str
) -> None:
    with pytest.raises(ValueError, match=about):
        AsyncTraceSpool(**{"directory": tmp_path / "spool", **options})


@pytest.mark.parametrize("timeout", [-1, float("nan"), "1"])
async def test_a_flush_takes_seconds(arrived: Arrived, tmp_path: Path, timeout: Any) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        with pytest.raises(ValueError, match="timeout is seconds"):
            await spool.flush(timeout)


async def test_an_empty_line_is_said_to_be_empty(arrived: Arrived, tmp_path: Path) -> None:
    async with AsyncTraceSpool(tmp_path / "spool") as spool:
        for line in (b"", b" \n"):
            with pytest.raises(InvalidRecordError, match="it is empty"):
                await spool.append(line)
