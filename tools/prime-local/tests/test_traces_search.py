"""Literal search in a run over HTTP."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from trace_queries import Traces, saying, scored, text_of, trace

from prime_local import Assumptions, LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform

pytestmark = pytest.mark.timeout(60)

SEARCH = "runs/run-1/search"


@pytest.fixture
async def traces(open_platform: OpenPlatform) -> Traces:
    platform, client = await open_platform()
    return Traces(platform, client.session)


async def found(traces: Traces, query: str, **parameters: Any) -> list[tuple[str, int]]:
    matches = await traces.items(SEARCH, query=query, **parameters)
    return [(match["trace_id"], match["node_idx"]) for match in matches]


async def only_match(traces: Traces, query: str, **parameters: Any) -> dict[str, Any]:
    (match,) = await traces.items(SEARCH, query=query, **parameters)
    assert text_of(match) == query
    result: dict[str, Any] = match
    return result


async def test_a_match_says_where_it_is(traces: Traces) -> None:
    upload_id = await traces.upload(saying("t", "nothing here", "ran\nTraceback (most recent"))
    page = await traces.get(SEARCH, query="Traceback")
    assert page == {
        "items": [
            {
                "trace_id": "t",
                "upload_id": upload_id,
                "generation": 1,
                "episode_id": None,
                "node_idx": 1,
                "role": "user",
                "field": "content",
                "representation": "text",
                "match_start": 4,
                "match_end": 13,
                "excerpt": "ran\nTraceback (most recent",
                "excerpt_start": 0,
            }
        ],
        "next_cursor": None,
        "coverage": {"examined_traces": 1, "unindexed_trace_ids": [], "partial_index": False},
    }


async def test_search_is_literal_and_tells_case_apart(traces: Traces) -> None:
    await traces.upload(saying("t", "a.*b%_[x]", "A.*B", "straße", "STRASSE", "a\\nb", "a\nb'\""))
    assert await found(traces, ".*b") == [("t", 0)]
    assert await found(traces, "%_[") == [("t", 0)]
    assert await found(traces, ".*B") == [("t", 1)]
    assert await found(traces, "aße") == [("t", 2)]
    assert await found(traces, "SSE") == [("t", 3)]
    assert await found(traces, "a\\n") == [("t", 4)]
    assert await found(traces, "b'\"") == [("t", 5)]
    assert await found(traces, "a.b") == []


async def test_the_first_hit_of_each_node_comes_in_order(traces: Traces) -> None:
    await traces.upload(saying("b", "x abc abc", "abc"), saying("a", "none", "abcabc"))
    await traces.upload(saying("elsewhere", "abc", run="run-2"))
    matches = await traces.items(SEARCH, query="abc")
    places = [(match["trace_id"], match["node_idx"], match["match_start"]) for match in matches]
    assert places == [("a", 1, 0), ("b", 0, 2), ("b", 1, 0)]


async def test_offsets_count_code_points(traces: Traces) -> None:
    await traces.upload(saying("t", "😀👩‍👩‍👧 é e\u0301 needle 😀😀"))
    match = await only_match(traces, "needle")
    assert (match["match_start"], match["match_end"]) == (12, 18)
    assert match["excerpt"] == "😀👩‍👩‍👧 é e\u0301 needle 😀😀"
    assert (await only_match(traces, "e 😀😀"))["match_start"] == 17
    # What merely looks alike is another text.
    assert await found(traces, "e\u0301 ne") == [("t", 0)]
    assert await found(traces, "\u00e9 ne") == []


@pytest.mark.parametrize(
    ("before", "after", "start", "length"),
    [(0, 0, 0, 6), (64, 64, 0, 134), (65, 64, 1, 134), (1000, 1000, 936, 134), (10, 200, 0, 134)],
)
async def test_an_excerpt_has_64_characters_before_and_128_more_than_the_match(
    traces: Traces, before: int, after: int, start: int, length: int
) -> None:
    await traces.upload(saying("t", "😀" * before + "needle" + "ü" * after))
    match = await only_match(traces, "needle")
    assert match["match_start"] == before
    assert match["excerpt_start"] == start
    assert len(match["excerpt"]) == length


async def test_structured_content_is_searched_as_it_was_recorded(traces: Traces) -> None:
    parts = '[{"type":"text",  "text":"say \\"hi\\" \\u00fc 😀"}]'
    line = json.dumps(saying("t", None)).replace('"content": null', f'"content": {parts}')
    await traces.upload_bytes(line.encode() + b"\n")
    match = await only_match(traces, 'say \\"hi\\" \\u00fc 😀')
    assert match["representation"] == "json"
    assert match["match_start"] == parts.index("say")
    assert match["excerpt"] == parts
    assert await found(traces, '"type":"text",  "') == [("t", 0)]
    assert await found(traces, 'say "hi"') == []
    assert await found(traces, "ü 😀") == []


async def test_escapes_in_text_are_decoded_before_it_is_searched(traces: Traces) -> None:
    line = json.dumps(saying("t", "\U0001f600 tab\there \u00fc"))
    assert r"\ud83d\ude00 tab\there \u00fc" in line
    await traces.upload_bytes(line.encode() + b"\n")
    match = await only_match(traces, "tab\there ü")
    assert (match["match_start"], match["excerpt"]) == (2, "😀 tab\there ü")


async def test_fields_are_searched_one_at_a_time(traces: Traces) -> None:
    calls = [{"id": "c", "arguments": '{"word":"cold"}'}]
    message = {
        "role": "assistant",
        "content": "the cold",
        "reasoning_content": "is it cold?",
        "tool_calls": calls,
    }
    await traces.upload(trace("t", run={"id": "run-1"}, nodes=[{"message": message}]))
    match = await only_match(traces, "cold")
    assert (match["field"], match["representation"], match["match_start"]) == ("content", "text", 4)
    match = await only_match(traces, "cold", field="reasoning_content")
    assert (match["field"], match["representation"]) == ("reasoning_content", "text")
    match = await only_match(traces, '\\"cold\\"', field="tool_calls")
    assert (match["field"], match["representation"]) == ("tool_calls", "json")
    assert match["match_start"] == json.dumps(calls).index('\\"cold')
    assert await found(traces, "the", field="reasoning_content") == []


async def test_filters_narrow_what_is_searched(traces: Traces) -> None:
    step = {"id": "run-1", "work": {"step": 2}}
    said = [{"message": {"role": "tool", "content": "abc"}}, {"message": {"content": "abcd"}}]
    await traces.upload(
        {**scored("a", 0.5, ok=False), "run": step, "nodes": said}, saying("b", "abc")
    )
    assert await found(traces, "abc") == [("a", 0), ("a", 1), ("b", 0)]
    assert await found(traces, "abc", role="tool") == [("a", 0)]
    assert await found(traces, "abc", role="user") == [("b", 0)]
    assert await found(traces, "abc", run_step=2, role="tool") == [("a", 0)]
    assert await found(traces, "abc", run_step=3) == []
    assert await found(traces, "abc", has_error=False) == [("b", 0)]
    assert await found(traces, "abc", reward_min=0.5, limit=1) == [("a", 0), ("a", 1)]
    assert await found(traces, "abc", reward_max=0.4) == []
    page = await traces.get(SEARCH, query="abc", has_error=True)
    assert page["coverage"]["examined_traces"] == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"query": ""},
        {"query": "ab"},
        {"query": "😀😀"},
        {"query": "   "},
        {"query": " \t\n\u3000"},
        {"query": "x" * 257},
        {"query": "abc", "field": "name"},
        {"query": "abc", "limit": 0},
        {"query": "abc", "limit": 101},
        {"query": "abc", "run_step": -1},
        {"query": "abc", "role": ["user", "tool"]},
        {"query": "abc", "regex": True},
        {"query": "abc", "context.a": "b"},
    ],
)
async def test_a_query_that_cannot_be_meant_is_refused(
    traces: Traces, parameters: dict[str, Any]
) -> None:
    await traces.upload(saying("t", "abc"))
    assert await traces.refused(SEARCH, **parameters) == "400 invalid_filter"


async def test_a_query_has_3_to_256_code_points(traces: Traces) -> None:
    await traces.upload(saying("t", "😀" * 300))
    assert await found(traces, "😀" * 3) == [("t", 0)]
    assert await found(traces, "😀" * 256) == [("t", 0)]


async def test_an_unknown_run_is_not_found(traces: Traces) -> None:
    await traces.upload(saying("t", "abc"))
    assert await traces.refused("runs/none/search", query="abc") == "404 run_not_found"
    other = traces.of_team("team-1")
    assert await other.refused(SEARCH, query="abc") == "404 run_not_found"


async def test_search_agrees_with_a_search_by_hand(traces: Traces) -> None:
    dice = random.Random(6)
    texts = {
        f"t{n}": ["".join(dice.choices("ab😀ü\n", k=dice.randint(0, 40))) for _ in range(6)]
        for n in range(20)
    }
    await traces.upload(*(saying(trace_id, *contents) for trace_id, contents in texts.items()))
    for _ in range(25):
        query = "".join(dice.choices("ab😀ü", k=3))
        expected = [
            (trace_id, place, text.find(query))
            for trace_id in sorted(texts)
            for place, text in enumerate(texts[trace_id])
            if query in text
        ]
        matches = await traces.items(SEARCH, query=query, limit=dice.randint(1, 60))
        assert [(m["trace_id"], m["node_idx"], m["match_start"]) for m in matches] == expected
        assert all(text_of(match) == query for match in matches)


@pytest.mark.parametrize("limit", [1, 3, 7])
async def test_a_walk_finds_every_match_once(traces: Traces, limit: int) -> None:
    await traces.upload(*(saying(f"t{n}", *(["abc"] * 5)) for n in range(5)))
    pages = [page async for page in traces.pages(SEARCH, query="abc", limit=limit)]
    items = [match for page in pages for match in page["items"]]
    expected = [(f"t{n}", node) for n in range(5) for node in range(5)]
    assert [(match["trace_id"], match["node_idx"]) for match in items] == expected
    assert pages[0]["coverage"]["examined_traces"] == 5
    assert all(page["coverage"] is None for page in pages[1:])


async def test_pages_have_fifty_matches_unless_told_otherwise(traces: Traces) -> None:
    await traces.upload(saying("t", *(["abc"] * 60)))
    assert len((await traces.get(SEARCH, query="abc"))["items"]) == 50


async def test_traces_without_an_index_are_named(traces: Traces) -> None:
    await traces.upload(saying("b", "abc"))
    await traces.hold_index(True)
    await traces.upload(saying("c", "abc"), scored("a", 1.0, run={"id": "run-1"}))
    page = await traces.get(SEARCH, query="abc")
    assert [match["trace_id"] for match in page["items"]] == ["b"]
    assert page["coverage"] == {
        "examined_traces": 1,
        "unindexed_trace_ids": ["a", "c"],
        "partial_index": False,
    }
    page = await traces.get(SEARCH, query="abc", reward_min=0)
    assert page["coverage"]["unindexed_trace_ids"] == ["a"]
    # A copy that waits for its index hides the earlier one.
    await traces.upload(saying("b", "abc again"))
    page = await traces.get(SEARCH, query="abc")
    assert (page["items"], page["coverage"]["examined_traces"]) == ([], 0)
    await traces.hold_index(False)
    assert await found(traces, "abc") == [("b", 0), ("c", 0)]


async def test_at_most_256_traces_without_an_index_are_named(traces: Traces) -> None:
    await traces.hold_index(True)
    await traces.upload(*(saying(f"t{n:03}", "abc") for n in range(300)))
    page = await traces.get(SEARCH, query="abc")
    assert page["coverage"]["unindexed_trace_ids"] == [f"t{n:03}" for n in range(256)]
    assert page["next_cursor"] is None


async def test_coverage_tells_of_traces_that_are_indexed_in_part(traces: Traces) -> None:
    await traces.upload(saying("long", *(["x"] * 10_000), "abc"), saying("t", "abc"))
    page = await traces.get(SEARCH, query="abc")
    assert [match["trace_id"] for match in page["items"]] == ["t"]
    assert page["coverage"]["partial_index"] is True


async def test_a_walk_goes_on_in_a_newer_copy_from_where_it_was(traces: Traces) -> None:
    await traces.upload(saying("a", "abc 0", "abc 1", "abc 2"), saying("b", "abc"))
    first = await traces.get(SEARCH, query="abc", limit=2)
    await traces.upload(saying("a", "abc", "abc", "none", "abc new"))
    rest = await traces.get(SEARCH, query="abc", cursor=first["next_cursor"])
    places = [
        (match["trace_id"], match["node_idx"], match["generation"]) for match in rest["items"]
    ]
    assert places == [("a", 3, 2), ("b", 0, 1)]
    assert rest["next_cursor"] is None


async def test_a_cursor_is_bound_to_its_query(traces: Traces) -> None:
    await traces.upload(saying("a", "abc", "abcd"), saying("b", "abcd", run="run-2"))
    cursor = (await traces.get(SEARCH, query="abc", limit=1))["next_cursor"]
    for path, parameters in (
        (SEARCH, {"query": "abcd"}),
        (SEARCH, {"query": "abc", "role": "user"}),
        (SEARCH, {"query": "abc", "field": "tool_calls"}),
        ("runs/run-2/search", {"query": "abc"}),
    ):
        refused = await traces.refused(path, cursor=cursor, **parameters)
        assert refused == "400 invalid_cursor", (path, parameters)
    await traces.get(SEARCH, query="abc", field="content", cursor=cursor)


async def test_a_page_ends_after_so_much_reading_even_when_it_is_empty(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(assumptions=Assumptions(search_page=1000))
    traces = Traces(platform, client.session)
    await traces.upload(*(saying(f"t{n}", "x" * 1000) for n in range(3)), saying("u", "abc"))
    pages = [page async for page in traces.pages(SEARCH, query="abc")]
    assert [len(page["items"]) for page in pages] == [0, 0, 0, 1]


async def test_a_search_that_reads_too_much_is_refused(open_platform: OpenPlatform) -> None:
    budget = Assumptions(search_budget=5000, search_page=2000)
    platform, client = await open_platform(assumptions=budget)
    traces = Traces(platform, client.session)
    await traces.upload(*(saying(f"t{n}", "x" * 1000, reasoning=n) for n in range(8)))
    page = await traces.get(SEARCH, query="abc")
    page = await traces.get(SEARCH, query="abc", cursor=page["next_cursor"])
    refused = await traces.refused(SEARCH, query="abc", cursor=page["next_cursor"])
    assert refused == "400 search_limit_exceeded"
    # More specific, it reads less.
    assert await traces.items(SEARCH, query="abc", role="tool") == []


async def test_a_platform_ends_while_it_searches() -> None:
    async with aiohttp.ClientSession() as session:
        async with LocalPlatform() as platform:
            traces = Traces(platform, session)
            await traces.upload(*(saying(f"t{n}", "x" * 4_000_000) for n in range(8)))
            searches = [
                asyncio.create_task(traces.ask("GET", SEARCH, query="needle")) for _ in range(4)
            ]
            await asyncio.sleep(0.02)
        # Leaving it has not failed, and nobody was left without an answer.
        answers = await asyncio.gather(*searches)
        assert {status for status, _ in answers} <= {200, 503}


async def test_a_long_search_keeps_nobody_waiting(traces: Traces) -> None:
    text = "x" * 1_000_000
    for n in range(4):
        await traces.upload(*(saying(f"t{n}-{m}", *([text] * 4)) for m in range(4)))
    searching = asyncio.create_task(traces.items(SEARCH, query="needle"))
    waits = []
    for n in range(20):
        began = time.perf_counter()
        await traces.upload(trace(f"meanwhile-{n}"))
        await traces.get(f"traces/meanwhile-{n}")
        waits.append(time.perf_counter() - began)
        if searching.done():
            break
    assert await searching == []
    assert max(waits) < 1.0
