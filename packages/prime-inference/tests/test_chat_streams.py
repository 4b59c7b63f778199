"""Completions while they are made."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest
from chats import HEAD, HELLO, STORY, USAGE, Endless, delta, end, event, piece, streamed, wire_chunk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_server import RawServer, Received, Wire, answer, reset

from prime_inference import (
    APIError,
    APIResponseError,
    APITimeoutError,
    AsyncInferenceClient,
    ChatCompletion,
    ChatCompletionChunk,
    InferenceClient,
    ModelNotFoundError,
    ServerError,
    StreamStateError,
)
from prime_inference.assembly import CompletionAssembler


async def assemble(
    server: RawServer, client: AsyncInferenceClient, chunks: Sequence[object], *, done: bool = True
) -> ChatCompletion:
    server.steps = [streamed(chunks, done=done)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    return await stream.get_final_completion()


async def test_chunks_come_while_they_are_made(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [streamed(STORY)]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    assert stream.inference_id == "inf-1"
    chunks = [chunk async for chunk in stream]
    assert all(isinstance(chunk, ChatCompletionChunk) for chunk in chunks)
    assert [chunk.choices[0].delta.content for chunk in chunks if chunk.choices][3:5] == [
        "A ",
        "lock.",
    ]
    (request,) = server.requests
    assert request.json == {**HELLO, "stream": True}
    assert "text/event-stream" in request.headers["accept"]


async def test_the_whole_is_put_together(server: RawServer, client: AsyncInferenceClient) -> None:
    completion = await assemble(server, client, STORY)
    (choice,) = completion.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "A lock.")
    assert (choice.message.reasoning_content, choice.message.reasoning) == ("short", None)
    assert (choice.message.tool_calls, choice.logprobs) == (None, None)
    assert (choice.finish_reason, completion.id, completion.model) == ("stop", "c1", "m")
    assert completion.usage is not None
    assert (completion.usage.total_tokens, completion.usage.cost) == (24, 0.000024)
    assert completion.inference_id == "inf-1"


async def test_answers_and_tool_calls_interleave(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    def tool(index: int, **fields: Any) -> dict[str, Any]:
        return delta(1, tool_calls=[{"index": index, **fields}])

    completion = await assemble(
        server,
        client,
        [
            tool(1, id="b", type="function", function={"name": "g", "arguments": ""}),
            delta(0, content="x"),
            tool(0, id="a", type="function", function={"name": "f", "arguments": '{"c'}),
            tool(1, function={"arguments": "{}"}),
            delta(0, refusal="no", reasoning="hm"),
            tool(0, function={"arguments": 'ity":1'}),
            end(1, "tool_calls"),
            delta(0, content="y", reasoning_details=[{"n": 1}], annotations=["z"]),
            end(0, "length"),
        ],
        done=False,
    )
    text, tools = completion.choices
    assert (text.index, text.message.content, text.message.refusal) == (0, "xy", "no")
    assert (text.message.reasoning, text.message.reasoning_details) == ("hm", [{"n": 1}])
    assert text.message.model_extra == {"annotations": ["z"]}
    assert (text.finish_reason, tools.finish_reason) == ("length", "tool_calls")
    assert tools.message.content is None
    assert tools.message.tool_calls is not None
    calls = [(call.id, call.function) for call in tools.message.tool_calls]
    assert [(id, call and (call.name, call.arguments)) for id, call in calls] == [
        ("a", ("f", '{"city":1')),
        ("b", ("g", "{}")),
    ]


async def test_tool_calls_without_numbers_are_told_apart_by_their_ids_and_names(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    pieces = [
        {"id": "a", "function": {"name": "f", "arguments": "1"}},
        {"function": {"arguments": "2"}},
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "3"}},
        {"custom": {"input": "4"}},
        {"id": "b", "custom": {"name": "g", "input": "5"}},
        {"function": {"name": "h", "arguments": "6"}},
    ]
    chunks = [delta(tool_calls=[tool]) for tool in pieces]
    completion = await assemble(server, client, [*chunks, end()])
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert [call.model_dump(exclude_none=True) for call in calls] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "12"}},
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "345"}},
        {"id": "", "type": "function", "function": {"name": "h", "arguments": "6"}},
    ]


async def test_unknown_fields_are_in_the_whole_too(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    tool = {"index": 0, "function": {"name": "f", "arguments": "{}", "strict": 1}, "signature": "s"}
    chunks = [
        piece({"delta": {"tool_calls": [tool]}, "native": None}, provider="p"),
        piece({"delta": {"audio": 1}, "native": "end"}, inference_id=5),
        end(),
    ]
    completion = await assemble(server, client, chunks)
    assert completion.model_extra == {"provider": "p"}
    assert completion.inference_id == "inf-1"
    (choice,) = completion.choices
    assert choice.model_extra == {"native": "end"}
    assert choice.message.model_extra == {"audio": 1}
    assert choice.message.tool_calls is not None
    (call,) = choice.message.tool_calls
    assert call.model_extra == {"signature": "s"}
    assert call.function is not None
    assert call.function.model_extra == {"strict": 1}


async def test_what_names_a_completion_is_taken_as_it_comes_first(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "x"}}], "model": "m"},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "created": 5},
        {"choices": [], "id": "late", "usage": USAGE},
    ]
    completion = await assemble(server, client, chunks)
    assert (completion.id, completion.model, completion.created) == ("late", "m", 5)


async def test_logprobs_and_odd_places_of_usage(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    def token(text: str) -> dict[str, Any]:
        tokens = {"content": [{"token": text, "logprob": -0.5}]}
        return piece({"delta": {"content": text}, "logprobs": tokens})

    completion = await assemble(
        server,
        client,
        [
            {"id": "c1", "ping": True},
            token("a"),
            token("b"),
            piece({"delta": {}, "finish_reason": "stop", "usage": {"total_tokens": 3}}),
            piece(service_tier="provisioned", system_fingerprint="fp"),
        ],
    )
    logprobs = completion.choices[0].logprobs
    assert logprobs is not None
    assert [item.token for item in logprobs.content or ()] == ["a", "b"]
    assert logprobs.refusal is None
    assert completion.usage is not None
    assert completion.usage.total_tokens == 3
    assert (completion.service_tier, completion.system_fingerprint) == ("provisioned", "fp")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30), st.text(max_size=30), st.integers(1, 7))
def test_however_a_text_is_cut_it_is_put_together(content: str, thought: str, size: int) -> None:
    assembler = CompletionAssembler()
    for name, text in (("reasoning", thought), ("content", content)):
        for start in range(0, len(text), size):
            chunk = piece({"delta": {name: text[start : start + size]}})
            assembler.add(ChatCompletionChunk.model_validate(chunk))
            assert not assembler.is_complete()
    assembler.add(ChatCompletionChunk.model_validate(end()))
    assert assembler.is_complete()
    message = assembler.completion(None).choices[0].message
    assert (message.content or "", message.reasoning or "") == (content, thought)


async def test_a_stream_may_end_without_its_mark_when_every_answer_has_its_end(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    completion = await assemble(server, client, STORY, done=False)
    assert completion.choices[0].message.content == "A lock."
    with pytest.raises(APIResponseError, match="cut short"):
        await assemble(server, client, [*STORY[:4], delta(1, content="x"), end()], done=False)


async def test_an_error_in_the_middle_leaves_what_came_before_it(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    wrong = {"error": {"message": "Upstream connection lost", "type": "server_error", "code": 502}}
    server.steps = [streamed([delta(content="Par"), wrong])]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    with pytest.raises(ServerError, match="Upstream connection lost") as caught:
        await stream.get_final_completion()
    assert (caught.value.code, caught.value.inference_id) == ("502", "inf-1")
    assert caught.value.operation == "create_chat_completion"
    assert stream.get_completion_so_far().choices[0].message.content == "Par"
    with pytest.raises(StreamStateError, match="broke before its end"):
        await stream.get_final_completion()


async def test_a_stream_that_breaks_is_not_begun_again(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    async def step(wire: Wire, request: Received) -> None:
        await wire.send(HEAD + wire_chunk(event(STORY[3])))
        await asyncio.sleep(0.05)
        await reset()(wire, request)

    server.steps = [step]
    stream = await client.chat.completions.create(**HELLO, stream=True, retry_ambiguous=True)
    assert (await stream.__anext__()).choices[0].delta.content == "A "
    with pytest.raises(APIError, match="create_chat_completion"):
        await stream.__anext__()
    assert len(server.requests) == 1


async def test_silence_ends_a_stream(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [streamed(STORY, pause=5)]
    stream = await client.chat.completions.create(**HELLO, stream=True, idle_timeout=0.2)
    with pytest.raises(APITimeoutError) as caught:
        await stream.get_final_completion()
    assert caught.value.phase == "idle"


@pytest.mark.parametrize("how", ["break", "context", "aclose", "cancel", "error"])
async def test_leaving_early_closes_the_connection_at_once(
    server: RawServer, client: AsyncInferenceClient, how: str
) -> None:
    endless = Endless()
    server.steps = [endless]
    stream = await client.chat.completions.create(**HELLO, stream=True)

    async def use() -> None:
        if how == "context":
            async with stream:
                await stream.__anext__()
            return
        async for _ in stream:
            if how == "error":
                raise KeyError
            if how == "break":
                break
            if how == "aclose":
                await stream.aclose()

    using = asyncio.ensure_future(use())
    if how == "cancel":
        await asyncio.sleep(0.05)
        using.cancel()
    await asyncio.wait([using])
    gc.collect()
    await endless.cut_off()
    if how == "error":
        assert isinstance(using.exception(), KeyError)
    with pytest.raises(StreamStateError, match="closed, left"):
        await stream.__anext__()


async def test_many_streams_at_once_lose_nothing_and_leave_nothing(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [streamed([*STORY[:3], *STORY[3:5] * 20, *STORY[5:]])]

    async def read() -> str | None:
        stream = await client.chat.completions.create(**HELLO, stream=True)
        return (await stream.get_final_completion()).choices[0].message.content

    assert set(await asyncio.gather(*[read() for _ in range(150)])) == {"A lock." * 20}
    state = client.client._transport._states.get()
    assert state.stream._value == state.stream_places
    assert not state.session.connector._acquired  # type: ignore[union-attr]


async def test_a_server_that_does_not_stream_gives_one_chunk(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "1"}}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [call, {**call, "id": "b"}]}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"id": "c1", "object": "chat.completion", "choices": choices, "usage": USAGE}
    server.steps = [answer(200, body, Content_Type="application/json")]
    stream = await client.chat.completions.create(**HELLO, stream=True)
    (chunk,) = [chunk async for chunk in stream]
    assert (chunk.object, chunk.choices[0].delta.content) == ("chat.completion.chunk", "Hi")
    completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Hi"
    assert [call.id for call in completion.choices[0].message.tool_calls or ()] == ["a", "b"]


async def test_who_asks_for_the_cost_of_a_stream_asks_for_its_totals(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [streamed(STORY)]
    for options in ({}, {"stream_options": {"include_usage": False}}):
        request: Any = {**HELLO, "usage": {"include": True}, **options}
        async with await client.chat.completions.create(**request, stream=True):
            pass
    sent = [request.json["stream_options"] for request in server.requests]
    assert sent == [{"include_usage": True}, {"include_usage": False}]


async def test_an_error_answer_is_raised_at_once(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(404, {"error": {"message": "Model not found"}})]
    with pytest.raises(ModelNotFoundError):
        await client.chat.completions.create(**HELLO, stream=True)


def test_a_sync_stream(server: RawServer, sync_client: InferenceClient) -> None:
    server.steps = [streamed(STORY)]
    with sync_client.chat.completions.create(**HELLO, stream=True) as stream:
        text = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
    assert "".join(part or "" for part in text) == "A lock."
    assert stream.get_final_completion().choices[0].message.content == "A lock."
    assert stream.inference_id == "inf-1"


def test_breaking_out_of_a_sync_stream_closes_it(
    server: RawServer, sync_client: InferenceClient
) -> None:
    endless = Endless()
    server.steps = [endless, streamed(STORY)]
    for _ in sync_client.chat.completions.create(**HELLO, stream=True):
        break
    assert endless.gone.wait(1)
    stream = sync_client.chat.completions.create(**HELLO, stream=True)
    assert next(stream).id == "c1"
    stream.close()
    with pytest.raises(StreamStateError, match="closed, left"):
        next(stream)
