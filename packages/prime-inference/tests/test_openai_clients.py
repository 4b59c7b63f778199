"""The OpenAI SDK, set up for the platform."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from raw_server import RawServer, answer, raw
from rows import KEY

from prime_inference import Config, ConfigurationError, async_openai_client, openai_client

MODEL = {"id": "z-ai/glm-5.3", "object": "model", "created": 1, "owned_by": "z-ai"}
COMPLETION: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    ],
}
EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
    b"data: [DONE]\n\n"
)


@pytest.fixture
def account(server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment that names the server, the key and a team."""
    monkeypatch.setenv("PRIME_INFERENCE_URL", f"{server.url}/api/v1/")
    monkeypatch.setenv("PRIME_API_KEY", KEY)
    monkeypatch.setenv("PRIME_TEAM_ID", "team-1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")


@pytest.mark.usefixtures("account")
def test_it_lists_completes_and_streams(server: RawServer) -> None:
    server.steps = [answer(200, {"data": [MODEL]}), answer(200, COMPLETION), raw(EVENTS)]
    messages: Any = [{"role": "user", "content": "Hello"}]
    with openai_client() as client:
        assert [model.id for model in client.models.list()] == ["z-ai/glm-5.3"]
        completion = client.chat.completions.create(model="m", messages=messages)
        assert completion.choices[0].message.content == "Hi"
        with client.chat.completions.create(model="m", messages=messages, stream=True) as stream:
            assert [chunk.choices[0].delta.content for chunk in stream] == ["Hi"]
    assert server.targets == ["GET /api/v1/models"] + ["POST /api/v1/chat/completions"] * 2
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["x-prime-team-id"] == "team-1"


@pytest.mark.usefixtures("account")
async def test_the_async_one_does_too(server: RawServer) -> None:
    server.steps = [answer(200, COMPLETION)]
    async with async_openai_client(team_id="", default_headers={"X-Mine": "1"}) as client:
        completion = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hello"}]
        )
    assert completion.id == "c1"
    headers = server.requests[0].headers
    assert headers["x-mine"] == "1"
    assert "x-prime-team-id" not in headers


@pytest.mark.usefixtures("account")
def test_accounts_of_the_other_service_are_not_told(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    server.steps = [answer(200, {"data": [MODEL]})]
    with openai_client() as client, client.with_options(timeout=5) as other:
        for each in (client, other):
            each.models.list()
    with openai_client(organization="mine") as client:
        client.models.list()
    told = [request.headers.get("openai-organization") for request in server.requests]
    assert told == [None, None, "mine"]
    assert all("openai-project" not in request.headers for request in server.requests)


def test_nothing_is_sent_again_unless_it_is_asked_for(server: RawServer) -> None:
    server.steps = [answer(500), answer(500), answer(200, COMPLETION)]
    config = Config(KEY, inference_url=f"{server.url}/api/v1")
    messages: Any = [{"role": "user", "content": "Hello"}]
    with openai_client(config=config) as client, pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="m", messages=messages)
    assert len(server.requests) == 1
    with openai_client(config=config, max_retries=1, timeout=5) as client:
        assert client.chat.completions.create(model="m", messages=messages).id == "c1"


def test_it_needs_a_key_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-service")
    for make in (openai_client, async_openai_client):
        with pytest.raises(ConfigurationError, match="PRIME_API_KEY"):
            make()
    with pytest.raises(ValueError, match="PRIME_INFERENCE_URL"):
        openai_client("key", base_url="https://elsewhere.example/v1")
    with pytest.raises(ValueError, match="not both"):
        openai_client("key", config=Config("key"))
