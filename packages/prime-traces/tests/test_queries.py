"""What queries send and make of the answers, against scripted bytes."""

from __future__ import annotations

import urllib.parse
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from raw_server import RawServer, answer

from prime_traces import (
    AsyncTracesClient,
    ValidationRejectedError,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_retries")]

UPLOAD = "0f" * 32
TIME = "2026-08-01T16:00:00.250Z"
MOMENT = datetime(2026, 8, 1, 16, 0, 0, 250_000, tzinfo=timezone.utc)
TRACE: dict[str, object] = {
    "trace_id": "tr-1",
    "upload_id": UPLOAD,
    "episode_id": None,
    "created_at": TIME,
    "ingested_at": TIME,
    "run_id": "run-1",
    "run_step": 12,
    "environment_id": None,
    "model": {"provider": "prime", "id": "acme/solver-8b"},
    "task_id": "ladder-0042",
    "agent_name": "solver",
    "score": {"reward": 0.0, "outcome": "done"},
    "execution": {"has_error": False, "is_truncated": True},
    "duration_ms": 41500,
    "total_tokens": 3120,
    "size_bytes": 18044,
    "context": {"source": "nightly"},
    "metrics": {"turns": 4, "unknown": None},
    "activity": {"total_entries": 9},
    "tool_definitions": [{"name": "search", "parameters": {"type": "object"}}],
    "colour": "green",
}
NODE = {
    "node_idx": 2,
    "parent_idx": 1,
    "timestamp": 1785600004.5,
    "sampled": True,
    "message": {"role": "assistant", "content": [{"type": "text"}], "tool_calls": [{"id": "c"}]},
}
CALL: dict[str, object] = {
    "call_idx": 1,
    "node_idx": None,
    "time_start": None,
    "time_end": None,
    "model": "m",
}
EPISODE = {
    "episode_id": "ep-1",
    "upload_id": UPLOAD,
    "schema_version": 1,
    "created_at": TIME,
    "ingested_at": TIME,
    "run_id": None,
    "environment_id": "word-ladder",
    "outcome": None,
    "has_error": True,
    "error": {"type": "TeardownError", "message": "container would not stop"},
}
TOTALS = {
    "trace_count": 2,
    "total_tokens": 6240,
    "total_duration_ms": 83000,
    "any_trace_error": False,
    "agent_names": ["judge", "solver"],
}
RUN = {
    "run_id": "run-1",
    "first_trace_created_at": TIME,
    "last_trace_created_at": TIME,
    "last_trace_ingested_at": TIME,
    "trace_count": 40,
    "episode_count": 0,
    "avg_reward": None,
    "step_count": 0,
    "has_error": False,
    "environment_ids": [],
    "model_ids": ["acme/solver-8b"],
    "context": {"run_type": "eval"},
}
STEPS = {
    "step_min": 0,
    "step_max": 0,
    "step_count": 1,
    "items": [{"step": 0, "trace_count": 2, "episode_count": 1, "avg_reward": 0.5}],
}
MATCH = {
    "trace_id": "tr-1",
    "upload_id": UPLOAD,
    "generation": 1,
    "episode_id": None,
    "node_idx": 3,
    "role": "tool",
    "field": "content",
    "representation": "text",
    "match_start": 4,
    "match_end": 13,
    "excerpt": "ran\nTraceback (most",
    "excerpt_start": 0,
}
COVERAGE = {"examined_traces": 511, "unindexed_trace_ids": ["tr-9"], "partial_index": False}

Ask = Callable[[AsyncTracesClient], Awaitable[Any]]


def page(*items: object, cursor: str | None = None, **more: object) -> dict[str, object]:
    return {"items": list(items), "next_cursor": cursor, **more}


ASKED: list[tuple[Ask, str, dict[str, object], Callable[[Any], object], object]] = [
    (
        lambda c: c.list(run_id="run-1", upload_id=UPLOAD, sort="reward", limit=3),
        f"/traces?run_id=run-1&upload_id={UPLOAD}&sort=reward&limit=3",
        page(TRACE, cursor="next"),
        lambda p: (p.items[0].score.reward, p.items[0].colour, p.next_cursor),
        (0.0, "green", "next"),
    ),
    (
        lambda c: c.get("tr 1/".rstrip("/")),
        "/traces/tr%201",
        TRACE,
        lambda t: (
            t.created_at,
            t.metrics,
            t.activity.total_entries,
            t.tool_definitions[0]["name"],
        ),
        (MOMENT, {"turns": 4.0, "unknown": None}, 9, "search"),
    ),
    (
        lambda c: c.list_nodes("..", role=["assistant", "tool"], sampled=True, after=1),
        "/traces/%2E%2E/nodes?role=assistant&role=tool&sampled=true&after=1",
        page(NODE, partial_index=True),
        lambda p: (p.partial_index, p.items[0].message.content, p.items[0].message.tool_calls),
        (True, [{"type": "text"}], [{"id": "c"}]),
    ),
    (
        lambda c: c.list_calls(".", model="m", finish_reason=["length"], cursor="c"),
        "/traces/%2E/calls?model=m&finish_reason=length&cursor=c",
        page(CALL, partial_index=False),
        lambda p: (p.items[0].call_idx, p.items[0].node_idx, p.items[0].endpoint),
        (1, None, None),
    ),
    (
        lambda c: c.list_episodes(step_min=-1, has_error=True, context={"source": "nightly"}),
        "/episodes?has_error=true&step_min=-1&context.source=nightly",
        page(EPISODE),
        lambda p: (p.items[0].error.type, p.items[0].has_error, p.next_cursor),
        ("TeardownError", True, None),
    ),
    (
        lambda c: c.get_episode("ep-1"),
        "/episodes/ep-1",
        {**EPISODE, "traces": TOTALS},
        lambda e: (e.episode_id, e.traces.agent_names),
        ("ep-1", ["judge", "solver"]),
    ),
    (
        lambda c: c.list_episode_traces("ep-1", reward_max=1, created_after=MOMENT),
        "/episodes/ep-1/traces?reward_max=1&created_after=2026-08-01T16%3A00%3A00.250000%2B00%3A00",
        page(),
        lambda p: p.items,
        [],
    ),
    (
        lambda c: c.list_runs(run_type=["eval", "train"], created_by="usr-7", limit=100),
        "/runs?run_type=eval&run_type=train&created_by=usr-7&limit=100",
        page(RUN),
        lambda p: p.items[0].model_ids,
        ["acme/solver-8b"],
    ),
    (
        lambda c: c.get_run("a?b"),
        "/runs/a%3Fb",
        RUN,
        lambda r: (r.avg_reward, r.step_min, r.context, r.first_user_id),
        (None, None, {"run_type": "eval"}, None),
    ),
    (lambda c: c.list_run_steps("run-1"), "/runs/run-1/steps", STEPS, lambda s: s.items[0].step, 0),
    (
        lambda c: c.search("Traceback (é", run_id="run-1", role="tool", run_step=3),
        "/runs/run-1/search?query=Traceback+%28%C3%A9&field=content&role=tool&run_step=3&limit=50",
        page(MATCH, coverage=COVERAGE),
        lambda p: (p.items[0].match_start, p.coverage.unindexed_trace_ids),
        (4, ["tr-9"]),
    ),
]


@pytest.mark.parametrize(
    ("ask", "target", "body", "look", "seen"), ASKED, ids=[target for _, target, *_ in ASKED]
)
async def test_a_query_asks_and_reads(
    either: AsyncTracesClient,
    server: RawServer,
    ask: Ask,
    target: str,
    body: dict[str, object],
    look: Callable[[Any], object],
    seen: object,
) -> None:
    server.steps = [answer(200, body)]
    assert look(await ask(either)) == seen
    assert server.targets == [f"GET /api/v1{target}"]


SLASHED: list[Ask] = [
    lambda c: c.get("a/b"),
    lambda c: c.get_raw("a/b"),
    lambda c: c.download_raw("a/b", "never"),
    lambda c: c.list_nodes("a/b"),
    lambda c: c.list_calls("a/b"),
    lambda c: c.delete("a/b"),
    lambda c: c.get_episode("a/b"),
    lambda c: c.get_episode_raw("a/b"),
    lambda c: c.list_episode_traces("a/b"),
    lambda c: c.get_run("a/b"),
    lambda c: c.list_run_steps("a/b"),
    lambda c: c.search("text", run_id="a/b"),
    lambda c: c.iter_nodes("a/b").__anext__(),
    lambda c: c.iter_calls("a/b").__anext__(),
    lambda c: c.iter_episode_traces("a/b").__anext__(),
    lambda c: c.iter_search("text", run_id="a/b").__anext__(),
]


@pytest.mark.parametrize("ask", SLASHED)
async def test_an_id_with_a_slash_is_refused_before_anything_is_sent(
    either: AsyncTracesClient, server: RawServer, ask: Ask
) -> None:
    with pytest.raises(ValueError, match="is an id without '/'"):
        await ask(either)
    assert server.requests == []


WRONG: list[tuple[Ask, str]] = [
    (lambda c: c.list(limit=101), "limit is 1 to 100"),
    (lambda c: c.iter(limit=0).__anext__(), "limit is 1 to 100"),
    (lambda c: c.list_nodes("t", after=1, cursor="c"), "after or cursor, not both"),
    (lambda c: c.list_nodes("t", wait_for_index=0), "wait_for_index is a number of seconds"),
    (lambda c: c.list_episodes(created_after=datetime(2026, 1, 1)), "created_after needs a time"),
    (lambda c: c.search("ab", run_id="r"), "query is 3 to 256 characters"),
    (lambda c: c.delete_run(""), "delete_run needs a run_id"),
    (lambda c: c.delete("t", created_at="yesterday"), "created_at is a time such as"),
]


@pytest.mark.parametrize(("ask", "words"), WRONG)
async def test_a_wrong_argument_is_refused_before_anything_is_sent(
    either: AsyncTracesClient, server: RawServer, ask: Ask, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        await ask(either)
    assert server.requests == []


@pytest.mark.parametrize(
    "walk",
    [
        lambda c: c.iter(nonsense=1),
        lambda c: c.iter(run_step=1),
        lambda c: c.iter_nodes("t", nonsense=1),
        lambda c: c.iter_calls("t", role="user"),
        lambda c: c.iter_episodes(task_id="x"),
        lambda c: c.iter_episode_traces("e", upload_id=UPLOAD),
        lambda c: c.iter_runs(outcome="x"),
        lambda c: c.iter_search("text", run_id="r", sampled=True),
    ],
)
async def test_a_filter_that_there_is_not_is_refused(
    either: AsyncTracesClient, server: RawServer, walk: Callable[[Any], Any]
) -> None:
    with pytest.raises(TypeError, match="there is no filter '"):
        await anext(walk(either))
    assert server.requests == []


async def test_a_search_takes_one_role(client: AsyncTracesClient, server: RawServer) -> None:
    with pytest.raises(TypeError, match="role is a string, not list"):
        await client.search("text", run_id="r", role=["user"])  # type: ignore[arg-type]
    assert server.requests == []


def queries(server: RawServer) -> list[dict[str, str]]:
    """The parameters of each request."""
    targets = [urllib.parse.urlsplit(request.target) for request in server.requests]
    return [dict(urllib.parse.parse_qsl(target.query)) for target in targets]


PAGED: list[tuple[Callable[[AsyncTracesClient], Any], dict[str, object], dict[str, str]]] = [
    (lambda c: c.iter(outcome="done"), TRACE, {"outcome": "done"}),
    (lambda c: c.iter_nodes("t", role="user"), {**NODE, "parent_idx": None}, {"role": "user"}),
    (lambda c: c.iter_calls("t", model=["m"]), CALL, {"model": "m"}),
    (lambda c: c.iter_episodes(run_step=3), EPISODE, {"run_step": "3"}),
    (lambda c: c.iter_episode_traces("e", task_id="x"), TRACE, {"task_id": "x"}),
    (lambda c: c.iter_runs(run_type="eval"), RUN, {"run_type": "eval"}),
    (lambda c: c.iter_search("text", run_id="r", role="tool"), MATCH, {"role": "tool"}),
]


@pytest.mark.parametrize(("ask", "item", "filters"), PAGED)
async def test_all_pages_are_asked_for_by_the_same_filters(
    either: AsyncTracesClient,
    server: RawServer,
    ask: Callable[[AsyncTracesClient], Any],
    item: dict[str, object],
    filters: dict[str, str],
) -> None:
    server.steps = [
        answer(200, page(item, cursor="one", partial_index=False)),
        answer(200, page(cursor="two", partial_index=False)),
        answer(200, page(item, item, partial_index=False)),
    ]
    assert len([found async for found in ask(either)]) == 3
    sent = queries(server)
    assert all(query.items() >= {**filters, "limit": "100"}.items() for query in sent)
    assert [query.get("cursor") for query in sent] == [None, "one", "two"]


async def test_a_walk_begins_where_it_is_told_to(
    client: AsyncTracesClient, server: RawServer
) -> None:
    server.steps = [
        answer(200, page(NODE, cursor="one", partial_index=False)),
        answer(200, page(NODE, partial_index=False)),
        answer(200, page(TRACE)),
    ]
    assert len([node async for node in client.iter_nodes("t", after=6, limit=7)]) == 2
    assert len([trace async for trace in client.iter(cursor="there", limit=7)]) == 1
    assert queries(server) == [
        {"after": "6", "limit": "7"},
        {"cursor": "one", "limit": "7"},
        {"cursor": "there", "limit": "7"},
    ]


async def test_a_cursor_of_other_filters_is_the_callers_error(
    either: AsyncTracesClient, server: RawServer
) -> None:
    error = {"error": {"code": "invalid_cursor", "message": "cursor does not match this query"}}
    server.steps = [answer(400, error)]
    with pytest.raises(ValidationRejectedError, match="does not match this query") as caught:
        await either.list(cursor="c")
    assert (caught.value.code, len(server.requests)) == ("invalid_cursor", 1)
