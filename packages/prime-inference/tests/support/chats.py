"""A request for a completion, and a whole answer to it."""

from __future__ import annotations

from typing import Any, TypedDict

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1793404800,
    "model": "z-ai/glm-5.3",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello!", "annotations": []},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 25,
        "total_tokens": 35,
        "cost": 0.000061,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
    "service_tier": "provisioned",
}


class Hello(TypedDict):
    model: str
    messages: list[dict[str, str]]


HELLO: Hello = {
    "model": "z-ai/glm-5.3",
    "messages": [{"role": "user", "content": "Hello"}],
}
