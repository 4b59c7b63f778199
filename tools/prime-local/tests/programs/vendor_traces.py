"""Uses everything that the vendor's traces client offers, and prints which calls it made, as JSON.

    python vendor_traces.py sync|async

Each answer is checked where it comes. Runs in an environment that holds the vendor's package, not
ours; the platform takes a second to index what is uploaded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from vendor_support import Counted, equal, methods, raises, until

from prime_traces import (
    AsyncTracesAPIClient,
    AsyncTracesClient,
    LineFormat,
    LineFormatConflictError,
    NotFoundError,
    TraceNotIndexedError,
    TracesAPIClient,
    TracesClient,
    ValidationRejectedError,
)

BEGAN = float(int(time.time()) - 3600)
MODEL = "acme/solver-8b"
CONTEXT = {"source": "nightly", "run_type": "train"}


def record(number: int, **fields: Any) -> dict[str, Any]:
    """A trace: number counts its step, its seconds and its tenths of a reward."""
    start = BEGAN + number
    question = {"role": "user", "content": f"What is {number}? Café \N{GRINNING FACE} Traceback"}
    answer = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Look it up first.",
        "tool_calls": [{"id": "c", "name": "search", "arguments": '{"word":"cold"}'}],
    }
    usage = {"prompt_tokens": 20, "completion_tokens": 10}
    span = {"start": start + 1, "end": start + 2}
    return {
        "id": f"tr-{number}",
        "run": {"id": "run-1", "type": "train", "work": {"type": "train", "step": number}},
        "task": {"key": "ladder", "hash": "4f" * 32, "data": {"name": f"task-{number}"}},
        "agent": {
            "name": "solver",
            "config": {"model": MODEL, "client": {"base_url": "https://api.pinference.ai/api/v1"}},
        },
        "tools": [{"name": "search", "description": "Looks a word up", "parameters": {}}],
        "nodes": [
            {"message": question, "timestamp": start},
            {"parent": 0, "message": answer, "sampled": True, "timestamp": start + 2},
            {"parent": 1, "message": {"role": "tool", "content": [{"type": "text", "text": "x"}]}},
        ],
        "calls": [
            {
                "node": 1,
                "model": MODEL,
                "finish_reason": "tool_calls",
                "usage": usage,
                "time": span,
            },
            {"node": 9, "model": MODEL, "finish_reason": "length", "usage": usage},
        ],
        "rewards": {"solved": {"score": number / 10, "weight": 1.0}},
        "metrics": {"turns": 1.0},
        "ok": True,
        "stop_condition": "done",
        "timing": {"start": start, "scoring": {"start": start, "end": start + 1.5}},
        **fields,
    }


class Produced:
    """A producer's object."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields

    def to_record(self) -> dict[str, Any]:
        return self._fields


def episode(name: str, *traces: dict[str, Any], **fields: Any) -> dict[str, Any]:
    env = {"id": "word-ladder", "name": None}
    return {"id": name, "env": env, "traces": list(traces), "ok": True, **fields}


def line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def write(name: str, *lines: bytes) -> None:
    Path(name).write_bytes(b"".join(lines))


def read(name: str) -> bytes:
    return Path(name).read_bytes()


def ids(page: Any) -> list[str]:
    return [item.trace_id for item in page.items]


async def all_of(items: Any) -> list[Any]:
    if isinstance(items, AsyncIterator):
        return [item async for item in items]
    return list(items)


