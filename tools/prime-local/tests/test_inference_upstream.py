"""Completions that another server makes: here, a second platform with faults of its own."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from model_calls import CHAT, CLEF, EVALUATIONS, MODELS, asking, chat, chunks, stream_text, text_of

from prime_local import FaultRule, LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

OPERATION = "create_chat_completion"


@pytest.fixture
async def front(
    open_platform: OpenPlatform, prime_platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> tuple[LocalPlatform, RawClient]:
    """A platform whose text `prime_platform` makes."""
    monkeypatch.setenv("INFERENCE_UPSTREAM_API_KEY", prime_platform.api_key)
    return await open_platform(inference_upstream=prime_platform.env["PRIME_INFERENCE_URL"])


async def test_completions_come_from_there(
    front: tuple[LocalPlatform, RawClient], client: RawClient
) -> None:
    platform, through = front
    wanted = await chat(client, max_tokens=9)
    answer = await chat(through, max_tokens=9, usage={"include": True})
    assert answer["choices"] == wanted["choices"]
    usage = answer["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost"]) == (5, 9, None)
    (call,) = platform.inference_calls()
    assert (call["prompt_tokens"], call["completion_tokens"], call["cost_usd"]) == (5, 9, 0)


async def test_streams_come_from_there(
    front: tuple[LocalPlatform, RawClient], client: RawClient
) -> None:
    platform, through = front
    wanted = text_of(await chunks(client, max_tokens=9))
    assert text_of(await chunks(through, max_tokens=9)) == wanted
    found = await chunks(through, max_tokens=9, usage={"include": True})
    assert [chunk["usage"]["completion_tokens"] for chunk in found if "usage" in chunk] == [9]
    assert [call["completion_tokens"] for call in platform.inference_calls()] == [0, 9]


async def test_the_catalogue_is_theirs_and_our_evaluation_models(
    front: tuple[LocalPlatform, RawClient], client: RawClient
) -> None:
    _, through = front
    theirs = {model["id"] for model in (await client.call("GET", MODELS)).body["data"]}
    ours = [model["id"] for model in (await through.call("GET", MODELS)).body["data"]]
    assert set(ours) == theirs
    assert (await through.call("GET", f"{MODELS}/z-ai/glm-5.3")).status == 200
    body = {"model": CLEF, "state": "s", "questions": {"q": {"type": "boolean"}}}
    assert (await through.call("POST", EVALUATIONS, body)).status == 200
    assert (await through.call("POST", CHAT, asking(model=CLEF))).status == 400


async def test_their_refusals_are_passed_on(
    front: tuple[LocalPlatform, RawClient], prime_platform: LocalPlatform
) -> None:
    platform, through = front
    answer = await through.call("POST", CHAT, asking(model="no/such"))
    assert (answer.status, answer.body["error"]["code"]) == (404, "not_found_error")
    prime_platform.add_faults(
        FaultRule(OPERATION, status=429, headers={"Retry-After": "7"}, body='"slowly"'),
    )
    answer = await through.call("POST", CHAT, asking(stream=True))
    assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
    assert platform.inference_calls() == []


async def test_their_broken_streams_end_with_an_error(
    front: tuple[LocalPlatform, RawClient], prime_platform: LocalPlatform
) -> None:
    platform, through = front
    prime_platform.add_faults(FaultRule(OPERATION, after_envelopes=3, truncate=0))
    text = await stream_text(through)
    *_, last, end = text.split("\n\n")
    assert ("broke off" in last, end) == (True, "")
    assert last.startswith('data: {"error":{')
    assert platform.inference_calls()[0]["outcome"] == "abandoned"


async def test_a_server_that_is_not_there(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(inference_upstream="http://127.0.0.1:9/v1")
    for method, path in (("GET", MODELS), ("POST", CHAT)):
        answer = await client.call(method, path, asking())
        assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")
    with pytest.raises(ValueError, match="http address"):
        await open_platform(inference_upstream="localhost:8000")


async def test_a_reader_that_leaves_ends_their_stream(
    front: tuple[LocalPlatform, RawClient], prime_platform: LocalPlatform
) -> None:
    _, through = front
    body: dict[str, Any] = asking(stream=True, max_tokens=100_000, ignore_eos=True)
    response = await through.session.post(through.url + CHAT, json=body, headers=through.key)
    await response.content.readany()
    response.close()
    deadline = time.monotonic() + 5
    while prime_platform.ledger()["inference"]["open"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert prime_platform.inference_calls()[0]["completion_tokens"] < 100_000


def test_the_command_line_names_it(prime_platform_server: PlatformProcess) -> None:
    upstream = prime_platform_server.env["PRIME_INFERENCE_URL"]
    with (
        PlatformProcess(["--inference-upstream", upstream]) as platform,
        urllib.request.urlopen(platform.env["PRIME_INFERENCE_URL"] + "/models") as response,
    ):
        ids = [model["id"] for model in json.load(response)["data"]]
    assert ids[:2] == ["z-ai/glm-5.3", "qwen/qwen3-32b"]
    assert prime_platform_server.ledger()["requests"]["list_inference_models"] == 1
    prime_platform_server.reset()
