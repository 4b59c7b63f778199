"""Completions of chats that come whole."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

import pytest
from chats import COMPLETION, HELLO
from raw_server import RawServer, answer, hang_up, reset, silence

from prime_inference import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    AsyncInferenceClient,
    BadRequestError,
    ChatCompletionMessage,
    ConfigurationError,
    InferenceClient,
    ModelNotFoundError,
    PaymentRequiredError,
    RateLimitError,
    ServerError,
)

pytestmark = pytest.mark.usefixtures("quick_retries")


async def test_a_completion(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [answer(200, COMPLETION, X_Inference_Id="inf-1")]
    completion = await client.chat.completions.create(**HELLO)
    (choice,) = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Hello!", "stop")
    assert choice.message.model_extra == {"annotations": []}
    assert completion.usage is not None
    assert (completion.usage.total_tokens, completion.usage.cost) == (35, 0.000061)
    assert (completion.service_tier, completion.inference_id) == ("provisioned", "inf-1")
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/api/v1/chat/completions")
    assert request.json == HELLO
    assert request.headers["x-prime-team-id"] == "team-1"


async def test_parameters_are_sent_as_they_are_called(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, COMPLETION)]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"default": None}}}
    await client.chat.completions.create(
        **HELLO,
        temperature=0,
        stop=["a", "b"],
        n=None,
        tools=[tool],
        logit_bias={"50256": -100},
        response_format={"type": "json_object"},
        usage={"include": True},
        extra_body={"min_p": 0.1, "note": "é", "nothing": None},
        team_id="team-2",
    )
    (request,) = server.requests
    assert request.json == {
        **HELLO,
        "temperature": 0,
        "stop": ["a", "b"],
        "tools": [tool],
        "logit_bias": {"50256": -100},
        "response_format": {"type": "json_object"},
        "usage": {"include": True},
        "min_p": 0.1,
        "note": "é",
        "nothing": None,
    }
    assert "é".encode() in request.body
    assert request.headers["x-prime-team-id"] == "team-2"


async def test_what_a_model_said_can_be_passed_on(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{"}}
    message = {
        "role": "assistant",
        "content": None,
        "reasoning_details": [{"type": "x", "data": "y", "signature": None}],
        "tool_calls": [call],
    }
    choices = [{"index": 0, "message": message}, {"index": 1, "message": {"role": "assistant"}}]
    server.steps = [answer(200, {**COMPLETION, "choices": choices}), answer(200, COMPLETION)]
    completion = await client.chat.completions.create(**HELLO)
    said = [choice.message for choice in completion.choices]
    expected = [{**message, "content": None}, {"role": "assistant", "content": ""}]
    for messages in (said, [item.model_dump() for item in said]):
        await client.chat.completions.create(model="m", messages=[*HELLO["messages"], *messages])
        assert server.requests[-1].json["messages"][1:] == expected


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": ""}, "model"),
    ({"messages": []}, "messages"),
    ({"messages": "Hello"}, "messages"),
    ({"messages": [{"content": "Hello"}]}, "messages.0.role"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": math.nan}, "temperature"),
    ({"top_p": -0.1}, "top_p"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"n": 129}, "n"),
    ({"stop": ["a"] * 5}, "stop"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"logit_bias": {"1": 101}}, "logit_bias.1"),
    ({"tempreature": 1}, "tempreature"),
    ({"extra_body": {"x": math.inf}}, "extra_body"),
    ({"extra_body": {"x": object()}}, "extra_body"),
    ({"timeout": 0}, "timeout"),
    ({"idle_timeout": 1}, "idle_timeout"),
    ({"idle_timeout": 0, "stream": True}, "idle_timeout"),
    ({"messages": [*HELLO["messages"], {"role": "user", "content": "a\ud83d"}]}, "messages.1"),
    ({"tools": [{"a": object()}]}, "tools.0"),
    ({"extra_body": {"stream": True}}, "extra_body: stream is a parameter"),
    ({"extra_body": {"model": "m"}}, "extra_body: model is a parameter"),
    ({"stream": "false"}, "stream"),
    ({"stream": 1}, "stream"),
    ({"retry_ambiguous": "no"}, "retry_ambiguous"),
    ({"team_id": "a b"}, "team_id"),
]


async def test_a_page_in_place_of_the_service_points_to_the_address(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(404, b"<html>nginx</html>")]
    with pytest.raises(ModelNotFoundError, match="check the base URL"):
        await client.chat.completions.create(**HELLO)
    server.steps = [answer(404, {"detail": "no model"})]
    with pytest.raises(ModelNotFoundError) as caught:
        await client.chat.completions.create(**HELLO)
    assert "base URL" not in str(caught.value)


@pytest.mark.parametrize(("wrong", "named"), WRONG)
async def test_a_wrong_parameter_is_named_before_anything_is_sent(
    server: RawServer, client: AsyncInferenceClient, wrong: dict[str, Any], named: str
) -> None:
    request: Any = {**HELLO, **wrong}
    with pytest.raises((TypeError, ValueError), match=f"^{named}") as caught:
        await client.chat.completions.create(**request)
    assert "pydantic" not in str(caught.value)
    assert server.requests == []


async def test_a_chat_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncInferenceClient() as client:
        with pytest.raises(ConfigurationError):
            await client.chat.completions.create(**HELLO)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "not_found_error", ModelNotFoundError),
        (404, "anything", ModelNotFoundError),
        (400, "model_not_found", ModelNotFoundError),
        (400, "invalid_request", BadRequestError),
        (402, "insufficient_funds", PaymentRequiredError),
        (429, "insufficient_funds", PaymentRequiredError),
        (500, "boom", ServerError),
    ],
)
async def test_an_error_has_the_class_of_its_meaning(
    server: RawServer, client: AsyncInferenceClient, status: int, code: str, kind: type[APIError]
) -> None:
    body = {"error": {"message": "why", "type": "t", "code": code, "param": None}}
    server.steps = [answer(status, body, X_Inference_Id="inf-9")]
    with pytest.raises(APIError, match="why") as caught:
        await client.chat.completions.create(**HELLO)
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.inference_id) == (code, "inf-9")
    assert len(server.requests) == 1


@pytest.mark.parametrize("step", [reset(), hang_up(), answer(502), answer(500), answer(503)])
async def test_what_may_have_been_paid_for_is_not_sent_again(
    server: RawServer, client: AsyncInferenceClient, step: Any
) -> None:
    server.steps = [step, answer(200, COMPLETION)]
    with pytest.raises((APIConnectionError, ServerError), match="check before you send it again"):
        await client.chat.completions.create(**HELLO)
    assert len(server.requests) == 1


async def test_it_is_sent_again_when_the_caller_allows_it(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [reset(), answer(502), answer(200, COMPLETION)]
    completion = await client.chat.completions.create(**HELLO, retry_ambiguous=True)
    assert completion.id == "chatcmpl-1"
    assert len({request.body for request in server.requests}) == 1
    assert len(server.requests) == 3


async def test_a_refusal_for_the_rate_is_waited_out(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(429, {}, Retry_After="0.05"), answer(200, COMPLETION)]
    assert (await client.chat.completions.create(**HELLO)).id == "chatcmpl-1"
    server.steps = [answer(429, {}, Retry_After="500")]
    with pytest.raises(RateLimitError) as caught:
        await client.chat.completions.create(**HELLO)
    assert caught.value.retry_after == 500


async def test_an_answer_that_is_no_completion_is_an_error(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, {"object": "chat.completion"}, X_Inference_Id="inf-4")]
    with pytest.raises(APIResponseError, match="choices") as caught:
        await client.chat.completions.create(**HELLO)
    assert caught.value.inference_id == "inf-4"


async def test_a_time_limit_holds(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [silence()]
    with pytest.raises(APITimeoutError):
        await client.chat.completions.create(**HELLO, timeout=0.2)


async def test_a_cancelled_call_hangs_up(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [silence()]
    task = asyncio.ensure_future(client.chat.completions.create(**HELLO))
    await server.arrived(1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


def test_the_sync_client_completes_too(server: RawServer, sync_client: InferenceClient) -> None:
    server.steps = [answer(200, COMPLETION, X_Inference_Id="inf-1")]
    completion = sync_client.chat.completions.create(**HELLO)
    assert completion.choices[0].message == ChatCompletionMessage(
        role="assistant", content="Hello!", annotations=[]
    )
    assert completion.inference_id == "inf-1"