async def uploads(client: Any, api: Any) -> dict[str, str]:
    """Uploads five traces of one run, three of them in episodes, and an episode of none."""
    batches: list[int] = []
    receipts = await client.upload_records(
        [record(1), Produced(**record(2, ok=False, stop_condition="max_turns"))],
        context=CONTEXT,
        on_batch=lambda batch, receipt: batches.append(batch.num_lines),
    )
    equal((len(receipts), receipts[0].status, batches), (1, "committed", [2]))
    again = await client.upload_records(
        [record(1), record(2, ok=False, stop_condition="max_turns")], compress=False
    )
    equal(again, receipts)

    errors = [{"type": "TeardownError", "message": "would not stop"}]
    lines = [
        line(episode("ep-1", record(3), record(4))),
        b"\n",
        line(episode("ep-2", run={"id": "run-1", "type": "eval"}, ok=False, errors=errors)),
    ]
    write("traces.jsonl", *lines)
    first, second = await client.upload_file(
        "traces.jsonl", line_format=LineFormat.EPISODE, context=CONTEXT, target_batch_bytes=10
    )
    last = (await client.upload_lines([line(record(5, rewards={}))], context={"source": "x"}))[0]

    body = line(record(6, run={"id": "run-2", "type": "eval"}))
    digest = hashlib.sha256(body).hexdigest()
    receipt = await api.upload_batch(body, f"sha256:{digest}", context={"run_type": "eval"})
    equal(receipt["upload_id"], digest)
    with raises(LineFormatConflictError):
        await client.upload_lines([body], line_format=LineFormat.EPISODE)
    with raises(ValidationRejectedError, "id"):
        await client.upload_records([record(7, id="")])
    with raises(ValidationRejectedError):
        await client.upload_records([record(7, timing={"start": 1.0})])
    return {
        "records": receipts[0].upload_id,
        "episode": first.upload_id,
        "memberless": second.upload_id,
        "lines": last.upload_id,
    }


async def lists(client: Any, uploaded: dict[str, str]) -> None:
    run: dict[str, Any] = {"run_id": "run-1"}
    equal(ids(await client.list(**run)), ["tr-5", "tr-4", "tr-3", "tr-2", "tr-1"])
    begins = datetime.fromtimestamp(BEGAN, timezone.utc)
    third = (begins + timedelta(seconds=3)).isoformat()
    found: list[tuple[dict[str, Any], list[str]]] = [
        ({"upload_id": uploaded["records"]}, ["tr-2", "tr-1"]),
        ({"upload_id": [uploaded["lines"], uploaded["episode"]]}, ["tr-5", "tr-4", "tr-3"]),
        ({**run, "environment_id": "word-ladder"}, ["tr-4", "tr-3"]),
        ({**run, "model_id": MODEL, "task_id": "task-2"}, ["tr-2"]),
        ({**run, "model_provider": "prime", "limit": 2}, ["tr-5", "tr-4"]),
        ({**run, "reward_min": 0.2, "reward_max": 0.3}, ["tr-3", "tr-2"]),
        ({**run, "outcome": "max_turns"}, ["tr-2"]),
        ({**run, "has_error": True}, ["tr-2"]),
        ({**run, "is_truncated": True, "context": {"source": "x"}}, ["tr-5"]),
        ({**run, "created_after": third, "context": CONTEXT}, ["tr-4", "tr-3"]),
        ({**run, "created_before": third}, ["tr-2", "tr-1"]),
        ({**run, "sort": "reward"}, ["tr-4", "tr-3", "tr-2", "tr-1", "tr-5"]),
        ({**run, "sort": "run_step", "limit": 1}, ["tr-5"]),
    ]
    for filters, expected in found:
        equal(ids(await client.list(**filters)), expected)
    page = await client.list(**run, limit=3)
    equal(ids(await client.list(**run, limit=3, cursor=page.next_cursor)), ["tr-2", "tr-1"])
    with raises(ValidationRejectedError):
        await client.list(run_id="run-2", limit=3, cursor=page.next_cursor)
    walked = await all_of(await client.iter(**run, limit=2))
    equal([trace.trace_id for trace in walked], ["tr-5", "tr-4", "tr-3", "tr-2", "tr-1"])


