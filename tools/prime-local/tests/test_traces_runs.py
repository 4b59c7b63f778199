"""Runs and their steps over HTTP."""

from __future__ import annotations

import asyncio
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


def of_run(run_id: str, trace_id: str, step: int | None = None, **fields: Any) -> dict[str, Any]:
    work = {} if step is None else {"work": {"step": step}}
    return {**fields, **trace(trace_id, **fields), "run": {"id": run_id, **work}}


def model(name: str) -> dict[str, Any]:
    return {"config": {"model": name}}


async def upload_run(traces: Traces) -> None:
    """Upload four traces of a run, two of them in an episode."""
    await traces.upload(
        episode(
            "ep",
            {**scored("a", 1.0, start=4, agent=model("m2")), "run": _at("r", 0)},
            {**scored("b", 0.0, start=2, agent=model("m1")), "run": _at("r", 0)},
            env={"id": "words"},
        ),
        line_format="episode",
        context={"source": "old", "run_type": "train"},
    )
    await traces.upload(
        {**scored("c", None, start=9, ok=False, agent=model("m1")), "run": _at("r", 7)},
        {**scored("d", 0.5, start=1), "run": {"id": "r"}},
        context={"run_type": "eval"},
    )


def _at(run_id: str, step: int) -> dict[str, Any]:
    return {"id": run_id, "work": {"step": step}}


async def test_a_run_has_figures_over_its_traces(traces: Traces) -> None:
    await upload_run(traces)
    found = await traces.get("runs/r")
    (listed,) = await traces.items("runs")
    assert found == listed
    newest = await traces.get("traces/c")
    assert found == {
        "run_id": "r",
        "first_trace_created_at": format_time(START + 1),
        "last_trace_created_at": format_time(START + 9),
        "last_trace_ingested_at": newest["ingested_at"],
        "trace_count": 4,
        "episode_count": 1,
        "avg_reward": 0.5,
        "step_min": 0,
        "step_max": 7,
        "step_count": 2,
        "has_error": True,
        "first_user_id": newest["user_id"],
        "environment_ids": ["words"],
        "model_ids": ["m1", "m2"],
        # Whole, from the newest trace: maps are not merged.
        "context": {"run_type": "eval"},
    }


async def test_among_traces_of_one_time_the_last_upload_is_the_newest(traces: Traces) -> None:
    await traces.upload(of_run("r", "z"), context={"n": "1"})
    await traces.upload(of_run("r", "a"), context={"n": "2"})
    assert (await traces.get("runs/r"))["context"] == {"n": "2"}


async def test_a_run_without_scores_and_steps_says_so(traces: Traces) -> None:
    await traces.upload(of_run("r", "a"))
    found = await traces.get("runs/r")
    assert found["avg_reward"] is None
    assert (found["step_min"], found["step_max"], found["step_count"]) == (None, None, 0)
    assert (found["episode_count"], found["environment_ids"], found["model_ids"]) == (0, [], [])
    assert found["has_error"] is False
    assert found["context"] == {}


async def test_steps_have_figures_in_their_order(traces: Traces) -> None:
    await upload_run(traces)
    assert await traces.get("runs/r/steps") == {
        "step_min": 0,
        "step_max": 7,
        "step_count": 2,
        "items": [
            {"step": 0, "trace_count": 2, "episode_count": 1, "avg_reward": 0.5},
            {"step": 7, "trace_count": 1, "episode_count": 0, "avg_reward": None},
        ],
    }
    empty: dict[str, Any] = {"step_min": None, "step_max": None, "step_count": 0, "items": []}
    assert await traces.get("runs/unknown/steps") == empty


async def test_an_unknown_run_is_not_found(traces: Traces) -> None:
    await traces.upload(trace("bare"))
    assert await traces.refused("runs/r") == "404 run_not_found"
    assert await traces.items("runs") == []


async def test_figures_count_the_newest_copy_of_each_trace(traces: Traces) -> None:
    await traces.upload({**scored("a", 0.0), "run": {"id": "old"}})
    await traces.upload({**scored("a", 1.0), "run": {"id": "new"}})
    await traces.upload({**scored("a", 0.5), "run": {"id": "new"}})
    assert await traces.ids("runs", "run_id") == ["new"]
    assert await traces.refused("runs/old") == "404 run_not_found"
    found = await traces.get("runs/new")
    assert (found["trace_count"], found["avg_reward"]) == (1, 0.5)


