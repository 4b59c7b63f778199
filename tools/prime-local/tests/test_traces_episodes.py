"""Episodes over HTTP: lists, totals, envelopes and members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trace_queries import START, Traces, episode, scored, trace

from prime_local.traces.times import format_time

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def traces(open_platform: OpenPlatform) -> Traces:
    platform, client = await open_platform()
    return Traces(platform, client.session)


def at_step(trace_id: str, step: int, **fields: Any) -> dict[str, Any]:
    return trace(trace_id, run={"id": "run-1", "work": {"step": step}}, **fields)


FULL = episode(
    "full",
    at_step("a", 1, start=5, agent={"name": "solver"}, calls=[{"usage": {"total_tokens": 40}}]),
    at_step(
        "b",
        3,
        start=2,
        agent={"name": "judge"},
        calls=[{"usage": {"total_tokens": 2}}],
        ok=False,
    ),
    env={"id": "words"},
)
FULL["traces"][0]["timing"]["scoring"] = {"start": START, "end": START + 6.5}
FAILED = episode(
    "failed",
    ok=False,
    outcome="lost",
    run={"id": "run-2"},
    errors=[{"type": "First", "message": "x"}, {"type": "TeardownError", "message": "stuck"}],
)


async def upload_both(traces: Traces) -> tuple[str, str]:
    full = await traces.upload(FULL, line_format="episode", context={"source": "nightly"})
    return full, await traces.upload(FAILED, line_format="episode")


async def test_an_episode_has_its_own_fields_and_its_traces_totals(traces: Traces) -> None:
    upload_id, _ = await upload_both(traces)
    found = await traces.get("episodes/full")
    assert found.pop("ingested_at") > found["created_at"]
    assert found == {
        "episode_id": "full",
        "upload_id": upload_id,
        "schema_version": 1,
        "created_at": format_time(START + 2),
        "run_id": "run-1",
        "environment_id": "words",
        "outcome": None,
        "has_error": False,
        "error": {"type": None, "message": None},
        "traces": {
            "trace_count": 2,
            "total_tokens": 42,
            "total_duration_ms": 1500,
            "any_trace_error": True,
            "agent_names": ["judge", "solver"],
        },
    }


async def test_an_episode_without_traces_has_empty_totals(traces: Traces) -> None:
    await upload_both(traces)
    found = await traces.get("episodes/failed")
    assert found["created_at"] == found["ingested_at"]
    assert (found["run_id"], found["outcome"], found["has_error"]) == ("run-2", "lost", True)
    assert found["error"] == {"type": "TeardownError", "message": "stuck"}
    assert found["traces"] == {
        "trace_count": 0,
        "total_tokens": 0,
        "total_duration_ms": 0,
        "any_trace_error": False,
        "agent_names": [],
    }
    assert await traces.get("episodes/failed/traces") == {"items": [], "next_cursor": None}


async def test_the_raw_envelope_names_its_members(traces: Traces) -> None:
    await upload_both(traces)
    assert await traces.get("episodes/full", raw=True) == {**FULL, "traces": ["a", "b"]}
    assert await traces.get("episodes/failed", raw=True) == FAILED
    assert "traces" in await traces.get("episodes/full", raw=False)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("run_id", "run-1", ["full"]),
        ("run_id", "run-2", ["failed"]),
        ("environment_id", "words", ["full"]),
        ("outcome", "lost", ["failed"]),
        ("has_error", True, ["failed"]),
        ("has_error", False, ["full"]),
        ("run_step", 3, ["full"]),
        ("run_step", 2, []),
        ("step_min", 3, ["full"]),
        ("step_min", 4, []),
        ("step_max", 1, ["full"]),
        ("step_max", 0, []),
        ("step_max", -(2**63), []),
        ("context.source", "nightly", ["full"]),
        ("context.source", "", []),
        pytest.param("created_after", format_time(START + 3), ["failed"], id="created_after"),
        pytest.param("created_before", format_time(START + 3), ["full"], id="created_before"),
        ("upload_id", ["0" * 64], []),
    ],
)
async def test_a_filter_keeps_what_has_the_value(
    traces: Traces, name: str, value: object, expected: list[str]
) -> None:
    await upload_both(traces)
    assert await traces.ids("episodes", "episode_id", **{name: value}) == expected


async def test_step_bounds_mean_one_and_the_same_trace(traces: Traces) -> None:
    await upload_both(traces)
    ids = await traces.ids("episodes", "episode_id", step_min=2, step_max=2)
    assert ids == []
    assert await traces.ids("episodes", "episode_id", step_min=2, step_max=3) == ["full"]


async def test_filters_on_traces_look_at_their_newest_copies(traces: Traces) -> None:
    for step, side in ((1, "left"), (2, "right")):
        row = episode("ep", at_step("t", step))
        await traces.upload(row, line_format="episode", context={"side": side})
    assert await traces.ids("episodes", "episode_id", run_step=1) == []
    assert await traces.ids("episodes", "episode_id", run_step=2) == ["ep"]
    assert await traces.ids("episodes", "episode_id", **{"context.side": "left"}) == []


async def test_episodes_are_listed_by_their_receipts(traces: Traces) -> None:
    full, failed = await upload_both(traces)
    assert await traces.ids("episodes", "episode_id", upload_id=failed) == ["failed"]
    both = await traces.ids("episodes", "episode_id", upload_id=[full, failed])
    assert both == ["failed", "full"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"sort": "created_at"},
        {"reward_min": 0},
        {"step_min": "one"},
        {"run_step": -1},
        {"step_max": 2**63},
        {"limit": 101},
    ],
)
async def test_a_query_that_cannot_be_meant_is_refused(
    traces: Traces, parameters: dict[str, Any]
) -> None:
    assert await traces.refused("episodes", **parameters) == "400 invalid_filter"


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_lists_are_newest_first(traces: Traces, limit: int) -> None:
    rows = [episode(f"e{n}", trace(f"t{n}", start=start)) for n, start in enumerate([3, 1, 3, 2])]
    await traces.upload(*rows, line_format="episode")
    ids = await traces.ids("episodes", "episode_id", limit=limit)
    assert ids == ["e2", "e0", "e3", "e1"]
    many = episode("many", *(trace(f"m{n}", start=n % 3) for n in range(5)))
    await traces.upload(many, line_format="episode")
    assert await traces.ids("episodes/many/traces", limit=limit) == ["m2", "m4", "m1", "m3", "m0"]


async def test_unknown_episodes_are_told_apart_from_empty_ones(traces: Traces) -> None:
    for path in ("episodes/none", "episodes/none/traces"):
        assert await traces.refused(path) == "404 episode_not_found"
    assert await traces.refused("episodes/none", raw=True) == "404 episode_not_found"
    assert await traces.refused("episodes/none", color="red") == "400 invalid_filter"


async def test_a_cursor_is_bound_to_its_episode(traces: Traces) -> None:
    for name in ("x", "y"):
        row = episode(name, *(trace(f"{name}{n}") for n in range(3)))
        await traces.upload(row, line_format="episode")
    cursor = (await traces.get("episodes/x/traces", limit=1))["next_cursor"]
    assert await traces.refused("episodes/y/traces", cursor=cursor) == "400 invalid_cursor"
    assert await traces.refused("traces", cursor=cursor) == "400 invalid_cursor"
    assert await traces.refused("episodes", cursor=cursor) == "400 invalid_cursor"


async def test_totals_count_the_newest_copy_of_each_trace(traces: Traces) -> None:
    await traces.upload(episode("ep", scored("a", 0.0, ok=False)), line_format="episode")
    await traces.upload(episode("ep", scored("a", 1.0), env={"id": "e"}), line_format="episode")
    found = await traces.get("episodes/ep")
    assert found["traces"]["trace_count"] == 1
    assert found["traces"]["any_trace_error"] is False
    assert found["environment_id"] == "e"
    assert len(await traces.items("episodes")) == 1
    # A copy that was uploaded bare belongs to no episode.
    await traces.upload(scored("a", 2.0))
    assert (await traces.get("episodes/ep"))["traces"]["trace_count"] == 0