async def one_trace(client: Any, api: Any) -> None:
    summary = await client.get("tr-2")
    equal((summary.run_step, summary.task_id, summary.task_key), (2, "task-2", "ladder"))
    equal((summary.model.id, summary.model.provider), (MODEL, "prime"))
    equal((summary.score.reward, summary.score.outcome), (0.2, "max_turns"))
    equal((summary.duration_ms, summary.agent_name, summary.context), (1500, "solver", CONTEXT))
    equal(summary.created_at.timestamp(), BEGAN + 2)
    raw = await client.get_raw("tr-2")
    equal(json.loads(raw), record(2, ok=False, stop_condition="max_turns"))
    equal(summary.size_bytes, len(raw))
    equal(await client.download_raw("tr-2", "raw.json"), len(raw))
    equal(read("raw.json"), raw)
    chunks = await all_of(await api.stream_bytes("/traces/tr-2", {"raw": "true"}))
    equal(b"".join(chunks), raw)
    equal((await api.get_json("/traces/tr-2"))["trace_id"], "tr-2")
    for missing in (client.get, client.get_raw):
        with raises(NotFoundError):
            await missing("nobody's")
    with raises(ValueError):
        await client.get("a/b")


async def index(client: Any) -> None:
    await client.upload_records([record(8, run={"id": "run-3", "type": "eval"})])
    with raises(TraceNotIndexedError):
        await client.list_nodes("tr-8")

    async def nodes() -> Any:
        try:
            return await client.list_nodes("tr-8")
        except TraceNotIndexedError:
            return None

    page = await until(nodes, lambda found: found is not None)
    equal([(node.node_idx, node.parent_idx) for node in page.items], [(0, None), (1, 0), (2, 1)])
    equal((page.next_cursor, page.partial_index), (None, False))
    spoken = await client.list_nodes("tr-8", role=["assistant"], sampled=True)
    equal(spoken.items[0].message.tool_calls[0]["name"], "search")
    equal([node.node_idx for node in (await client.list_nodes("tr-8", after=0)).items], [1, 2])
    part = await client.list_nodes("tr-8", limit=2)
    rest = await client.list_nodes("tr-8", limit=2, cursor=part.next_cursor)
    equal([node.node_idx for node in rest.items], [2])
    calls = (await client.list_calls("tr-8")).items
    equal([(call.node_idx, call.time_start is None) for call in calls], [(1, False), (None, True)])
    cut = await client.list_calls("tr-8", model=[MODEL], finish_reason=["length"], limit=5)
    equal([call.call_idx for call in cut.items], [1])


async def episodes(client: Any, uploaded: dict[str, str]) -> None:
    equal({item.episode_id for item in (await client.list_episodes()).items}, {"ep-1", "ep-2"})
    found: list[tuple[dict[str, Any], list[str]]] = [
        ({"run_id": "run-1", "has_error": True}, ["ep-2"]),
        ({"upload_id": uploaded["memberless"]}, ["ep-2"]),
        ({"environment_id": "word-ladder", "run_step": 3}, ["ep-1"]),
        ({"step_min": 5}, []),
        ({"step_max": 3, "context": CONTEXT, "limit": 1}, ["ep-1"]),
    ]
    for filters, expected in found:
        page = await client.list_episodes(**filters)
        equal([item.episode_id for item in page.items], expected)
    detail = await client.get_episode("ep-1")
    equal((detail.traces.trace_count, detail.traces.agent_names), (2, ["solver"]))
    equal((detail.traces.total_duration_ms, detail.traces.any_trace_error), (3000, False))
    equal((await client.get_episode("ep-2")).error.type, "TeardownError")
    raw = json.loads(await client.get_episode_raw("ep-1"))
    equal(raw, {**episode("ep-1"), "traces": ["tr-3", "tr-4"]})
    equal(ids(await client.list_episode_traces("ep-1", reward_min=0.4)), ["tr-4"])
    equal(ids(await client.list_episode_traces("ep-2")), [])
    with raises(NotFoundError):
        await client.list_episode_traces("nobody's")


