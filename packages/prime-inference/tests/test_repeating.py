"""How often a call that is paid for is sent, and what its error says of that."""

from __future__ import annotations

from typing import Any

import pytest
from chats import COMPLETION, HELLO
from raw_server import RawServer, Step, answer, hang_up, raw

from prime_inference import (
    APIError,
    AsyncInferenceClient,
    BadRequestError,
    BooleanQuestion,
    ChatRequest,
    RateLimitError,
    ServerError,
)

pytestmark = pytest.mark.usefixtures("quick_retries")

ONE: ChatRequest = {"model": "m", "messages": HELLO["messages"]}
DOWN = answer(503, b"down")
BUSY = answer(429, {}, Retry_After="0.01")
LATER = answer(503, b"later", Retry_After="0.01")


async def _create(client: AsyncInferenceClient, **options: Any) -> None:
    await client.chat.completions.create(**HELLO, retry_ambiguous=True, **options)


async def _evaluate(client: AsyncInferenceClient) -> None:
    question = BooleanQuestion(instructions="Is it?")
    await client.evaluations.create(
        model="m", state="x", questions={"a": question}, retry_ambiguous=True
    )


async def _map(client: AsyncInferenceClient) -> None:
    async for result in client.map_completions([ONE], retry_ambiguous=True):
        if result.error is not None:
            raise result.error


async def _stream(client: AsyncInferenceClient) -> None:
    await _create(client, stream=True)


@pytest.mark.parametrize("make", [_create, _stream, _evaluate, _map])
@pytest.mark.parametrize("failure", [DOWN, hang_up()])
async def test_a_repetition_that_may_be_paid_twice_is_bounded_while_the_host_is_down(
    server: RawServer, client: AsyncInferenceClient, make: Any, failure: Step
) -> None:
    server.steps = [answer(200, {"data": []}), failure]
    await client.models.list()  # a host that has answered before is waited for
    with pytest.raises(APIError, match="may have done it 3 times: check"):
        await make(client)
    assert len(server.requests) == 1 + 3


async def test_refusals_in_between_give_no_further_repetitions(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    for make in (_create, _map):
        server.requests.clear()
        server.steps = [hang_up(), BUSY, hang_up(), BUSY, hang_up(), BUSY, answer(200, COMPLETION)]
        with pytest.raises(APIError, match="may have done it 3 times: check"):
            await make(client)
        assert len(server.requests) == 5


async def test_the_end_of_repetitions_tells_what_the_earlier_ones_may_have_done(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [hang_up(), hang_up(), answer(400, {"error": {"message": "no"}})]
    with pytest.raises(BadRequestError, match=r"no; .* may have done it 2 times"):
        await _create(client)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9\r\n\r\ndata: {"
    server.steps = [hang_up(), raw(head)]
    stream = await client.chat.completions.create(**HELLO, stream=True, retry_ambiguous=True)
    with pytest.raises(APIError, match="may have done it 2 times"):
        await stream.get_final_completion()
    server.steps = [answer(400)]
    with pytest.raises(BadRequestError) as caught:
        await _create(client)
    assert "may have" not in str(caught.value)


async def test_a_503_that_asks_to_wait_is_waited_for_by_each_road(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [LATER, LATER, answer(200, COMPLETION)]
    await client.chat.completions.create(**HELLO)
    server.steps = [LATER, LATER, answer(200, COMPLETION)]
    results = [result async for result in client.map_completions([ONE])]
    assert [result.ok for result in results] == [True]


@pytest.mark.parametrize(("status", "kind"), [(503, ServerError), (429, RateLimitError)])
async def test_the_end_of_the_waits_names_their_limit(
    server: RawServer, client: AsyncInferenceClient, status: int, kind: type[APIError]
) -> None:
    server.steps = [answer(status, {}, Retry_After="500")]
    with pytest.raises(kind, match="500 s; that is more than what is left of max_throttle_wait"):
        await client.chat.completions.create(**HELLO)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [421, 425, 520, 529])
async def test_an_odd_status_of_something_in_between_leaves_open_what_was_done(
    server: RawServer, client: AsyncInferenceClient, status: int
) -> None:
    server.steps = [answer(status)]
    with pytest.raises(APIError, match="may have done it: check before you send it again"):
        await client.chat.completions.create(**HELLO)
    assert len(server.requests) == 1
