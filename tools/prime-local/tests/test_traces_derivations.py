"""What is derived from records: summaries, nodes, calls, episodes and sessions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from trace_uploads import lines

from prime_local.traces import derivation
from prime_local.traces.derivation import Derived
from prime_local.traces.validation import Line, LineFormat, UploadChecks

START = 1_785_600_000.25
NOW = START + 3600


def parse(record: object, line_format: LineFormat = "trace") -> Line:
    (line,) = UploadChecks(line_format, NOW).lines([lines(record)])
    return line


def derive(**fields: Any) -> Derived:
    timing = {"start": START, **fields.pop("timing", {})}
    return parse({"id": "t", "timing": timing, **fields}).traces[0]


def fact(name: str, **fields: Any) -> Any:
    return getattr(derive(**fields).facts, name)


def node(role: str = "user", parent: Any = None, **fields: Any) -> dict[str, Any]:
    return {"parent": parent, "message": {"role": role, **fields}}


def used(at: Any, total: int | None = None, **fields: int) -> dict[str, Any]:
    usage = fields if total is None else {"total_tokens": total, **fields}
    return {"node": at, "usage": usage}


def test_a_bare_trace_has_nothing_but_id_and_time() -> None:
    derived = derive()
    assert derived.facts._asdict() == {
        "trace_id": "t",
        "created_at": START,
        "run_id": None,
        "run_step": None,
        "model_id": None,
        "model_provider": None,
        "task_id": None,
        "task_key": None,
        "task_hash": None,
        "agent_name": None,
        "reward": None,
        "outcome": None,
        "has_error": False,
        "is_truncated": False,
        "duration_ms": 0,
        "total_tokens": 0,
        "metrics": None,
        "activity": '{"total_entries": 0, "user_messages": 0, "model_turns": 0, "tool_calls": 0}',
        "tool_definitions": None,
    }
    assert (derived.nodes, derived.calls, derived.capped) == ([], [], False)


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        ({"scoring": {"end": START + 41.5}}, 41_500),
        ({"scoring": {"end": START + 1}, "agent": {"end": START + 9}}, 1_000),
        ({"scoring": {"end": 0}, "agent": {"end": START + 9}, "boot": {"end": START + 2}}, 9_000),
        ({"setup": {"end": START + 0.0004}, "finalize": {"end": None}}, 0),
        ({"agent": {"end": START - 5}}, 0),
        ({"agent": {"end": "soon"}, "boot": 5}, 0),
    ],
)
def test_duration_ends_with_scoring_or_the_last_phase(timing: Any, expected: int) -> None:
    assert fact("duration_ms", timing=timing) == expected


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ({}, None),
        ({"a": None}, None),
        ({"a": {"score": 0.0}}, 0.0),
        ({"a": {"score": 1.0}, "b": {"score": 0.5, "weight": 0.5}, "c": None}, 1.25),
        ({"a": {"score": 2, "weight": -1}}, -2.0),
        ({"a": {"score": "high"}, "b": {"score": 1}}, 1.0),
        ({"a": {"score": 1e308}, "b": {"score": 1e308}}, None),
        ([1], None),
    ],
)
def test_reward_is_the_weighted_sum_of_what_was_scored(rewards: Any, expected: Any) -> None:
    assert fact("reward", rewards=rewards) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ok": True, "errors": [{}]}, False),
        ({"ok": False}, True),
        ({"ok": None}, True),
        ({"errors": [{}]}, True),
        ({"errors": []}, False),
    ],
)
def test_ok_tells_of_errors_and_else_the_list(fields: Any, expected: bool) -> None:
    assert fact("has_error", **fields) is expected


def test_truncation_is_a_stop_condition_or_the_last_calls_length() -> None:
    for condition in ("max_turns", "context_length", "compaction_failed", "max_total_tokens"):
        assert fact("is_truncated", stop_condition=condition)
    assert not fact("is_truncated", stop_condition="done")
    cut, failed = {"finish_reason": "length"}, {"finish_reason": "stop", "error": {"type": "x"}}
    assert fact("is_truncated", calls=[{"finish_reason": "stop"}, cut, failed])
    assert not fact("is_truncated", calls=[cut, {"finish_reason": "stop"}])
    assert fact("outcome", stop_condition="done") == "done"


def test_tokens_are_those_of_the_last_call_of_each_branch() -> None:
    nodes = [node(), node("assistant", 0), node("user", 1), node("assistant", 2)]
    chain = [used(1, 100), used(3, prompt_tokens=150, cached_input_tokens=40, completion_tokens=9)]
    assert fact("total_tokens", nodes=nodes, calls=chain) == 199
    # A second branch from the first answer, whose context is counted with it again.
    forked = [*nodes, node("user", 1), node("assistant", 4)]
    assert fact("total_tokens", nodes=forked, calls=[*chain, used(5, 130)]) == 329
    # Calls without a node form one branch of their own.
    loose = [used(None, 7), used(99, 8), {"node": None, "usage": None}]
    assert fact("total_tokens", nodes=nodes, calls=[*chain, *loose]) == 207
    assert fact("total_tokens", calls=loose) == 8


def test_odd_graphs_are_no_error() -> None:
    nodes = [node(parent=0), node(parent=2), node(parent=1), node(parent=-1), node(parent=True)]
    assert fact("total_tokens", nodes=nodes, calls=[used(0, 1), used(2, 10)]) == 11
    assert fact("total_tokens", nodes=nodes, calls=[used(0, 2**80), used(0, -5)]) == 0


def test_model_provider_task_agent_and_run() -> None:
    def config(url: str) -> dict[str, Any]:
        return {"config": {"model": "acme/8b", "client": {"base_url": url}}, "name": "solver"}

    facts = derive(
        agent=config("https://api.pinference.ai/v1"),
        task={"key": "k", "hash": "h", "data": {"id": "i", "name": "n"}},
        run={"id": "r", "work": {"step": 12}},
        calls=[{"model": "other"}],
    ).facts
    assert (facts.model_id, facts.model_provider) == ("acme/8b", "prime")
    assert (facts.task_id, facts.task_key, facts.task_hash) == ("i", "k", "h")
    assert (facts.agent_name, facts.run_id, facts.run_step) == ("solver", "r", 12)
    for url in ("https://pinference.ai.evil.test", "http://[", "https://xpinference.ai"):
        assert fact("model_provider", agent=config(url)) is None
    assert fact("model_id", calls=[{"model": "other"}]) == "other"
    assert fact("task_id", task={"data": {"name": "n", "idx": 4}}) == "n"
    for step in (True, "3", 1.5, 2**70, None):
        assert fact("run_step", run={"work": {"step": step}}) is None


def test_metrics_tools_and_activity() -> None:
    facts = derive(
        metrics={"turns": 4.0, "lost": None, "odd": "x", "é": 1},
        tools=[{"name": "search", "parameters": {"type": "object"}}],
        nodes=[
            node(),
            {**node("assistant", tool_calls=[{"id": 1}, {"id": 2}]), "sampled": True},
            node("tool", tool_calls={}),
            None,
        ],
    ).facts
    assert json.loads(facts.metrics or "") == {"turns": 4.0, "lost": None, "é": 1}
    assert json.loads(facts.tool_definitions or "")[0]["name"] == "search"
    counts = {"total_entries": 4, "user_messages": 1, "model_turns": 1, "tool_calls": 2}
    assert json.loads(facts.activity) == counts
    assert fact("metrics", metrics=[1]) is None
    assert fact("tool_definitions", tools=["search"]) is None


def test_nodes_keep_their_text_and_the_json_as_recorded() -> None:
    source = (
        b'{"id":"t","timing":{"start":%f},"nodes":['
        b'{"parent":null,"sampled":true,"timestamp":5.5,"message":{"role":"assistant",'
        b'"content":"caf\\u00e9","reasoning_content":"why","tool_calls":[ {"a": 1.0e2} ],'
        b'"tool_call_id":"c","name":"n","tool_name":"tn"}},'
        b'{"semantic_parents":[{"node":0,"type":"x"}],'
        b'"message":{"role":5,"content":[ 1 , "\\u00e9" ]}},'
        b'{"semantic_parents":[0],"message":{"role":"user","content":null,"reasoning_content":[]}},'
        b'{"timestamp":"x","message":"odd"}]}' % START
    )
    (line,) = UploadChecks("trace", NOW).lines([source])
    first, second, third, fourth = line.traces[0].nodes
    assert tuple(first) == (
        *(0, None, 5.5, True, "assistant", "café", "text", "why", '[ {"a": 1.0e2} ]'),
        *("c", "n", "tn"),
    )
    assert (second.parent_idx, second.role) == (0, None)
    assert (second.content, second.content_kind) == ('[ 1 , "\\u00e9" ]', "json")
    assert (third.parent_idx, third.content, third.content_kind) == (0, None, None)
    assert third.reasoning_content is None
    assert fourth == derivation.NodeRow(3, *(None,) * 2, False, *(None,) * 8)


def test_calls_have_both_times_or_none_and_a_node_that_exists() -> None:
    def call(node: Any, start: Any = None, end: Any = None) -> dict[str, Any]:
        return {"node": node, "time": {"start": start, "end": end}, "model": "m"}

    calls = [call(0, 1.0, 1.0), call(1, 1.0), call(-1, 2.0, 1.0), call(True, None, 1), {"time": 1}]
    found = derive(nodes=[node()], calls=calls).calls
    assert tuple(found[0]) == (0, 0, 1.0, 1.0, "m", None, None)
    assert [row.call_idx for row in found] == [0, 1, 2, 3, 4]
    assert {(row.node_idx, row.time_start, row.time_end) for row in found[1:]} == {(None,) * 3}


def test_the_index_stops_at_its_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, "INDEX_CAP", 3)
    for field, item in (("nodes", node()), ("calls", {})):
        assert not derive(**{field: [item] * 3}).capped
        derived = derive(**{field: [item] * 4})
        assert derived.capped
        assert len(getattr(derived, field)) == 3
    assert json.loads(derive(nodes=[node()] * 5).facts.activity)["total_entries"] == 5


def test_an_episode_has_members_and_an_envelope() -> None:
    timing = f'"timing":{{"start":{START}}}'
    member = f'{{"id": "a" , {timing}, "run":{{"id":"r"}}}}'
    source = (
        f'{{"id":"e","x":[ 1.0 ],"traces":[{member}, {{"id":"b",{timing}}}],'
        '"env":{"id":"words"},"run":{"id":"own"},"outcome":"won","ok":false,'
        '"errors":[{"type":"First"},{"type":"Last","message":"m"}]}\n'
    )
    (line,) = UploadChecks("episode", NOW).lines([source.encode()])
    assert line.documents[0].decode() == member
    assert [trace.facts.trace_id for trace in line.traces] == ["a", "b"]
    assert line.episode == derivation.EpisodeFacts("e", "r", "words", "won", True, "Last", "m")
    assert b'"x":[ 1.0 ],"traces":["a","b"],"env"' in line.envelope


def test_an_episode_without_members_tells_its_own_run() -> None:
    line = parse({"id": "e", "traces": [], "run": {"id": "own"}}, "episode")
    assert line.episode == derivation.EpisodeFacts("e", "own", None, None, False, None, None)
    member = {"id": "a", "timing": {"start": START}}
    line = parse({"id": "e", "traces": [member], "run": {"id": "own"}, "errors": [5]}, "episode")
    assert line.episode is not None
    assert (line.episode.run_id, line.episode.has_error) == (None, True)
    assert line.traces[0].facts.run_id is None


def test_a_session_is_read_by_its_messages() -> None:
    def entry(entry_id: str, parent: str | None, second: int, **fields: Any) -> dict[str, Any]:
        date = f"2026-08-01T16:00:{second:02}.500Z"
        return {"id": entry_id, "parentId": parent, "timestamp": date, **fields}

    def message(role: str, **fields: Any) -> dict[str, Any]:
        return {"type": "message", "message": {"role": role, "content": role, **fields}}

    answer = message("assistant", model="m", provider="p", stopReason="length")
    answer["message"]["usage"] = {"totalTokens": 77}
    session = [
        entry("s", None, 0, type="session", version=3, cwd="/"),
        entry("1", None, 1, **message("user")),
        entry("2", "1", 2, type="model_change"),
        entry("3", "2", 3, **answer),
        entry("4", "3", 4, **message("toolResult", toolName="bash", toolCallId="c")),
    ]
    (line,) = UploadChecks("prime_agent", NOW).lines([lines(session)])
    facts, nodes = line.traces[0].facts, line.traces[0].nodes
    assert (facts.trace_id, facts.created_at) == ("s", 1_785_600_000.5)
    assert (facts.model_id, facts.model_provider, facts.total_tokens) == ("m", "p", 77)
    assert (facts.duration_ms, facts.is_truncated, facts.has_error) == (4_000, True, False)
    assert [row.parent_idx for row in nodes] == [None, 0, 1]
    assert [row.role for row in nodes] == ["user", "assistant", "toolResult"]
    assert (nodes[2].tool_name, nodes[2].tool_call_id, nodes[1].sampled) == ("bash", "c", True)
    (call,) = line.traces[0].calls
    assert (call.node_idx, call.model, call.finish_reason) == (1, "m", "length")
    assert line.documents == [lines(session)[:-1]]
