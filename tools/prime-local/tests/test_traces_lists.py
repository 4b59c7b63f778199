"""Lists of traces over HTTP: filters, orders, pages, copies and owners."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from trace_queries import START, Traces, episode, scored, sorted_ids, trace
from yarl import URL

from prime_local import LocalPlatform
from prime_local.traces.times import format_time

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)

UNKNOWN = "0" * 64


@pytest.fixture
async def traces(open_platform: OpenPlatform) -> Traces:
    platform, client = await open_platform()
    return Traces(platform, client.session)


RICH = trace(
    "rich",
    start=10,
    run={"id": "run-1", "work": {"step": 3}},
    agent={
        "name": "solver",
        "config": {"model": "acme/8b", "client": {"base_url": "https://api.pinference.ai/v1"}},
    },
    task={"key": "k", "hash": "h", "data": {"name": "ladder"}},
    rewards={"solved": {"score": 0.5}},
    metrics={"turns": 4.0, "lost": None},
    tools=[{"name": "search"}],
    stop_condition="max_turns",
    ok=False,
)
PLAIN = trace("plain", start=20)


async def upload_two(traces: Traces) -> tuple[str, str]:
    """Upload RICH in an episode with a context, and PLAIN bare; return both upload ids."""
    line = episode("ep-1", RICH, env={"id": "words"})
    rich = await traces.upload(
        line, line_format="episode", context={"source": "nightly", "a.b": "ü"}
    )
    return rich, await traces.upload(PLAIN)


async def test_a_summary_has_every_field_the_contract_demands(traces: Traces) -> None:
    upload_id, _ = await upload_two(traces)
    (listed,) = await traces.items("traces", run_id="run-1")
    found = await traces.get("traces/rich")
    assert {name: found[name] for name in listed} == listed
    assert found.pop("ingested_at") == listed["ingested_at"] > found["created_at"]
    assert found.pop("size_bytes") > 100
    assert found == {
        "trace_id": "rich",
        "upload_id": upload_id,
        "episode_id": "ep-1",
        "created_at": format_time(START + 10),
        "run_id": "run-1",
        "run_step": 3,
        "environment_id": "words",
        "model": {"provider": "prime", "id": "acme/8b"},
        "task_id": "ladder",
        "task_key": "k",
        "task_hash": "h",
        "agent_name": "solver",
        "score": {"reward": 0.5, "outcome": "max_turns"},
        "execution": {"has_error": True, "is_truncated": True},
        "duration_ms": 0,
        "total_tokens": 0,
        "context": {"source": "nightly", "a.b": "ü"},
        "user_id": found["user_id"],
        "metrics": {"turns": 4.0, "lost": None},
        "activity": {"total_entries": 0, "user_messages": 0, "model_turns": 0, "tool_calls": 0},
        "tool_definitions": [{"name": "search"}],
    }


@pytest.mark.parametrize(
    ("name", "kept", "dropped"),
    [
        ("run_id", "run-1", "run-"),
        ("environment_id", "words", "Words"),
        ("model_id", "acme/8b", "acme"),
        ("model_provider", "prime", "other"),
        ("task_id", "ladder", ""),
        ("outcome", "max_turns", "done"),
        ("reward_min", 0.5, 0.51),
        ("reward_max", 0.5, 0.49),
        ("context.source", "nightly", "night"),
        ("context.a.b", "ü", "u"),
        ("context.a.b", "ü", "\0"),
    ],
)
async def test_a_filter_keeps_what_has_the_value(
    traces: Traces, name: str, kept: object, dropped: object
) -> None:
    await upload_two(traces)
    assert await traces.ids("traces", **{name: kept}) == ["rich"]
    assert await traces.ids("traces", **{name: dropped}) == []
    if not name.startswith("run"):
        assert await traces.ids("episodes/ep-1/traces", **{name: kept}) == ["rich"]
        assert await traces.ids("episodes/ep-1/traces", **{name: dropped}) == []


@pytest.mark.parametrize("name", ["has_error", "is_truncated"])
async def test_a_flag_keeps_one_side_or_the_other(traces: Traces, name: str) -> None:
    await upload_two(traces)
    assert await traces.ids("traces", **{name: True}) == ["rich"]
    assert await traces.ids("traces", **{name: False}) == ["plain"]


async def test_time_bounds_keep_the_lower_and_drop_the_upper(traces: Traces) -> None:
    await upload_two(traces)
    early, late = format_time(START + 10), format_time(START + 20)
    assert await traces.ids("traces", created_after=early) == ["plain", "rich"]
    assert await traces.ids("traces", created_after=late) == ["plain"]
    assert await traces.ids("traces", created_before=late) == ["rich"]
    assert await traces.ids("traces", created_before=early) == []
    assert await traces.ids("traces", created_after=early, created_before=late) == ["rich"]


async def test_the_time_of_a_summary_bounds_it(traces: Traces) -> None:
    # Producers' clocks have more digits than a date has.
    await traces.upload(*(trace(f"t{n}", start=random.Random(n).random()) for n in range(50)))
    for row in await traces.items("traces", limit=100):
        time = row["created_at"]
        assert row["trace_id"] in await traces.ids("traces", created_after=time, limit=100)
        assert row["trace_id"] not in await traces.ids("traces", created_before=time, limit=100)


async def test_uploads_are_listed_by_their_receipts(traces: Traces) -> None:
    rich, plain = await upload_two(traces)
    assert await traces.ids("traces", upload_id=rich) == ["rich"]
    assert await traces.ids("traces", upload_id=[plain, rich, rich]) == ["plain", "rich"]
    assert await traces.ids("traces", upload_id=[UNKNOWN]) == []


async def test_filters_add_up(traces: Traces) -> None:
    await upload_two(traces)
    assert await traces.ids("traces", run_id="run-1", has_error=True) == ["rich"]
    assert await traces.ids("traces", run_id="run-1", has_error=False) == []


@pytest.mark.parametrize(
    "parameters",
    [
        {"colour": "red"},
        {"trace_id": "rich"},
        {"context.": "x"},
        {"limit": 0},
        {"limit": 101},
        {"limit": "ten"},
        {"sort": "size_bytes"},
        {"sort": "created_at desc"},
        {"has_error": "maybe"},
        {"reward_min": "high"},
        {"reward_min": "nan"},
        {"reward_max": "1e999"},
        {"created_after": "yesterday"},
        {"created_before": "2026-11-30T00:00:00"},
        {"upload_id": "sha256:" + UNKNOWN},
        {"run_id": ["a", "b"]},
    ],
)
async def test_a_query_that_cannot_be_meant_is_refused(
    traces: Traces, parameters: dict[str, Any]
) -> None:
    assert await traces.refused("traces", **parameters) == "400 invalid_filter"


async def test_an_episodes_traces_take_no_upload_and_no_order(traces: Traces) -> None:
    rich, _ = await upload_two(traces)
    for parameters in ({"upload_id": rich}, {"sort": "reward"}, {"run_step": 3}):
        refused = await traces.refused("episodes/ep-1/traces", **parameters)
        assert refused == "400 invalid_filter", parameters


ORDERED = [
    scored("a", 0.5, start=1, run={"work": {"step": 2}}),
    scored("b", 1.0, start=2),
    scored("c", None, start=3, run={"work": {"step": 10}}),
    scored("d", 0.5, start=4, run={"work": {"step": 2}}),
    scored("e", None, start=4),
    scored("f", -1.0, start=4, run={"work": {"step": 0}}),
]


async def test_filters_and_orders_agree_with_a_list_made_by_hand(traces: Traces) -> None:
    dice = random.Random(6)
    rows: list[dict[str, Any]] = []
    for n in range(60):
        record = scored(
            f"t{n}",
            dice.choice([None, 0.0, 0.25, 1.0]),
            start=dice.randint(0, 9),
            ok=dice.random() < 0.5,
            stop_condition=dice.choice(["done", "max_turns", None]),
            run={"id": dice.choice(["r", "s"]), "work": {"step": dice.randint(0, 3)}},
        )
        await traces.upload(record, context={"side": dice.choice(["left", "right"])})
        rows.append(await traces.get(f"traces/{record['id']}"))
    checks: dict[str, Callable[[dict[str, Any], Any], bool]] = {
        "run_id": lambda row, value: row["run_id"] == value,
        "reward_min": lambda row, value: (row["score"]["reward"] or -1) >= value,
        "outcome": lambda row, value: row["score"]["outcome"] == value,
        "has_error": lambda row, value: row["execution"]["has_error"] is value,
        "is_truncated": lambda row, value: row["execution"]["is_truncated"] is value,
        "created_after": lambda row, value: row["created_at"] >= value,
        "created_before": lambda row, value: row["created_at"] < value,
        "context.side": lambda row, value: row["context"]["side"] == value,
    }
    values: dict[str, list[Any]] = {
        "run_id": ["r", "s"],
        "reward_min": [0.25, 0.5],
        "outcome": ["done", "max_turns"],
        "has_error": [True, False],
        "is_truncated": [True, False],
        "created_after": [format_time(START + n) for n in (2, 5)],
        "created_before": [format_time(START + n) for n in (5, 8)],
        "context.side": ["left", "right"],
    }
    keys: dict[str, Callable[[dict[str, Any]], float | None]] = {
        "created_at": lambda row: 0,
        "reward": lambda row: row["score"]["reward"],
        "run_step": lambda row: row["run_step"],
    }
    for _ in range(60):
        names = dice.sample(sorted(checks), dice.randint(0, 3))
        wanted = {name: dice.choice(values[name]) for name in names}
        sort = dice.choice(sorted(keys))
        expected = [
            row for row in rows if all(checks[name](row, value) for name, value in wanted.items())
        ]
        expected.sort(key=lambda row: (row["created_at"], row["trace_id"]), reverse=True)
        expected.sort(key=lambda row: (keys[sort](row) is None, -(keys[sort](row) or 0)))
        ids = await traces.ids("traces", sort=sort, limit=dice.randint(3, 40), **wanted)
        assert ids == [row["trace_id"] for row in expected], (wanted, sort)


@pytest.mark.parametrize("limit", [1, 2, 4, 100])
@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        (None, "fedcba"),
        ("created_at", "fedcba"),
        ("reward", "bdafec"),
        ("run_step", "cdafeb"),
        ("duration_ms", "cfedba"),
    ],
)
async def test_orders_are_descending_with_nulls_last_and_ties_by_time_and_id(
    traces: Traces, sort: str | None, expected: str, limit: int
) -> None:
    records = [dict(record) for record in ORDERED]
    records[2]["timing"] = {"start": START + 3, "agent": {"end": START + 60}}
    await traces.upload(*records)
    parameters = {"limit": limit, **({"sort": sort} if sort else {})}
    assert "".join(await traces.ids("traces", **parameters)) == expected


async def test_pages_have_twenty_rows_unless_told_otherwise(traces: Traces) -> None:
    await traces.upload(*(trace(f"t{n:03}", start=n) for n in range(45)))
    pages = [page async for page in traces.pages("traces")]
    assert [len(page["items"]) for page in pages] == [20, 20, 5]
    pages = [page async for page in traces.pages("traces", limit=15)]
    assert [len(page["items"]) for page in pages] == [15, 15, 15]


@pytest.mark.parametrize("sort", ["created_at", "reward"])
async def test_a_walk_during_uploads_shows_each_trace_once(traces: Traces, sort: str) -> None:
    dice = random.Random(sort)

    def random_trace(trace_id: str) -> dict[str, Any]:
        return scored(trace_id, dice.choice([None, 0.0, 0.5, 1.0]), start=dice.randint(0, 5))

    held = [random_trace(f"held-{n}") for n in range(60)]
    await traces.upload(*held)
    done = asyncio.Event()

    async def keep_uploading() -> int:
        number = 0
        while not done.is_set():
            await traces.upload(random_trace(f"new-{number}"))
            number += 1
        return number

    uploading = asyncio.create_task(keep_uploading())
    try:
        shown = await traces.ids("traces", sort=sort, limit=3)
    finally:
        done.set()
        assert await uploading > 3
    assert len(shown) == len(set(shown))
    assert set(shown) >= {row["id"] for row in held}


async def test_a_cursor_serves_only_the_query_that_it_came_from(traces: Traces) -> None:
    await traces.upload(*(scored(f"t{n}", 1.0, run={"id": "r"}) for n in range(5)))
    cursor = (await traces.get("traces", limit=2, run_id="r"))["next_cursor"]
    for path, parameters in (
        ("traces", {}),
        ("traces", {"run_id": "s"}),
        ("traces", {"run_id": "r", "reward_min": 0}),
        ("traces", {"run_id": "r", "sort": "reward"}),
        ("traces", {"run_id": "r", "context.a": "b"}),
        ("episodes", {"run_id": "r"}),
        ("runs", {}),
    ):
        refused = await traces.refused(path, cursor=cursor, **parameters)
        assert refused == "400 invalid_cursor", (path, parameters)
    for junk in ("", "x", "é", cursor[:-1], cursor.swapcase(), cursor * 2):
        assert await traces.refused("traces", run_id="r", cursor=junk) == "400 invalid_cursor"
    # How much of the rest is wanted may change, and the default order may be named.
    rest = await traces.get("traces", limit=100, run_id="r", sort="created_at", cursor=cursor)
    assert [row["trace_id"] for row in rest["items"]] == ["t2", "t1", "t0"]
    other = traces.of_team("team-1")
    assert await other.refused("traces", run_id="r", cursor=cursor) == "400 invalid_cursor"


async def test_reads_show_the_newest_copy_alone(traces: Traces) -> None:
    first = await traces.upload(scored("t", 0.0, start=5, run={"id": "old"}))
    await traces.upload(trace("other", start=1))
    second = await traces.upload(scored("t", 1.0, start=0, run={"id": "new"}))
    rows = await traces.items("traces")
    assert [(row["trace_id"], row["upload_id"]) for row in rows][1:] == [("t", second)]
    assert rows[1]["score"]["reward"] == 1.0
    assert await traces.ids("traces", run_id="old") == []
    assert await traces.ids("traces", upload_id=[first]) == []
    assert (await traces.get("traces/t"))["created_at"] == format_time(START)
    assert (await traces.get("traces/t", raw=True))["run"] == {"id": "new"}


async def test_a_raw_document_is_what_was_uploaded(traces: Traces) -> None:
    line = b'{"id": "t",  "timing": {"start": %d.0}, "n": 1e2, "s": "\xc3\xbc \\u00fc"}' % START
    await traces.upload_bytes(line + b"\n")
    url = f"{traces.url}/traces/t?raw=true"
    async with traces.session.get(url, headers=traces.headers) as answer:
        assert answer.content_type == "application/json"
        assert await answer.read() == line
    assert (await traces.get("traces/t"))["size_bytes"] == len(line)


async def test_teams_and_users_see_their_own_traces(traces: Traces) -> None:
    team = traces.of_team("team-1")
    await traces.upload(trace("mine", run={"id": "r"}))
    await team.upload(episode("ep", trace("theirs", run={"id": "r"})), line_format="episode")
    assert await traces.ids("traces") == ["mine"]
    assert await team.ids("traces") == ["theirs"]
    assert await traces.of_team("").ids("traces") == ["mine"]
    for path in ("traces/theirs", "traces/theirs/nodes", "traces/theirs/calls"):
        assert await traces.refused(path) == "404 trace_not_found"
    assert await traces.refused("traces/theirs", "DELETE") == "404 trace_not_found"
    assert await traces.refused("episodes/ep") == "404 episode_not_found"
    assert await traces.refused("episodes/ep/traces") == "404 episode_not_found"
    assert (await traces.get("runs/r"))["trace_count"] == 1


async def test_ids_of_any_characters_are_found(traces: Traces) -> None:
    for trace_id in (".", "..", "a b", "ü%2F", "?#", "😀", "'\"; DROP TABLE traces"):
        await traces.upload(trace(trace_id))
        path = "traces/" + "".join(f"%{byte:02X}" for byte in trace_id.encode())
        url = f"{traces.url}/{path}"
        request = traces.session.get(URL(url, encoded=True), headers=traces.headers)
        async with request as answer:
            assert (await answer.json())["trace_id"] == trace_id


async def test_a_wrong_key_is_told_apart(traces: Traces) -> None:
    traces.headers["Authorization"] = "Bearer pit_wrong"
    for path in ("traces", "traces/t", "episodes", "runs", "runs/r/search"):
        assert await traces.refused(path) == "401 unauthenticated"


async def test_the_export_answers_as_the_contract_says(traces: Traces) -> None:
    assert await traces.ask("GET", "traces/export") == (500, {"detail": "Internal Server Error"})


async def test_lists_survive_a_restart(tmp_path: Any) -> None:
    async with aiohttp.ClientSession() as session:
        async with LocalPlatform(data_dir=tmp_path) as platform:
            await upload_two(Traces(platform, session))
        async with LocalPlatform(data_dir=tmp_path) as platform:
            rows = await Traces(platform, session).items("traces")
            assert sorted_ids(rows) == ["plain", "rich"]
            await platform.reset()
            assert await Traces(platform, session).items("traces") == []
