"""The official OpenAI SDK works against the local platform, as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from pydantic import BaseModel

from prime_local import FaultRule, LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

OPERATION = "create_chat_completion"
MODEL, ECHO = "z-ai/glm-5.3", "local/echo"
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@pytest.fixture
async def ai(prime_platform: LocalPlatform) -> AsyncIterator[AsyncOpenAI]:
    url = prime_platform.env["PRIME_INFERENCE_URL"]
    async with AsyncOpenAI(api_key=prime_platform.api_key, base_url=url, timeout=10) as client:
        yield client


@pytest.fixture
def blocking(prime_platform_server: PlatformProcess) -> Iterator[OpenAI]:
    url = prime_platform_server.env["PRIME_INFERENCE_URL"]
    with OpenAI(api_key=prime_platform_server.api_key, base_url=url, timeout=10) as client:
        yield client
    prime_platform_server.reset()


def test_the_blocking_client(blocking: OpenAI) -> None:
    """What the documentation shows."""
    whole = blocking.chat.completions.create(model=MODEL, messages=HELLO)
    stream = blocking.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
    text = "".join(
        chunk.choices[0].delta.content
        for chunk in stream
        if chunk.choices and chunk.choices[0].delta.content
    )
    assert text == whole.choices[0].message.content
    response = blocking.chat.completions.create(
        model=MODEL, messages=HELLO, extra_body={"usage": {"include": True}}
    )
    assert response.usage is not None
    assert response.usage.model_extra is not None
    assert response.usage.model_extra["cost"] > 0


async def test_models(ai: AsyncOpenAI) -> None:
    listed = [model.id async for model in ai.models.list()]
    assert MODEL in listed
    assert (await ai.models.retrieve(MODEL)).owned_by == "z-ai"
    with pytest.raises(openai.NotFoundError):
        await ai.models.retrieve("no/such")


async def test_options_of_a_completion(ai: AsyncOpenAI) -> None:
    completion = await ai.chat.completions.create(
        model=MODEL,
        messages=[{"role": "system", "content": "Be brief."}, *HELLO],
        n=2,
        seed=7,
        stop=["clock"],
        max_tokens=5,
        temperature=0.2,
        logprobs=True,
        top_logprobs=2,
    )
    assert [choice.finish_reason for choice in completion.choices] == ["length", "length"]
    logprobs = completion.choices[1].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert [len(entry.top_logprobs) for entry in logprobs.content] == [2] * 5
    assert completion.usage is not None
    assert completion.usage.completion_tokens == 10


async def test_a_stream_with_its_totals(ai: AsyncOpenAI) -> None:
    chunks: list[ChatCompletionChunk] = []
    async with await ai.chat.completions.create(
        model=ECHO,
        messages=[{"role": "user", "content": "one é two 😀"}],
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        async for chunk in stream:
            chunks.append(chunk)
    *rest, last = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in rest) == "one é two 😀"
    assert rest[-1].choices[0].finish_reason == "stop"
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 4


async def test_tools_and_their_results(ai: AsyncOpenAI) -> None:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Weather in Oslo?"}]
    asked = await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
    message = asked.choices[0].message
    assert message.tool_calls is not None
    (call,) = message.tool_calls
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"city": "Oslo"}
    result: ChatCompletionMessageParam = {
        "role": "tool",
        "tool_call_id": call.id,
        "content": "rain",
    }
    messages += [message.to_dict(), result]  # type: ignore[list-item]
    told = await ai.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER])
    assert told.choices[0].finish_reason == "stop"
    assert told.choices[0].message.content


async def test_the_streaming_helper_puts_tool_calls_together(ai: AsyncOpenAI) -> None:
    async with ai.chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[WEATHER]
    ) as stream:
        kinds = [event.type async for event in stream]
        completion = await stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert json.loads(calls[0].function.arguments) == {"city": "Oslo"}


async def test_structured_output(ai: AsyncOpenAI) -> None:
    class Step(BaseModel):
        title: str
        minutes: int

    class Plan(BaseModel):
        steps: list[Step]

    completion = await ai.chat.completions.parse(model=MODEL, messages=HELLO, response_format=Plan)
    plan = completion.choices[0].message.parsed
    assert plan is not None
    assert plan.steps[0].title


async def test_errors_have_their_classes(
    ai: AsyncOpenAI, prime_platform: LocalPlatform, helpers: Any
) -> None:
    create = ai.chat.completions.create
    with pytest.raises(openai.AuthenticationError) as unknown:
        await ai.with_options(api_key="pit_wrong").chat.completions.create(
            model=MODEL, messages=HELLO
        )
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as missing:
        await create(model="no/such", messages=HELLO)
    assert missing.value.code == "not_found_error"
    with pytest.raises(openai.BadRequestError) as wrong:
        await create(model=MODEL, messages=HELLO, temperature=9)
    assert (wrong.value.param, wrong.value.type) == ("temperature", "invalid_request_error")
    prime_platform.set_balance(0)
    with pytest.raises(openai.APIStatusError) as poor:
        await create(model=MODEL, messages=HELLO, stream=True)
    assert (poor.value.status_code, poor.value.code) == (402, "insufficient_funds")
    assert poor.value.response.headers["X-Inference-Id"].startswith("inf_")
    async with helpers.client_of(prime_platform) as client:
        team_id = (await client.call("GET", "/api/v1/user/teams")).body["data"][0]["teamId"]
    await create(model=MODEL, messages=HELLO, extra_headers={"X-Prime-Team-ID": team_id})
    assert [call["team_id"] for call in prime_platform.inference_calls()] == [team_id]


async def test_errors_in_streams(ai: AsyncOpenAI, prime_platform: LocalPlatform) -> None:
    for form in ("error_object", "error_text"):
        prime_platform.add_faults(
            FaultRule(OPERATION, stream_form=form, after_envelopes=3, times=1)
        )
        stream = await ai.chat.completions.create(model=MODEL, messages=HELLO, stream=True)
        chunks: list[ChatCompletionChunk] = []
        with pytest.raises(openai.APIError):
            await _collect(stream, chunks)
        assert len(chunks) == 3


async def _collect(
    stream: openai.AsyncStream[ChatCompletionChunk], chunks: list[ChatCompletionChunk]
) -> None:
    async for chunk in stream:
        chunks.append(chunk)


async def test_retries(ai: AsyncOpenAI, prime_platform: LocalPlatform) -> None:
    prime_platform.add_faults(
        FaultRule(OPERATION, nth=1, status=429, headers={"Retry-After": "0.01"}),
        FaultRule(OPERATION, nth=1, status=500, body="upstream boom"),
    )
    await ai.chat.completions.create(model=MODEL, messages=HELLO)
    assert prime_platform.ledger()["requests"][OPERATION] == 3
    assert len(prime_platform.inference_calls()) == 1
    prime_platform.add_faults(FaultRule(OPERATION, status=429, headers={"Retry-After": "0.01"}))
    with pytest.raises(openai.RateLimitError):
        await ai.chat.completions.create(model=MODEL, messages=HELLO)


async def test_odd_streams_that_this_client_reads(
    ai: AsyncOpenAI, prime_platform: LocalPlatform
) -> None:
    plain = await _text(ai)
    for form in ("no_space", "crlf", "cr", "crlf_split", "comments", "multi_line", "no_done"):
        prime_platform.add_faults(FaultRule(OPERATION, stream_form=form, times=1))
        assert await _text(ai) == plain, form
    prime_platform.add_faults(FaultRule(OPERATION, trickle=0, times=1))
    assert await _text(ai) == plain


async def _text(ai: AsyncOpenAI) -> str:
    stream = await ai.chat.completions.create(
        model=MODEL, messages=HELLO, stream=True, max_tokens=5
    )
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])


async def test_many_streams_at_once(ai: AsyncOpenAI, prime_platform: LocalPlatform) -> None:
    texts = await asyncio.gather(*(_text(ai) for _ in range(50)))
    assert len(set(texts)) == 1
    assert prime_platform.ledger()["inference"]["open"] == 0
