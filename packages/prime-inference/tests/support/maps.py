"""Many requests, and a server that answers each by its number."""

from __future__ import annotations

from typing import Any

from raw_server import Received, Step, answer

from prime_inference import ChatRequest, CompletionResult


def request(number: int) -> ChatRequest:
    return {"model": "m", "messages": [{"role": "user", "content": str(number)}]}


def requests(count: int) -> list[ChatRequest]:
    return [request(number) for number in range(count)]


def asked(received: Received) -> int:
    return int(received.json["messages"][0]["content"])


def completion(number: int, cost: float | None = 0.1) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"answer {number}"}
    usage = {"prompt_tokens": 2, "completion_tokens": 3, "cost": cost}
    return {"id": f"c{number}", "choices": [{"index": 0, "message": message}], "usage": usage}


def answering(received: Received) -> Step:
    return answer(200, completion(asked(received)), X_Inference_Id=f"inf-{asked(received)}")


def contents(results: list[CompletionResult]) -> dict[int, str | None]:
    return {
        result.index: result.completion.choices[0].message.content
        for result in results
        if result.completion is not None
    }


def expected(count: int) -> dict[int, str]:
    return {number: f"answer {number}" for number in range(count)}