async def test_bounds_of_time_pick_the_traces_that_are_totalled(traces: Traces) -> None:
    await upload_run(traces)
    after, before = format_time(START + 2), format_time(START + 9)
    (found,) = await traces.items("runs", created_after=after, created_before=before)
    assert (found["trace_count"], found["avg_reward"]) == (2, 0.5)
    assert found["context"] == {"source": "old", "run_type": "train"}
    assert await traces.items("runs", created_before=format_time(START)) == []


async def test_runs_are_kept_by_their_type(traces: Traces) -> None:
    await upload_run(traces)
    await traces.upload(of_run("t", "t"), context={"run_type": "train"})
    await traces.upload(of_run("odd", "o"), context={"run_type": "Train"})
    await traces.upload(of_run("none", "n"))

    async def of_type(*types: str) -> list[str]:
        return await traces.ids("runs", "run_id", run_type=list(types))

    assert await of_type("eval") == ["r"]
    assert await of_type("train") == ["t"]
    assert await of_type("unknown") == ["none", "odd"]
    assert await of_type("train", "eval") == ["t", "r"]
    assert await of_type() == ["none", "odd", "t", "r"]
    assert await traces.refused("runs", run_type="Train") == "400 invalid_filter"


async def test_runs_are_kept_by_who_uploaded(traces: Traces) -> None:
    await upload_run(traces)
    user = (await traces.get("runs/r"))["first_user_id"]
    (found,) = await traces.items("runs", created_by=[user, "usr_other"])
    assert found["trace_count"] == 4
    assert await traces.items("runs", created_by="usr_other") == []


async def test_the_latest_arrival_comes_first(traces: Traces) -> None:
    for run_id, trace_id in (("a", "1"), ("b", "2"), ("c", "3"), ("a", "4")):
        await traces.upload(of_run(run_id, trace_id))
    await traces.upload(of_run("y", "5"), of_run("z", "6"))
    for limit in (1, 2, 100):
        ids = await traces.ids("runs", "run_id", limit=limit)
        assert ids == ["z", "y", "a", "c", "b"]


async def test_a_walk_shows_each_run_once_while_they_grow(traces: Traces) -> None:
    await traces.upload(*(of_run(f"r{n:02}", f"t{n:02}", step=n) for n in range(20)))
    shown: list[dict[str, Any]] = []
    async for page in traces.pages("runs", limit=3):
        shown += page["items"]
        # A run that was shown and one that was not yet get a further trace, a third another copy.
        for number in (len(shown) - 1, len(shown) + 1):
            await traces.upload(of_run(f"r{19 - number % 20:02}", f"more-{number}-{len(shown)}"))
        await traces.upload(of_run("r05", "t05", step=100 + len(shown)))
        await traces.upload(of_run(f"new{len(shown)}", f"new{len(shown)}"))
    assert [row["run_id"] for row in shown] == [f"r{n:02}" for n in reversed(range(20))]
    assert all(row["trace_count"] == 1 for row in shown)
    assert (await traces.get("runs/r05"))["step_max"] > 100


async def test_a_run_can_be_read_while_it_is_uploaded(traces: Traces) -> None:
    await traces.upload(of_run("r", "t0"))
    uploads = [traces.upload(of_run("r", f"t{n}")) for n in range(1, 20)]
    reads = [traces.get("runs/r") for _ in range(20)]
    results = await asyncio.gather(*uploads, *reads)
    assert all(1 <= found["trace_count"] <= 20 for found in results[len(uploads) :])
    assert (await traces.get("runs/r"))["trace_count"] == 20


@pytest.mark.parametrize("parameters", [{"run_id": "r"}, {"context.a": "b"}, {"limit": 0}])
async def test_a_query_that_cannot_be_meant_is_refused(
    traces: Traces, parameters: dict[str, Any]
) -> None:
    assert await traces.refused("runs", **parameters) == "400 invalid_filter"


async def test_a_cursor_is_bound_to_its_filters(traces: Traces) -> None:
    await traces.upload(of_run("a", "1"), of_run("b", "2"))
    cursor = (await traces.get("runs", limit=1))["next_cursor"]
    assert await traces.refused("runs", cursor=cursor, run_type="eval") == "400 invalid_cursor"
    assert await traces.refused("runs", cursor="junk") == "400 invalid_cursor"
