"""The client against the local platform."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal

import pytest

from prime_inference import (
    AsyncInferenceClient,
    BadRequestError,
    BooleanAnswer,
    BooleanQuestion,
    ChatRequest,
    ChoiceAnswer,
    ChoiceQuestion,
    ModelNotFoundError,
    ScoreAnswer,
    ScoreQuestion,
)
from prime_local import LocalPlatform

CHAT = "z-ai/glm-5.3"
EVALUATION = "cloudflare/clef-flash"


@pytest.fixture
async def platform(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalPlatform]:
    async with LocalPlatform(limits=False, isolation="process") as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        yield platform


def request(number: int) -> ChatRequest:
    messages = [{"role": "user", "content": f"Tell me of number {number}."}]
    return {"model": CHAT, "messages": messages, "max_tokens": 12}


async def test_the_catalogue(platform: LocalPlatform) -> None:
    async with AsyncInferenceClient() as client:
        models = (await client.models.list()).data
        assert {CHAT, EVALUATION} <= {model.id for model in models}
        assert (await client.models.get(CHAT)).serving == "hosted"
        with pytest.raises(ModelNotFoundError) as caught:
            await client.models.get("no/such")
        assert caught.value.inference_id


async def test_a_completion_whole_and_streamed(platform: LocalPlatform) -> None:
    async with AsyncInferenceClient() as client:
        create = client.chat.completions.create
        messages = [{"role": "user", "content": "Tell me of mutexes."}]
        cost = {"include": True}
        whole = await create(model=CHAT, messages=messages, seed=7, usage=cost)
        stream = await create(model=CHAT, messages=messages, seed=7, usage=cost, stream=True)
        streamed = await stream.get_final_completion()
        assert whole.inference_id
        assert streamed.inference_id
        assert streamed.choices[0].message.content == whole.choices[0].message.content
        assert streamed.usage == whole.usage
        assert whole.usage is not None
        assert whole.usage.cost
        with pytest.raises(ModelNotFoundError):
            await create(model="no/such", messages=messages)
        with pytest.raises(BadRequestError):
            await create(model=EVALUATION, messages=messages)


@pytest.mark.parametrize("gateway_protocol", [False, True])
async def test_an_evaluation(platform: LocalPlatform, gateway_protocol: bool) -> None:
    async with AsyncInferenceClient() as client:
        response = await client.evaluations.create(
            model=EVALUATION,
            state="User: the checkout page returns a 500 every time I pay.",
            questions={
                "incident": BooleanQuestion(instructions="Is it an outage?"),
                "team": ChoiceQuestion(criteria={"engineering": "Bugs", "billing": None}),
                "severity": ScoreQuestion(criteria=["minor", "major", "critical"]),
            },
            images=[b"\x89PNG\r\n\x1a\npixels"],
            gateway_protocol=gateway_protocol,
        )
    incident, team, severity = response.answers.values()
    assert isinstance(incident, BooleanAnswer)
    assert isinstance(team, ChoiceAnswer)
    assert team.choice in ("engineering", "billing")
    assert isinstance(severity, ScoreAnswer)
    assert 0 <= severity.score <= 2
    assert response.inference_id


async def test_many_completions_at_the_pace_that_the_platform_takes(
    platform: LocalPlatform,
) -> None:
    platform.set_inference(concurrency=8)
    async with AsyncInferenceClient() as client:
        results = client.map_completions([request(number) for number in range(100)], limit=50)
        taken = [result async for result in results]
    assert all(result.ok for result in taken)
    calls = platform.inference_calls()
    assert len(calls) == 100  # each was paid for once
    assert results.totals.cost == sum(Decimal(str(call["cost_usd"])) for call in calls)
