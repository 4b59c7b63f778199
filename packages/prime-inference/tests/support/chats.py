"""A request for a completion, and answers to it: whole and in pieces."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any, TypedDict

from raw_server import Received, Step, Wire

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

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Inference-Id: inf-1\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


USAGE = {"prompt_tokens": 18, "completion_tokens": 6, "total_tokens": 24, "cost": 0.000024}


def piece(*choices: dict[str, Any], **fields: Any) -> dict[str, Any]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {
        **head,
        "choices": [{"index": 0, "finish_reason": None, **c} for c in choices],
        **fields,
    }


def delta(index: int = 0, **fields: Any) -> dict[str, Any]:
    return piece({"index": index, "delta": fields})


def end(index: int = 0, reason: str = "stop") -> dict[str, Any]:
    return piece({"index": index, "delta": {}, "finish_reason": reason})


STORY = [
    delta(role="assistant", content=""),
    delta(reasoning_content="sh"),
    delta(reasoning_content="ort"),
    delta(content="A "),
    delta(content="lock."),
    end(),
    piece(usage=USAGE),
]


def event(data: object) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def wire_chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def streamed(chunks: Sequence[object], *, done: bool = True, pause: float = 0) -> Step:
    async def step(wire: Wire, _: Received) -> None:
        await wire.send(HEAD)
        for chunk in chunks:
            await wire.send(wire_chunk(event(chunk)))
            await asyncio.sleep(pause)
        if done:
            await wire.send(wire_chunk(b"data: [DONE]\n\n"))
        await wire.send(b"0\r\n\r\n")

    return step


class Endless:
    """Streams without an end, and notes when it was cut off."""

    def __init__(self) -> None:
        self.gone = threading.Event()

    async def __call__(self, wire: Wire, _: Received) -> None:
        try:
            await wire.send(HEAD)
            while True:
                await wire.send(wire_chunk(event(delta(content="more"))))
                await asyncio.sleep(0.002)
        finally:
            self.gone.set()

    async def cut_off(self) -> None:
        assert await asyncio.to_thread(self.gone.wait, 1)
