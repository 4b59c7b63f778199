"""The indexed nodes and calls of a trace over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trace_queries import Traces, saying, trace

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def traces(open_platform: OpenPlatform) -> Traces:
    platform, client = await open_platform()
    return Traces(platform, client.session)


PARTS = [{"type": "text", "text": "look \u00fc"}, {"type": "image", "n": 1.5}]
CALLED = [{"id": "call-1", "name": "search", "arguments": '{"word":"cold"}'}]
NODES = [
    {"message": {"role": "system", "content": "be brief"}},
    {"parent": 0, "timestamp": 12.5, "message": {"role": "user", "content": PARTS}},
    {
        "parent": 1,
        "sampled": True,
        "message": {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Try it.",
            "tool_calls": CALLED,
        },
    },
    {
        "semantic_parents": [{"node": 2, "type": "tool"}],
        "message": {
            "role": "tool",
            "content": "42",
            "tool_call_id": "call-1",
            "name": "n",
            "tool_name": "search",
        },
    },
]
CALLS = [
    {
        "node": 2,
        "model": "acme/8b",
        "endpoint": "/chat",
        "finish_reason": "tool_calls",
        "time": {"start": 1.0, "end": 4.5},
    },
    {"node": 9, "model": "other", "time": {"start": 5.0, "end": 4.5}, "finish_reason": "length"},
    {"model": "acme/8b", "finish_reason": "stop"},
]
EMPTY: dict[str, Any] = {
    "content": None,
    "reasoning_content": None,
    "tool_calls": None,
    "tool_call_id": None,
    "name": None,
    "tool_name": None,
}


async def places(traces: Traces, path: str, **parameters: Any) -> list[int]:
    kind = "call" if "calls" in path else "node"
    return [row[f"{kind}_idx"] for row in await traces.items(path, **parameters)]


async def test_nodes_come_as_they_were_recorded(traces: Traces) -> None:
    await traces.upload(trace("t", nodes=NODES))
    page = await traces.get("traces/t/nodes")
    assert (page["next_cursor"], page["partial_index"]) == (None, False)
    system, user, assistant, tool = page["items"]
    assert system == {
        "node_idx": 0,
        "parent_idx": None,
        "timestamp": None,
        "sampled": False,
        "message": {**EMPTY, "role": "system", "content": "be brief"},
    }
    assert (user["parent_idx"], user["timestamp"]) == (0, 12.5)
    assert user["message"]["content"] == PARTS
    assert assistant["sampled"] is True
    assert assistant["message"] == {
        **EMPTY,
        "role": "assistant",
        "reasoning_content": "Try it.",
        "tool_calls": CALLED,
    }
    assert tool["parent_idx"] == 2
    assert tool["message"] == {
        **EMPTY,
        "role": "tool",
        "content": "42",
        "tool_call_id": "call-1",
        "name": "n",
        "tool_name": "search",
    }


async def test_calls_come_with_a_span_or_none(traces: Traces) -> None:
    await traces.upload(trace("t", nodes=NODES, calls=CALLS))
    page = await traces.get("traces/t/calls")
    assert (page["next_cursor"], page["partial_index"]) == (None, False)
    assert page["items"] == [
        {
            "call_idx": 0,
            "node_idx": 2,
            "time_start": 1.0,
            "time_end": 4.5,
            "model": "acme/8b",
            "endpoint": "/chat",
            "finish_reason": "tool_calls",
        },
        {
            "call_idx": 1,
            "node_idx": None,
            "time_start": None,
            "time_end": None,
            "model": "other",
            "endpoint": None,
            "finish_reason": "length",
        },
        {
            "call_idx": 2,
            "node_idx": None,
            "time_start": None,
            "time_end": None,
            "model": "acme/8b",
            "endpoint": None,
            "finish_reason": "stop",
        },
    ]


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"role": "tool"}, [3]),
        ({"role": ["assistant", "user", "user"]}, [1, 2]),
        ({"role": "Tool"}, []),
        ({"sampled": True}, [2]),
        ({"sampled": False}, [0, 1, 3]),
        ({"sampled": False, "role": ["user", "assistant"]}, [1]),
        ({"after": 1}, [2, 3]),
        ({"after": -1}, [0, 1, 2, 3]),
        ({"after": 2**63 - 1}, []),
    ],
)
async def test_nodes_are_filtered(
    traces: Traces, parameters: dict[str, Any], expected: list[int], limit: int
) -> None:
    await traces.upload(trace("t", nodes=NODES))
    if "after" in parameters:
        page = await traces.get("traces/t/nodes", **parameters)
        assert [row["node_idx"] for row in page["items"]] == expected
    else:
        assert await places(traces, "traces/t/nodes", limit=limit, **parameters) == expected


@pytest.mark.parametrize("limit", [1, 100])
@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [0, 1, 2]),
        ({"model": "acme/8b"}, [0, 2]),
        ({"model": ["acme/8b", "other"], "finish_reason": ["stop", "length"]}, [1, 2]),
        ({"finish_reason": "none"}, []),
    ],
)
async def test_calls_are_filtered(
    traces: Traces, parameters: dict[str, Any], expected: list[int], limit: int
) -> None:
    await traces.upload(trace("t", nodes=NODES, calls=CALLS))
    assert await places(traces, "traces/t/calls", limit=limit, **parameters) == expected


async def test_a_walk_may_begin_after_a_node_and_go_on_by_cursor(traces: Traces) -> None:
    await traces.upload(trace("t", nodes=NODES))
    page = await traces.get("traces/t/nodes", after=0, limit=2)
    assert [row["node_idx"] for row in page["items"]] == [1, 2]
    cursor = page["next_cursor"]
    refused = await traces.refused("traces/t/nodes", after=0, limit=2, cursor=cursor)
    assert refused == "400 invalid_filter"


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("nodes", {"model": "m"}),
        ("nodes", {"sampled": "perhaps"}),
        ("nodes", {"after": "x"}),
        ("nodes", {"after": 2**63}),
        ("nodes", {"limit": 101}),
        ("calls", {"after": 0}),
        ("calls", {"role": "user"}),
    ],
)
async def test_a_query_that_cannot_be_meant_is_refused(
    traces: Traces, path: str, parameters: dict[str, Any]
) -> None:
    await traces.upload(trace("t", nodes=NODES))
    assert await traces.refused(f"traces/t/{path}", **parameters) == "400 invalid_filter"


@pytest.mark.parametrize("path", ["nodes", "calls"])
async def test_an_index_that_is_not_built_yet_cannot_be_read(traces: Traces, path: str) -> None:
    await traces.hold_index(True)
    await traces.upload(trace("t", nodes=NODES, calls=CALLS))
    assert await traces.refused(f"traces/t/{path}") == "409 trace_not_indexed"
    assert await traces.refused(f"traces/none/{path}") == "404 trace_not_found"
    assert (await traces.get("traces/t"))["trace_id"] == "t"
    assert (await traces.get("traces/t", raw=True))["id"] == "t"
    await traces.hold_index(False)
    assert len(await traces.items(f"traces/t/{path}")) in (3, 4)


async def test_an_index_that_lags_is_there_in_time(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(trace_index_delay=60.0)
    traces = Traces(platform, client.session)
    await traces.upload(trace("t", nodes=NODES))
    assert await traces.refused("traces/t/nodes") == "409 trace_not_indexed"
    await platform.advance(61)
    assert len(await traces.items("traces/t/nodes")) == 4


@pytest.mark.parametrize("path", ["nodes", "calls"])
async def test_another_upload_of_the_trace_ends_a_walk(traces: Traces, path: str) -> None:
    first = trace("t", nodes=NODES, calls=CALLS)
    await traces.upload(first)
    cursor = (await traces.get(f"traces/t/{path}", limit=1))["next_cursor"]
    await traces.upload({**first, "info": {"n": 2}})
    refused = await traces.refused(f"traces/t/{path}", limit=1, cursor=cursor)
    assert refused == "400 invalid_cursor"
    # Neither does a delete make an old cursor good for a new copy.
    cursor = (await traces.get(f"traces/t/{path}", limit=1))["next_cursor"]
    assert (await traces.ask("DELETE", "traces/t"))[0] == 202
    assert await traces.refused(f"traces/t/{path}", cursor=cursor) == "404 trace_not_found"
    await traces.upload({**first, "info": {"n": 3}})
    assert await traces.refused(f"traces/t/{path}", cursor=cursor) == "400 invalid_cursor"


async def test_a_cursor_is_bound_to_its_trace_and_filters(traces: Traces) -> None:
    await traces.upload(trace("t", nodes=NODES), trace("u", nodes=NODES))
    cursor = (await traces.get("traces/t/nodes", limit=1, role=["user", "tool"]))["next_cursor"]
    for path, parameters in (
        ("traces/u/nodes", {"role": ["user", "tool"]}),
        ("traces/t/nodes", {"role": "user"}),
        ("traces/t/nodes", {}),
        ("traces/t/calls", {}),
    ):
        refused = await traces.refused(path, cursor=cursor, **parameters)
        assert refused == "400 invalid_cursor"
    rest = await traces.get("traces/t/nodes", cursor=cursor, role=["tool", "user"])
    assert [row["node_idx"] for row in rest["items"]] == [3]


async def test_a_large_trace_is_indexed_up_to_a_cap(traces: Traces) -> None:
    await traces.upload(saying("t", *(["hello"] * 10_001)))
    for after, last in ((9_879, 9_979), (9_979, 9_999)):
        page = await traces.get("traces/t/nodes", limit=100, after=after)
        assert page["partial_index"] is True
        assert page["items"][-1]["node_idx"] == last
    assert page["next_cursor"] is None
    assert len((await traces.get("traces/t", raw=True))["nodes"]) == 10_001


async def test_a_walk_that_begins_after_a_node_goes_on_by_cursors(traces: Traces) -> None:
    await traces.upload(trace("t", nodes=NODES))
    first = await traces.get("traces/t/nodes", after=0, limit=1)
    cursor = first["next_cursor"]
    second = await traces.get("traces/t/nodes", limit=1, cursor=cursor)
    assert [page["items"][0]["node_idx"] for page in (first, second)] == [1, 2]
    refused = await traces.refused("traces/t/nodes", after=0, limit=1, cursor=cursor)
    assert refused == "400 invalid_filter"
