"""Chat completions of the local platform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_calls import CHAT, ECHO, MODEL, asking, chat, chunks, error_of, stream_text, text_of

from prime_local import Assumptions, LocalPlatform
from prime_local.inference.choices import before_stop
from prime_local.inference.samples import Sampler
from prime_local.inference.text import Writer, pieces

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"enum": ["C", "F"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 5},
            },
            "required": ["city"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "get_time"}}


async def test_the_same_request_has_the_same_answer(client: RawClient) -> None:
    first, again = await chat(client), await chat(client, user="another")
    assert first["choices"] == again["choices"]
    assert first["id"] != again["id"]
    other = [await chat(client, seed=1), await chat(client, "Hello!")]
    assert len({each["choices"][0]["message"]["content"] for each in (first, *other)}) == 3


async def test_a_stream_adds_up_to_the_whole_answer(client: RawClient) -> None:
    for options in ({}, {"n": 3}, {"reasoning_effort": "high"}, {"max_tokens": 7}):
        whole = await chat(client, **options)
        found = await chunks(client, **options)
        for choice in whole["choices"]:
            assert text_of(found, choice["index"]) == choice["message"]["content"]
        ends = [
            (choice["index"], choice["finish_reason"])
            for chunk in found
            for choice in chunk["choices"]
            if choice["finish_reason"]
        ]
        assert sorted(ends) == [(each["index"], each["finish_reason"]) for each in whole["choices"]]
        assert len({(chunk["id"], chunk["created"]) for chunk in found}) == 1


async def test_choices_differ_and_take_turns(client: RawClient) -> None:
    found = await chunks(client, n=3, max_tokens=4)
    assert len({text_of(found, index) for index in range(3)}) == 3
    order = [chunk["choices"][0]["index"] for chunk in found]
    assert order[:6] == [0, 1, 2, 0, 1, 2]


async def test_max_tokens_ends_an_answer(client: RawClient) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        wanted: dict[str, Any] = {name: 3}
        answer = await chat(client, **wanted)
        assert answer["choices"][0]["finish_reason"] == "length"
        assert answer["usage"]["completion_tokens"] == 3
    long = await chat(client, max_tokens=500, ignore_eos=True)
    assert long["usage"]["completion_tokens"] == 500
    short = await chat(client, max_tokens=500)
    assert short["choices"][0]["finish_reason"] == "stop"
    assert short["usage"]["completion_tokens"] < 200


async def test_an_answer_that_just_fits_is_not_cut(client: RawClient) -> None:
    length = (await chat(client))["usage"]["completion_tokens"]
    assert (await chat(client, max_tokens=length))["choices"][0]["finish_reason"] == "stop"


async def test_stop_ends_an_answer_before_it(client: RawClient) -> None:
    text = "one two three four"
    for stop, expected in (
        ("three", "one two "),
        (["x", "o t", "wo"], "one t"),
        ("two three f", "one "),
        ("five", text),
        ("one", ""),
    ):
        answer = await chat(client, text, model=ECHO, stop=stop)
        assert answer["choices"][0]["message"]["content"] == expected
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert text_of(await chunks(client, text, model=ECHO, stop=stop)) == expected


@given(
    st.lists(st.text("ab ", min_size=1, max_size=3), max_size=12),
    st.lists(st.text("ab ", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_stops_are_found_across_tokens(tokens: list[str], stops: list[str]) -> None:
    text = "".join(tokens)
    places = [text.find(stop) for stop in stops if stop in text]
    expected = text[: min(places)] if places else text
    assert "".join(before_stop(tokens, tuple(stops))) == expected


def test_tokens_are_released_as_soon_as_no_stop_can_begin_in_them() -> None:
    taken = []

    def tokens() -> Iterator[str]:
        for token in ("one", " two", " three"):
            taken.append(token)
            yield token

    first = next(before_stop(tokens(), ("xyz",)))
    assert (first, taken) == ("one", ["one", " two"])


@given(st.text(max_size=60))
def test_pieces_add_up(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_text_is_made_of_different_sentences() -> None:
    text = "".join(islice(Writer("seed").endless(), 2000))
    sentences = text.split(". ")
    assert len(set(sentences)) > len(sentences) / 3
    assert text == "".join(islice(Writer("seed").endless(), 2000))


async def test_the_echo_model_says_what_it_was_told(client: RawClient) -> None:
    text = 'é€😀 "quoted"\n\ttwo  lines \\ {"a": 1}'
    assert (await chat(client, text, model=ECHO))["choices"][0]["message"]["content"] == text
    assert text_of(await chunks(client, text, model=ECHO)) == text
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    body = {"model": ECHO, "messages": [{"role": "user", "content": parts}]}
    answer = await client.call("POST", CHAT, body)
    assert answer.body["choices"][0]["message"]["content"] == "a\nb"


async def test_usage_and_cost(client: RawClient) -> None:
    plain = (await chat(client, "x" * 40, max_tokens=5))["usage"]
    assert (plain["prompt_tokens"], plain["completion_tokens"], plain["total_tokens"]) == (
        13,
        5,
        18,
    )
    assert "cost" not in plain
    priced = (await chat(client, "x" * 40, max_tokens=5, usage={"include": True}))["usage"]
    assert (priced["input_tokens"], priced["output_tokens"]) == (13, 5)
    assert priced["cost"] == pytest.approx((13 * 0.6 + 5 * 2.2) / 1e6)


async def test_a_stream_has_totals_when_asked(open_platform: OpenPlatform) -> None:
    for answer, alone in (("either", True), ("stream_options", False)):
        _, client = await open_platform(assumptions=Assumptions.parse([f"stream_totals={answer}"]))
        assert all("usage" not in chunk for chunk in await chunks(client))
        *_, last = await chunks(client, stream_options={"include_usage": True}, max_tokens=2)
        assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 2)
        assert "cost" not in last["usage"]
        *_, last = await chunks(client, usage={"include": True})
        assert ("usage" in last) is alone
        both: dict[str, Any] = {
            "usage": {"include": True},
            "stream_options": {"include_usage": True},
        }
        found = await chunks(client, **both)
        assert [chunk["usage"]["cost"] > 0 for chunk in found if "usage" in chunk] == [True]


async def test_tools_are_called_and_their_results_answered(client: RawClient) -> None:
    answer = await chat(client, "Weather in Oslo?", tools=[WEATHER])
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    arguments = json.loads(call["function"]["arguments"])
    assert arguments["city"] == "Oslo"
    assert jsonschema_rs.is_valid(WEATHER["function"]["parameters"], arguments)  # type: ignore[index]
    said = [
        {"role": "user", "content": "Weather in Oslo?"},
        choice["message"],
        {"role": "tool", "tool_call_id": call["id"], "content": "rain"},
    ]
    body = {"model": MODEL, "messages": said, "tools": [WEATHER]}
    then = (await client.call("POST", CHAT, body)).body["choices"][0]
    assert (then["finish_reason"], bool(then["message"]["content"])) == ("stop", True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["get_weather"]),
        ({"tool_choice": "none"}, []),
        ({"tool_choice": "required"}, ["get_weather"]),
        ({"tool_choice": {"type": "function", "function": {"name": "get_time"}}}, ["get_time"]),
        ({"text": "get_time, then get_weather"}, ["get_weather", "get_time"]),
        ({"text": "get_time, get_weather", "parallel_tool_calls": False}, ["get_weather"]),
        ({"text": "only get_time"}, ["get_time"]),
    ],
)
async def test_which_tools_are_called(
    client: RawClient, options: dict[str, Any], expected: list[str]
) -> None:
    answer = await chat(client, tools=[WEATHER, CLOCK], **options)
    calls = answer["choices"][0]["message"].get("tool_calls", [])
    assert [call["function"]["name"] for call in calls] == expected
    assert len({call["id"] for call in calls}) == len(calls)


async def test_tool_calls_stream_in_fragments(client: RawClient) -> None:
    options: dict[str, Any] = {
        "tools": [WEATHER, CLOCK],
        "text": "get_weather and get_time in Oslo",
    }
    whole = (await chat(client, **options))["choices"][0]["message"]["tool_calls"]
    made: dict[int, dict[str, Any]] = {}
    for chunk in await chunks(client, **options):
        for fragment in chunk["choices"][0]["delta"].get("tool_calls", ()):
            place = fragment.pop("index")
            if place not in made:
                made[place] = fragment
            else:
                assert fragment.keys() == {"function"}
                made[place]["function"]["arguments"] += fragment["function"]["arguments"]
    assert list(made.values()) == whole


async def test_a_custom_tool_gets_text(client: RawClient) -> None:
    tool = {"type": "custom", "custom": {"name": "shell"}}
    (call,) = (await chat(client, "Visit Oslo", tools=[tool]))["choices"][0]["message"][
        "tool_calls"
    ]
    assert (call["type"], call["custom"]) == ("custom", {"name": "shell", "input": "Oslo"})


_KINDS = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": _KINDS},
        optional={
            "minimum": st.integers(-50, 50) | st.floats(-9, 9),
            "maximum": st.integers(-50, 50) | st.floats(-9, 9),
            "minItems": st.integers(0, 4),
            "$ref": st.sampled_from(["#", "#/properties/a", "#/nothing/there", "other.json"]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": _KINDS,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner | st.booleans(),
            "required": st.lists(st.sampled_from("abcd"), unique=True),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)


@given(_SCHEMAS)
def test_every_schema_has_a_sample(schema: dict[str, Any]) -> None:
    """Also those that refer to themselves, or that nothing fits."""
    assert jsonschema_rs.meta.is_valid(schema)
    assert len(json.dumps(Sampler(schema, Writer("seed")).sample())) < 200_000


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 10**9},
        {"type": "array", "minItems": 4, "items": {"$ref": "#"}},
        {"type": "array", "minItems": 99, "items": {"type": "array", "minItems": 10**6}},
    ],
)
def test_a_sample_is_of_bounded_size(schema: dict[str, Any]) -> None:
    assert len(json.dumps(Sampler(schema, Writer("seed")).sample())) < 200_000


async def test_structured_output_fits_its_schema(client: RawClient) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/child"}, "minItems": 2},
            "kind": {"const": "x"},
            "maybe": {"type": ["number", "null"], "maximum": -5},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["name", "children"],
        "$defs": {
            "child": {
                "type": "object",
                "properties": {"age": {"type": "integer"}, "next": {"$ref": "#/$defs/child"}},
                "required": ["age"],
            }
        },
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "tree", "schema": schema}}
    content = (await chat(client, response_format=wanted))["choices"][0]["message"]["content"]
    assert jsonschema_rs.is_valid(schema, json.loads(content))
    content = (await chat(client, response_format={"type": "json_object"}))["choices"][0]["message"]
    assert isinstance(json.loads(content["content"]), dict)


async def test_probabilities_are_plausible(client: RawClient) -> None:
    options: dict[str, Any] = {"logprobs": True, "top_logprobs": 3, "max_tokens": 6}
    choice = (await chat(client, **options))["choices"][0]
    entries = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == choice["message"]["content"]
    for entry in entries:
        assert bytes(entry["bytes"]).decode() == entry["token"]
        top = [each["logprob"] for each in entry["top_logprobs"]]
        assert len({each["token"] for each in entry["top_logprobs"]}) == 3
        assert top[0] == entry["logprob"] < 0
        assert top == sorted(top, reverse=True)
    found = await chunks(client, **options)
    streamed = [chunk["choices"][0].get("logprobs") for chunk in found]
    assert [entry for each in streamed if each for entry in each["content"]] == entries
    plain = (await chat(client, logprobs=True))["choices"][0]["logprobs"]["content"][0]
    assert plain["top_logprobs"] == []


async def test_thoughts_have_a_field_of_their_own(open_platform: OpenPlatform) -> None:
    for name in ("reasoning_content", "reasoning"):
        _, client = await open_platform(assumptions=Assumptions.parse([f"reasoning_field={name}"]))
        answer = await chat(client, reasoning_effort="high")
        assert answer["choices"][0]["message"][name]
        thoughts = answer["usage"]["completion_tokens_details"]["reasoning_tokens"]
        assert 0 < thoughts < answer["usage"]["completion_tokens"]
        assert await chat(client, reasoning={"enabled": True})
    for options in ({"reasoning_effort": "none"}, {"model": ECHO, "reasoning_effort": "high"}):
        message = (await chat(client, **options))["choices"][0]["message"]
        assert message.keys() == {"role", "content"}


@pytest.mark.parametrize(
    ("options", "code", "param"),
    [
        ({"messages": []}, "invalid_request", "messages"),
        ({"model": 5}, "invalid_request", "model"),
        ({"n": 0}, "invalid_request", "n"),
        ({"temperature": 3}, "invalid_request", "temperature"),
        ({"stop": list("abcde")}, "invalid_request", "stop"),
        ({"top_logprobs": 2}, "invalid_request", "top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "invalid_request", "stream_options"),
        ({"tool_choice": "required"}, "invalid_request", "tool_choice"),
        ({"max_tokens": 10**7}, "invalid_request", "max_tokens"),
        ({"model": "cloudflare/clef"}, "unsupported_model", "model"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": 5}}}]},
            "invalid_request",
            "tools.0.function.parameters",
        ),
        ({"text": "x" * 900_000}, "context_length_exceeded", "messages"),
    ],
)
async def test_what_is_refused(
    client: RawClient, options: dict[str, Any], code: str, param: str
) -> None:
    answer = await client.call("POST", CHAT, asking(**options))
    assert error_of(answer) == (400, code, param)
    assert answer.body["error"]["type"] == "invalid_request_error"


async def test_bodies_that_are_no_json(client: RawClient) -> None:
    for data in (b"", b"{", b'{"a": NaN}', b"\xff"):
        post = client.session.post(client.url + CHAT, data=data, headers=client.key)
        async with post as response:
            body = await response.json()
        assert (response.status, body["error"]["code"]) == (400, "invalid_json")
    answer = await client.call("POST", CHAT, [])
    assert error_of(answer)[:2] == (400, "invalid_request")


async def test_a_stream_begins_with_a_comment(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    assert (await stream_text(client)).startswith(": keep-alive\n\ndata: {")
    _, client = await open_platform(assumptions=Assumptions(stream_keep_alive=None))
    assert (await stream_text(client)).startswith("data: {")


async def test_comments_fill_the_time_between_tokens(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(assumptions=Assumptions(stream_keep_alive=0.02))
    platform.set_inference(token_time=0.05)
    text = await stream_text(client, max_tokens=2)
    assert text.count(": keep-alive\n\n") > 4


async def test_newer_servers_send_more(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(noise=True)
    assert "noiseAdded" in await chat(client)
    assert all("noiseAdded" in chunk for chunk in await chunks(client))


async def test_chunks_are_checked_against_the_contract(
    prime_platform: LocalPlatform, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_local.inference.choices.pieces", lambda text: [{"role": 5}])
    await stream_text(client, model=ECHO)
    violations = (await client.call("DELETE", "/_local/violations")).body["violations"]
    assert violations
    assert violations[0].startswith("create_chat_completion event")
