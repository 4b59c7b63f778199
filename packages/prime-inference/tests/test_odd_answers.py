"""Answers with something odd: what is paid for is not thrown away, and an error stays one."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from chats import COMPLETION, HELLO
from maps import request
from raw_server import RawServer, answer
from rows import KEY

from prime_inference import (
    APIError,
    APIResponseError,
    AsyncInferenceClient,
    BooleanAnswer,
    BooleanQuestion,
    ModelNotFoundError,
    PaymentRequiredError,
    ServerError,
)

JSON = {"Content_Type": "application/json", "X_Inference_Id": "inf-1"}
EVENTS = {"Content_Type": "text/event-stream", "X_Inference_Id": "inf-1"}


def message(**fields: Any) -> dict[str, Any]:
    return {**COMPLETION, "choices": [{"index": 0, "message": fields, "finish_reason": "stop"}]}


def events(*chunks: object) -> bytes:
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {text}\n\n" for text in [*texts, "[DONE]"]).encode()


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"usage": "much"}, {"usage": "much"}),
    ({"usage": {"prompt_tokens": "many", "cost": 1}}, {"usage.prompt_tokens": "many"}),
    ({"created": 1.5}, {"created": 1.5}),
    ({"id": 5, "model": []}, {"id": 5, "model": []}),
    ({"service_tier": {"a": 1}}, {"service_tier": {"a": 1}}),
]


@pytest.mark.parametrize(("odd", "left_out"), ODD)
async def test_an_odd_field_besides_does_not_spoil_an_answer(
    server: RawServer, client: AsyncInferenceClient, odd: dict[str, Any], left_out: dict[str, Any]
) -> None:
    server.steps = [answer(200, {**COMPLETION, **odd})]
    completion = await client.chat.completions.create(**HELLO)
    assert completion.choices[0].message.content == "Hello!"
    assert completion.model_extra == {"unreadable": left_out}
    server.steps = [answer(200, events({**said("Hello!"), **odd}), **EVENTS)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    (chunk,) = [chunk async for chunk in stream]
    assert chunk.model_extra == {"unreadable": left_out}
    assert stream.get_completion_so_far().choices[0].message.content == "Hello!"


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 0, "delta": {"content": "", "role": 5}}]},
        {"choices": [{"index": 0, "delta": {}, "logprobs": {"content": [{"logprob": 1}]}}]},
    ],
)
async def test_an_odd_chunk_does_not_end_a_stream(
    server: RawServer, client: AsyncInferenceClient, odd: dict[str, Any]
) -> None:
    server.steps = [answer(200, events(said("A "), odd, said("lock.")), **EVENTS)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "A lock."


async def test_unknown_fields_of_a_chunk_are_kept(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    odd = {"index": 0, "delta": {"content": "x", "model_dump": 1}, "native": "stop"}
    server.steps = [answer(200, events({"choices": [odd], "provider": "p"}), **EVENTS)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    chunk = await stream.__anext__()
    (choice,) = chunk.choices
    assert (chunk.model_extra, choice.model_extra) == ({"provider": "p"}, {"native": "stop"})
    assert choice.delta.model_extra == {"model_dump": 1}
    assert chunk.model_dump(exclude_unset=True) == {"choices": [odd], "provider": "p"}
    await stream.aclose()


@pytest.mark.parametrize("name", ["__class__", "__dict__", "model_extra"])
async def test_a_field_that_is_called_as_no_field_can_be_is_an_error(
    server: RawServer, client: AsyncInferenceClient, name: str
) -> None:
    odd = {"index": 0, "delta": {"content": "x", name: "y"}}
    server.steps = [answer(200, events({"choices": [odd]}), **EVENTS)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    with pytest.raises(APIResponseError, match="can't be read") as caught:
        await stream.get_final_completion()
    assert caught.value.inference_id == "inf-1"


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": "x"},
        {"choices": [{"index": "first", "message": {"content": "Hello!"}}]},
        {"choices": [{"index": 0, "message": {"content": 5}}]},
        {"choices": [{"index": 0, "message": {"tool_calls": [{"function": "f"}]}}]},
        {"choices": [{"index": 0, "message": "Hello!"}]},
    ],
)
async def test_an_answer_that_is_none_is_an_error_by_each_road(
    server: RawServer, client: AsyncInferenceClient, odd: dict[str, Any]
) -> None:
    server.steps = [answer(200, {"id": "c", **odd}, **JSON)]
    with pytest.raises(APIResponseError) as caught:
        await client.chat.completions.create(**HELLO)
    assert caught.value.inference_id == "inf-1"
    stream = await client.chat.completions.create(**HELLO, stream=True)
    with pytest.raises(APIResponseError, match="may have done it") as caught:
        await stream.get_final_completion()
    assert caught.value.inference_id == "inf-1"


async def test_a_content_in_parts_is_joined(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    parts = [{"type": "text", "text": "A "}, {"type": "text", "text": "lock."}]
    server.steps = [answer(200, message(role="assistant", content=parts), **JSON)]
    completion = await client.chat.completions.create(**HELLO)
    assert completion.choices[0].message.content == "A lock."
    stream = await client.chat.completions.create(**HELLO, stream=True)
    completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "A lock."


async def test_all_that_is_odd_in_a_whole_answer_is_kept(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    odd = {**message(content="A lock.", role=5, provider="p"), "created": "late"}
    server.steps = [answer(200, odd, **JSON)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    (chunk,) = [chunk async for chunk in stream]
    left_out = {"created": "late", "choices.0.delta.role": 5}
    assert chunk.model_extra is not None
    assert chunk.model_extra["unreadable"] == left_out
    completion = stream.get_completion_so_far()
    assert completion.model_extra == {"unreadable": left_out}
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("A lock.", "stop")
    assert choice.message.model_extra == {"provider": "p"}


async def test_a_whole_answer_in_place_of_a_stream_has_its_parts_in_their_order(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    calls = [{"index": 0, "function": {"name": name, "arguments": "{}"}} for name in "fg"]
    messages = [{"content": "A"}, {"content": "B", "tool_calls": calls}]
    whole = {**COMPLETION, "choices": [{"message": message} for message in messages]}
    server.steps = [answer(200, whole, **JSON)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    first, second = (await stream.get_final_completion()).choices
    assert (first.index, first.message.content) == (0, "A")
    assert (second.index, second.message.content) == (1, "B")
    called = [call.function for call in second.message.tool_calls or ()]
    assert [function and function.name for function in called] == ["f", "g"]


async def test_halves_of_characters_are_replaced(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    text = json.dumps(message(content="a\ud83d b\ud83d\ude00")).encode()
    server.steps = [answer(200, text)]
    completion = await client.chat.completions.create(**HELLO)
    assert completion.choices[0].message.content == "a\ufffd b😀"
    server.steps = [answer(200, events(said("\ud83d"), said("\ude00!")), **EVENTS)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "\ufffd\ufffd!"


async def test_an_odd_field_besides_does_not_spoil_an_evaluation(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    fine = {"type": "boolean", "probability": 0.5, "confidence": "high"}
    server.steps = [answer(200, {"answers": {"a": fine}, "usage": 3})]
    asked: Any = {"model": "m", "state": "x", "questions": {"a": BooleanQuestion()}}
    response = await client.evaluations.create(**asked)
    assert response.answers["a"] == BooleanAnswer(type="boolean", probability=0.5)
    assert response.model_extra == {"unreadable": {"answers.a.confidence": "high", "usage": 3}}
    server.steps = [answer(200, {"answers": {"a": {"type": "boolean"}}})]
    with pytest.raises(APIResponseError, match="probability"):
        await client.evaluations.create(**asked)


HELD: list[tuple[Any, type[APIError]]] = [
    ({"message": "No such model", "code": "model_not_found"}, ModelNotFoundError),
    ({"message": "no", "code": "insufficient_funds"}, PaymentRequiredError),
    ({"message": "lost", "code": 502}, ServerError),
    (f"odd {KEY}", APIError),
]


@pytest.mark.parametrize(("error", "kind"), HELD)
async def test_an_error_with_a_status_of_success_is_that_error(
    server: RawServer, client: AsyncInferenceClient, error: Any, kind: type[APIError]
) -> None:
    calls: Any = [
        client.chat.completions.create(**HELLO),
        client.evaluations.create(model="m", state="x", questions={"a": BooleanQuestion()}),
        (await _stream(server, client, answer(200, {"error": error}, **JSON))),
        (await _stream(server, client, answer(200, events(said("x"), {"error": error}), **EVENTS))),
    ]
    server.steps = [answer(200, {"error": error}, **JSON)]
    for call in calls:
        with pytest.raises(kind, match=error["message"] if isinstance(error, dict) else "odd") as c:
            await call
        assert c.value.code == (str(error["code"]) if isinstance(error, dict) else c.value.code)
        assert c.value.inference_id == "inf-1"
        assert KEY not in f"{c.value} {c.value.body}"


async def _stream(server: RawServer, client: AsyncInferenceClient, step: Any) -> Any:
    server.steps = [step]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    return stream.get_final_completion()


async def test_costs_that_are_no_amounts_are_unknown(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    for number, cost in enumerate([b"1e400", b'"1e400"', b'"NaN"', b"-1", b'"much"']):
        path = tmp_path / f"{number}.jsonl"
        text = b'{"choices": [], "usage": {"prompt_tokens": 2, "cost": %s}}' % cost
        server.steps = [answer(200, text)]
        for _ in range(2):  # the second time from the file
            results = client.map_completions([request(1)], results=path)
            (result,) = [result async for result in results]
            assert result.completion is not None, cost
            assert result.completion.usage is not None
            assert result.completion.usage.cost is None
            assert (results.totals.cost, results.totals.without_cost) == (Decimal(0), 1)
            assert results.totals.prompt_tokens == 2
