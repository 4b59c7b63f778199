"""Requests to the inference service, and what their answers say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Answer, RawClient

CHAT = "/inference/api/v1/chat/completions"
MODELS = "/inference/api/v1/models"
EVALUATIONS = "/inference/api/v1/evaluations"
MODEL, ECHO, CLEF = "z-ai/glm-5.3", "local/echo", "cloudflare/clef"


def asking(text: str = "Hello", **options: object) -> dict[str, Any]:
    """The body of a chat request."""
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **options}


async def chat(client: RawClient, text: str = "Hello", **options: Any) -> Any:
    """Return a whole completion."""
    answer = await client.call("POST", CHAT, asking(text, **options))
    assert answer.status == 200, answer.body
    return answer.body


async def stream_text(client: RawClient, text: str = "Hello", **options: Any) -> str:
    """Return the bytes of a stream, as text."""
    answer = await client.call("POST", CHAT, asking(text, stream=True, **options))
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "text/event-stream"
    data: bytes = answer.body
    return data.decode()


async def chunks(client: RawClient, text: str = "Hello", **options: Any) -> list[Any]:
    """Return the chunks of a stream in the plain form, which ends with `[DONE]`."""
    events = (await stream_text(client, text, **options)).split("\n\n")
    data = [event.removeprefix("data: ") for event in events if event.startswith("data: ")]
    assert data.pop() == "[DONE]"
    return [json.loads(each) for each in data]


def text_of(found: list[Any], index: int = 0) -> str:
    """Return the content that chunks add up to."""
    choices = [choice for chunk in found for choice in chunk["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def error_of(answer: Answer) -> tuple[int, str | None, str | None]:
    """Return status, code and param of a refusal, whose id is in its header, too."""
    assert answer.body["inference_id"] == answer.headers["X-Inference-Id"]
    error = answer.body["error"]
    return answer.status, error.get("code"), error.get("param")
