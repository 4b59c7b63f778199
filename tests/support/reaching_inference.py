"""For each operation of the contract of inference: how a user's program comes to call it.

Only public methods are used, and each must succeed; a test compares the keys with the contract.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from prime_inference import AsyncInferenceClient, BooleanQuestion

MODEL = "z-ai/glm-5.3"
QUESTIONS = {"late": BooleanQuestion(instructions="Is anybody late?")}


async def list_models(client: AsyncInferenceClient) -> None:
    assert MODEL in [each.id for each in (await client.models.list()).data]


async def get_model(client: AsyncInferenceClient) -> None:
    assert (await client.models.get(MODEL)).id == MODEL


async def complete(client: AsyncInferenceClient) -> None:
    completion = await client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hello"}]
    )
    assert completion.choices[0].message.content


async def judge(client: AsyncInferenceClient, *, gateway_protocol: bool) -> None:
    found = await client.evaluations.create(
        model="cloudflare/clef",
        state="Bob came at noon.",
        questions=QUESTIONS,
        gateway_protocol=gateway_protocol,
    )
    assert set(found.answers) == {"late"}


REACH: dict[str, Callable[[AsyncInferenceClient], Awaitable[object]]] = {
    "list_inference_models": list_models,
    "get_inference_model": get_model,
    "create_chat_completion": complete,
    "create_inference_evaluation": lambda client: judge(client, gateway_protocol=False),
    "create_inference_evaluation_v4": lambda client: judge(client, gateway_protocol=True),
}
