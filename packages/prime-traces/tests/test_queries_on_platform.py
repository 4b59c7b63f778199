"""Queries against a local platform: pages, an index that comes late, odd ids, search, deletes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_local.contract import load_contract
from prime_traces import (
    AmbiguousDeleteError,
    AsyncTracesClient,
    LineFormat,
    NotFoundError,
    TraceNotIndexedError,
    ValidationRejectedError,
)

if TYPE_CHECKING:
    from conftest import MakeRecord

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quick_retries", "quick_polls")]

# What the service does not have by the contract's own word.
UNIMPLEMENTED = {"export_traces"}
ROUTES = {
    operation.id
    for operation in load_contract().operations.values()
    if operation.spec.get("x-package") == "prime-traces"
}
RUN = {"run": {"id": "run-1", "type": "eval"}}


def said(*texts: str) -> dict[str, Any]:
    """The messages of a user."""
    return {"nodes": [{"message": {"role": "user", "content": text}} for text in texts]}


async def test_every_route_is_served_and_reached_by_a_method(
    platform: LocalPlatform, uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    traces = [make_record(number, **RUN, **said("a text")) for number in range(2)]
    episode = {"id": "ep-1", "env": {"id": "ladders"}, "ok": True, "traces": traces}
    await uploader.upload_records([episode], line_format=LineFormat.EPISODE)
    first = traces[0]["id"]
    assert len((await uploader.list()).items) == 2
    assert (await uploader.get(first)).episode_id == "ep-1"
    assert len((await uploader.list_nodes(first, role="user")).items) == 1
    assert (await uploader.list_calls(first, finish_reason="stop")).items == []
    assert (await uploader.list_episodes(run_id="run-1")).items[0].episode_id == "ep-1"
    assert (await uploader.get_episode("ep-1")).traces.trace_count == 2
    assert len((await uploader.list_episode_traces("ep-1")).items) == 2
    assert (await uploader.list_runs(run_type="unknown")).items[0].run_id == "run-1"
    assert (await uploader.get_run("run-1")).trace_count == 2
    assert (await uploader.list_run_steps("run-1")).items == []
    assert len((await uploader.search("text", run_id="run-1")).items) == 2
    await uploader.delete(first)
    await uploader.delete_run("run-1")
    assert set(platform.ledger()["requests"]) == ROUTES - UNIMPLEMENTED


async def test_every_page_of_a_list_is_read(
    uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    records = [make_record(number, **RUN) for number in range(45)]
    for number, record in enumerate(records):
        record["timing"]["start"] += number - 100
    await uploader.upload_records(records)
    newest = [record["id"] for record in reversed(records)]
    assert [trace.trace_id async for trace in uploader.iter(run_id="run-1", limit=10)] == newest
    page = await uploader.list(run_id="run-1")
    assert ([trace.trace_id for trace in page.items], len(page.items)) == (newest[:20], 20)
    rest = uploader.iter(run_id="run-1", cursor=page.next_cursor)
    assert [trace.trace_id async for trace in rest] == newest[20:]
    with pytest.raises(ValidationRejectedError) as caught:
        await uploader.list(run_id="run-2", cursor=page.next_cursor)
    assert caught.value.code == "invalid_cursor"


@pytest.mark.parametrize(
    "trace_id", [".", "..", "a\nb", "\n", "a b?c#d&e=%2F", "é\N{GRINNING FACE}", "~", "+"]
)
async def test_an_id_is_found_whatever_it_holds(
    uploader: AsyncTracesClient, make_record: MakeRecord, trace_id: str
) -> None:
    record = make_record(1, **said("hello")) | {"id": trace_id}
    await uploader.upload_records([record, make_record(2)])
    assert (await uploader.get(trace_id)).trace_id == trace_id
    assert await uploader.get_record(trace_id) == record
    assert len([node async for node in uploader.iter_nodes(trace_id)]) == 1
    await uploader.delete(trace_id)
    assert [trace.trace_id async for trace in uploader.iter()] == ["tr-000002"]


async def test_an_index_that_comes_late_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, make_record: MakeRecord
) -> None:
    async with LocalPlatform(trace_index_delay=0.5) as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        async with AsyncTracesClient() as client:
            await client.upload_records([make_record(1, **RUN, **said("one", "two"))])
            with pytest.raises(TraceNotIndexedError):
                await client.list_calls("tr-000001")
            first = await client.search("one", run_id="run-1")
            assert first.coverage is not None
            assert (first.items, first.coverage.unindexed_trace_ids) == ([], ["tr-000001"])
            nodes = client.iter_nodes("tr-000001", wait_for_index=20, limit=1)
            assert [node.message.content async for node in nodes] == ["one", "two"]


async def test_matches_are_counted_in_code_points(
    uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    text = "\N{GRINNING FACE}é here: Traceback \N{GRINNING FACE}"
    records = [make_record(number, **RUN, **said("nothing", text)) for number in range(7)]
    await uploader.upload_records(records)
    found = [match async for match in uploader.iter_search("Traceback", run_id="run-1", limit=2)]
    assert [match.trace_id for match in found] == [record["id"] for record in records]
    for match in found:
        assert text[match.match_start : match.match_end] == "Traceback"
        start = match.match_start - match.excerpt_start
        assert match.excerpt[start:].startswith("Traceback")
        assert (match.node_idx, match.representation) == (1, "text")


async def test_an_episode_outlives_its_traces(
    uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    members = [make_record(number, **RUN) for number in range(3)]
    episode = {"id": "ep-1", "env": {"id": "ladders"}, "ok": True, "traces": members}
    (receipt,) = await uploader.upload_records([episode], line_format=LineFormat.EPISODE)
    ids = {trace.trace_id async for trace in uploader.iter_episode_traces("ep-1", limit=2)}
    assert ids == {member["id"] for member in members}
    await uploader.delete_run("run-1")
    detail = await uploader.get_episode("ep-1")
    assert (detail.traces.trace_count, detail.upload_id) == (0, receipt.upload_id)
    raw = json.loads(await uploader.get_episode_raw("ep-1"))
    assert raw == {**episode, "traces": [member["id"] for member in members]}
    assert [run async for run in uploader.iter_runs()] == []
    with pytest.raises(NotFoundError):
        await uploader.delete_run("run-1")


async def test_a_delete_whose_answer_is_lost_is_left_to_the_caller(
    platform: LocalPlatform, uploader: AsyncTracesClient, make_record: MakeRecord
) -> None:
    record = make_record(1)
    await uploader.upload_records([record])
    platform.add_faults(FaultRule("delete_trace", times=1, reset="after_commit"))
    with pytest.raises(AmbiguousDeleteError, match="check before you send it again"):
        await uploader.delete(record["id"])
    assert platform.ledger()["requests"]["delete_trace"] == 1
    with pytest.raises(NotFoundError):
        await uploader.get(record["id"])


async def test_answers_of_a_newer_server_are_read(
    monkeypatch: pytest.MonkeyPatch, make_record: MakeRecord
) -> None:
    async with LocalPlatform(noise=True) as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        async with AsyncTracesClient() as client:
            record = make_record(1, **RUN, **said("one", "two", "three"), metrics={"turns": 4})
            await client.upload_records([record], context={"source": "nightly"})
            summary = await client.get("tr-000001")
            assert (summary.context, summary.metrics) == ({"source": "nightly"}, {"turns": 4})
            assert (await client.get_run("run-1")).context == {"source": "nightly"}
            assert (await client.list_runs()).items[0].trace_count == 1
            nodes = client.iter_nodes("tr-000001", after=0, limit=1)
            assert [node.message.content async for node in nodes] == ["two", "three"]