async def runs(client: Any) -> None:
    listed = (await client.list_runs()).items
    equal({run.run_id for run in listed}, {"run-1", "run-2", "run-3"})
    trained = (await client.list_runs(run_type="train", limit=10)).items
    evaluated = (
        await client.list_runs(run_type=["eval"], created_by=listed[0].first_user_id)
    ).items
    equal([run.run_id for run in evaluated], ["run-2"])
    # A run is of the type that its newest trace says.
    equal("run-1" in {run.run_id for run in trained}, False)
    run = await client.get_run("run-1")
    equal((run.trace_count, run.episode_count), (5, 1))
    equal((run.step_min, run.step_max, run.step_count), (1, 5, 5))
    equal((round(run.avg_reward, 6), run.has_error, run.model_ids), (0.25, True, [MODEL]))
    steps = await client.list_run_steps("run-1")
    equal([(step.step, step.trace_count) for step in steps.items], [(n, 1) for n in range(1, 6)])
    equal((await client.list_run_steps("nobody's")).step_count, 0)
    with raises(NotFoundError):
        await client.get_run("nobody's")


async def search(client: Any) -> None:
    async def whole() -> Any:
        return await client.search("Traceback", run_id="run-1")

    page = await until(whole, lambda found: not found.coverage.unindexed_trace_ids)
    equal(ids(page), [f"tr-{number}" for number in range(1, 6)])
    match = page.items[0]
    text = record(1)["nodes"][0]["message"]["content"]
    equal(text[match.match_start : match.match_end], "Traceback")
    equal(match.excerpt[match.match_start - match.excerpt_start :], "Traceback")
    equal((match.node_idx, match.role, match.representation), (0, "user", "text"))
    equal(page.coverage.examined_traces, 5)
    run: dict[str, Any] = {"run_id": "run-1"}
    equal((await client.search("traceback", **run)).items, [])
    thought = await client.search("up first", field="reasoning_content", run_step=3, **run)
    equal(ids(thought), ["tr-3"])
    called = await client.search("search", field="tool_calls", role="assistant", limit=2, **run)
    equal((ids(called), called.items[0].representation), (["tr-1", "tr-2"], "json"))
    rest = await client.search(
        "search", field="tool_calls", role="assistant", limit=2, cursor=called.next_cursor, **run
    )
    equal((ids(rest), rest.coverage), (["tr-3", "tr-4"], None))
    narrowed = {"has_error": False, "reward_min": 0.1, "reward_max": 0.3}
    equal(ids(await client.search("Café", **narrowed, **run)), ["tr-1", "tr-3"])
    with raises(NotFoundError):
        await client.search("text", run_id="nobody's")


async def deletes(client: Any, api: Any) -> None:
    with raises(NotFoundError):
        await client.delete("tr-3", created_at="2020-01-01T00:00:00Z")
    await client.delete("tr-3", created_at=(await client.get("tr-3")).created_at.isoformat())
    await client.delete("tr-4")
    for gone in (client.delete, client.get):
        with raises(NotFoundError):
            await gone("tr-4")
    equal((await client.get_episode("ep-1")).traces.trace_count, 0)
    await client.delete_run("run-1")
    with raises(NotFoundError):
        await client.delete_run("run-1")
    await api.delete("/traces", {"run_id": "run-2"})
    await client.delete("tr-8")
    equal((await client.list()).items, [])
    equal(len((await client.list_episodes()).items), 2)


async def use(kind: str) -> dict[str, list[str]]:
    calls: list[str] = []
    asynchronous = kind == "async"
    bare_api: Any = AsyncTracesAPIClient() if asynchronous else TracesAPIClient()
    bare: Any = AsyncTracesClient() if asynchronous else TracesClient()
    client, api = Counted(bare, calls), Counted(bare_api, calls)
    uploaded = await uploads(client, api)
    await lists(client, uploaded)
    await one_trace(client, api)
    await index(client)
    await episodes(client, uploaded)
    await runs(client)
    await search(client)
    await deletes(client, api)
    for each in (client, api):
        await (each.aclose() if asynchronous else each.close())
    return {"calls": calls, "offered": [*methods(bare), *methods(bare_api)]}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(use(sys.argv[1]))))
