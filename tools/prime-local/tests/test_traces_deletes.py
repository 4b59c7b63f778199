"""Deletes of traces over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from trace_queries import START, Traces, episode, saying, trace

from prime_local import FaultRule
from prime_local.traces.times import format_time

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)

GONE = "404 trace_not_found"


@pytest.fixture
async def traces(open_platform: OpenPlatform) -> Traces:
    platform, client = await open_platform()
    return Traces(platform, client.session)


async def delete(traces: Traces, path: str, **parameters: Any) -> None:
    assert await traces.ask("DELETE", path, **parameters) == (202, None)


async def refused(traces: Traces, path: str, **parameters: Any) -> str:
    return await traces.refused(path, "DELETE", **parameters)


async def test_a_deleted_trace_cannot_be_read_in_any_way(traces: Traces) -> None:
    await traces.upload(saying("t", "abc", "abd"), saying("other", "abc"))
    cursor = (await traces.get("traces/t/nodes", limit=1))["next_cursor"]
    await delete(traces, "traces/t")
    for path in ("traces/t", "traces/t/nodes", "traces/t/calls"):
        assert await traces.refused(path) == GONE
    assert await traces.refused("traces/t", raw=True) == GONE
    assert await traces.refused("traces/t/nodes", cursor=cursor, limit=1) == GONE
    assert await traces.ids("traces") == ["other"]
    assert await traces.ids("runs/run-1/search", query="abc") == ["other"]
    assert (await traces.get("runs/run-1"))["trace_count"] == 1


async def test_a_repeated_delete_is_not_found(traces: Traces) -> None:
    await traces.upload(trace("t"))
    await delete(traces, "traces/t")
    assert await refused(traces, "traces/t") == GONE
    assert await refused(traces, "traces/never") == GONE


async def test_an_accepted_delete_has_an_empty_answer(traces: Traces) -> None:
    await traces.upload(trace("t"))
    url = f"{traces.url}/traces/t"
    async with traces.session.delete(url, headers=traces.headers) as answer:
        assert (answer.status, await answer.read()) == (202, b"")
        assert "Content-Type" not in answer.headers


async def test_every_copy_is_deleted(traces: Traces) -> None:
    for n in range(3):
        await traces.upload(trace("t", start=n, run={"id": f"run-{n}"}))
    await delete(traces, "traces/t")
    assert await traces.ids("traces") == []
    assert await traces.ids("runs", "run_id") == []
    assert await refused(traces, "traces/t") == GONE


async def test_a_hint_must_be_the_time_of_some_copy(traces: Traces) -> None:
    await traces.upload(trace("t", start=0.123456789))
    early = (await traces.get("traces/t"))["created_at"]
    await traces.upload(trace("t", start=5))
    for hint in (format_time(START + 1), format_time(START)):
        assert await refused(traces, "traces/t", created_at=hint) == GONE
    assert await refused(traces, "traces/u", created_at=early) == GONE
    assert len(await traces.items("traces")) == 1
    await delete(traces, "traces/t", created_at=early)
    assert await traces.refused("traces/t") == GONE


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("traces/t", {"created_at": "now"}),
        ("traces/t", {"created_at": "2026-11-30T00:00:00"}),
        ("traces/t", {"force": True}),
        ("traces", {}),
        ("traces", {"run_id": ""}),
        ("traces", {"run_id": ["r", "s"]}),
        ("traces", {"run_id": "r", "has_error": True}),
        ("traces", {"environment_id": "e"}),
    ],
)
async def test_a_delete_that_cannot_be_meant_deletes_nothing(
    traces: Traces, path: str, parameters: dict[str, Any]
) -> None:
    await traces.upload(trace("t", run={"id": "r"}), trace("u", run={"id": ""}))
    assert await refused(traces, path, **parameters) == "400 invalid_filter"
    assert len(await traces.items("traces")) == 2


async def test_a_runs_traces_are_deleted_and_its_episodes_stay(traces: Traces) -> None:
    row = episode("ep", saying("a", "x"), saying("b", "y"), run={"id": "run-1"})
    await traces.upload(row, line_format="episode", context={"source": "s"})
    await traces.upload(saying("c", "z", run="run-2"))
    before = await traces.get("episodes/ep")
    await delete(traces, "traces", run_id="run-1")
    assert await traces.ids("traces") == ["c"]
    assert await traces.refused("runs/run-1") == "404 run_not_found"
    assert await traces.refused("runs/run-1/search", query="abc") == "404 run_not_found"
    assert (await traces.get("runs/run-1/steps"))["items"] == []
    empty = {
        "trace_count": 0,
        "total_tokens": 0,
        "total_duration_ms": 0,
        "any_trace_error": False,
        "agent_names": [],
    }
    assert await traces.get("episodes/ep") == {**before, "traces": empty}
    assert await traces.get("episodes/ep/traces") == {"items": [], "next_cursor": None}
    assert (await traces.get("episodes/ep", raw=True))["traces"] == ["a", "b"]
    assert await traces.ids("episodes", "episode_id", run_id="run-1") == ["ep"]
    # What matches through traces has none left to match through.
    assert await traces.items("episodes", **{"context.source": "s"}) == []


async def test_a_repeated_delete_of_a_run_is_not_found(traces: Traces) -> None:
    await traces.upload(saying("a", "x"))
    await delete(traces, "traces", run_id="run-1")
    assert await refused(traces, "traces", run_id="run-1") == "404 run_not_found"
    assert await refused(traces, "traces", run_id="never") == "404 run_not_found"


async def test_a_run_is_what_the_newest_copies_say(traces: Traces) -> None:
    await traces.upload(saying("moved", "x", run="old"), saying("stays", "x", run="old"))
    await traces.upload(saying("moved", "x", run="new"))
    await delete(traces, "traces", run_id="old")
    assert await traces.ids("traces") == ["moved"]
    await delete(traces, "traces", run_id="new")
    # Nor does an older copy come back.
    assert await traces.ids("traces") == []
    assert await traces.refused("runs/old") == "404 run_not_found"


async def test_what_is_uploaded_after_a_delete_stays(traces: Traces) -> None:
    first = saying("t", "one")
    await traces.upload(first)
    await delete(traces, "traces", run_id="run-1")
    await traces.upload(saying("t", "two"))
    assert (await traces.get("traces/t"))["trace_id"] == "t"
    (match,) = await traces.items("runs/run-1/search", query="two")
    assert match["generation"] == 1


async def test_nobody_deletes_what_belongs_to_others(traces: Traces) -> None:
    team = traces.of_team("team-1")
    await traces.upload(saying("t", "x"))
    await team.upload(saying("t", "x"))
    await delete(team, "traces", run_id="run-1")
    assert await traces.ids("traces") == ["t"]
    await team.upload(saying("u", "x"))
    await delete(traces, "traces/t")
    assert await team.ids("traces") == ["u"]


async def test_deletes_and_uploads_at_once_leave_no_half_of_a_trace(traces: Traces) -> None:
    async def upload(n: int) -> None:
        await traces.upload(saying(f"t{n % 4}", f"text {n}", "abc"))

    async def remove() -> None:
        status, _ = await traces.ask("DELETE", "traces", run_id="run-1")
        assert status in (202, 404)

    steps = [upload(n) if n % 3 else remove() for n in range(30)]
    await asyncio.gather(*steps)
    for row in await traces.items("traces"):
        assert len(await traces.items(f"traces/{row['trace_id']}/nodes")) == 2
        assert (await traces.get(f"traces/{row['trace_id']}", raw=True))["id"] == row["trace_id"]


async def test_the_answer_to_a_delete_can_be_lost_after_it(traces: Traces) -> None:
    await traces.upload(trace("t"))
    traces.platform.add_faults(FaultRule(operation="delete_trace", reset="after_commit"))
    with pytest.raises(Exception, match=r"disconnected|reset"):
        await traces.ask("DELETE", "traces/t")
    traces.platform.clear_faults()
    assert await refused(traces, "traces/t") == GONE
