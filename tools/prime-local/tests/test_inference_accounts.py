"""Who may ask models what, who pays for it, and what the catalogue shows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from model_calls import (
    CHAT,
    CLEF,
    ECHO,
    EVALUATIONS,
    MODEL,
    MODELS,
    asking,
    chat,
    error_of,
    stream_text,
)
from yarl import URL

from prime_local import Assumptions, FaultRule, LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient


@pytest.fixture
async def team_id(client: RawClient) -> str:
    """A team of the caller's."""
    teams = (await client.call("GET", "/api/v1/user/teams")).body["data"]
    found: str = teams[0]["teamId"]
    return found


def paid_by(client: RawClient, team_id: str) -> dict[str, str]:
    return {**client.key, "X-Prime-Team-ID": team_id}


QUESTION = {"model": CLEF, "state": "s", "questions": {"q": {"type": "boolean"}}}


def ids(answer: Any) -> list[str]:
    return [model["id"] for model in answer.body["data"]]


async def test_the_catalogue_needs_no_key_but_no_wrong_one(client: RawClient) -> None:
    listed = await client.call("GET", MODELS, headers={})
    assert (listed.status, listed.body["object"]) == (200, "list")
    assert MODEL in ids(listed)
    assert (await client.call("GET", f"{MODELS}/{MODEL}", headers={})).status == 200
    wrong = await client.call("GET", MODELS, headers={"Authorization": "Bearer pit_wrong"})
    assert error_of(wrong)[:2] == (401, "invalid_api_key")
    assert wrong.body["error"]["type"] == "authentication_error"


async def test_models_need_a_key(client: RawClient) -> None:
    for path in (CHAT, EVALUATIONS, "/inference/v4/ai/evaluation-model"):
        assert error_of(await client.call("POST", path, {}, {}))[0] == 401


async def test_one_model_by_its_raw_or_encoded_id(client: RawClient) -> None:
    for spelled in (MODEL, "z-ai%2Fglm-5.3", "z-ai%2fglm-5%2E3"):
        url = URL(client.url + f"{MODELS}/{spelled}", encoded=True)
        async with client.session.get(url) as response:
            assert (response.status, (await response.json())["id"]) == (200, MODEL)
    listed = (await client.call("GET", MODELS)).body["data"]
    assert all([(await client.call("GET", f"{MODELS}/{m['id']}")).body == m for m in listed])


async def test_what_the_catalogue_says(client: RawClient) -> None:
    listed = {model["id"]: model for model in (await client.call("GET", MODELS)).body["data"]}
    assert {model["serving"] for model in listed.values()} == {"hosted", "gateway"}
    assert listed[CLEF]["specs"]["output_modalities"] == ["decisions"]
    assert listed[MODEL]["pricing"]["cache_write_usd_per_mtok"] is None
    assert listed["qwen/qwen3-32b"]["pricing"]["input_usd_per_mtok"] == "0.10"
    assert listed["deepseek/deepseek-v3.1"]["pricing"] is None


async def test_some_models_are_a_teams_alone(client: RawClient, team_id: str) -> None:
    for headers, shown in (
        (client.key, False),
        ({"X-Prime-Team-ID": team_id}, False),
        (paid_by(client, team_id), True),
    ):
        answer = await client.call("GET", MODELS, headers=headers)
        assert ("internal/preview-1" in ids(answer)) is shown
    body = asking(model="internal/preview-1")
    assert error_of(await client.call("POST", CHAT, body))[0] == 404
    assert (await client.call("POST", CHAT, body, paid_by(client, team_id))).status == 200


async def test_unknown_and_withdrawn_models(open_platform: OpenPlatform) -> None:
    for form, code, kind in (
        ("observed", "not_found_error", None),
        ("older", "model_not_found", "invalid_request_error"),
    ):
        _, client = await open_platform(assumptions=Assumptions.parse([f"unknown_model={form}"]))
        withdrawn = "meta-llama/llama-3.1-8b-instruct"
        assert withdrawn in ids(await client.call("GET", MODELS))
        for answer in (
            await client.call("GET", f"{MODELS}/no/such"),
            await client.call("POST", CHAT, asking(model="no/such")),
            await client.call("POST", CHAT, asking(model=withdrawn)),
            await client.call("POST", EVALUATIONS, {**QUESTION, "model": "no/such"}),
        ):
            assert error_of(answer)[:2] == (404, code)
            assert answer.body["error"].get("type") == kind


async def test_every_answer_has_an_id(client: RawClient) -> None:
    for method, path, body in (
        ("GET", MODELS, None),
        ("POST", CHAT, asking()),
        ("POST", CHAT, asking(stream=True)),
        ("POST", EVALUATIONS, QUESTION),
        ("POST", MODELS, None),
        ("GET", "/inference/nothing", None),
        ("GET", "/inference/api/v1/sandbox", None),
    ):
        answer = await client.call(method, path, body)
        assert answer.headers["X-Inference-Id"].startswith("inf_")
        if answer.status != 200:
            assert error_of(answer)[0] in (404, 405)
    assert "X-Inference-Id" not in (await client.call("GET", "/api/v1/sandbox")).headers


async def test_calls_are_paid_from_the_account_that_the_header_names(
    prime_platform: LocalPlatform, client: RawClient, team_id: str
) -> None:
    body = asking(max_tokens=5, usage={"include": True})
    mine = (await client.call("POST", CHAT, body)).body["usage"]
    team = await client.call("POST", CHAT, {**body, "stream": True}, paid_by(client, team_id))
    await client.call("POST", EVALUATIONS, QUESTION, paid_by(client, team_id))
    first, second, third = prime_platform.inference_calls()
    assert first == {
        "inference_id": first["inference_id"],
        "operation": "create_chat_completion",
        "model": MODEL,
        "team_id": None,
        "prompt_tokens": mine["prompt_tokens"],
        "completion_tokens": 5,
        "cost_usd": mine["cost"],
        "streamed": False,
        "outcome": "completed",
    }
    assert second["inference_id"] == team.headers["X-Inference-Id"]
    assert (second["team_id"], second["streamed"]) == (team_id, True)
    assert second["completion_tokens"] == 5
    assert (third["model"], third["completion_tokens"]) == (CLEF, 0)
    accounts = prime_platform.ledger()["inference"]["accounts"]
    assert (accounts["personal"]["calls"], accounts[team_id]["calls"]) == (1, 2)
    assert accounts[team_id]["cost_usd"] == pytest.approx(second["cost_usd"] + third["cost_usd"])


async def test_a_team_that_the_caller_is_not_in_pays_for_nothing(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    for path, body in ((CHAT, asking()), (CHAT, asking(stream=True)), (EVALUATIONS, QUESTION)):
        answer = await client.call("POST", path, body, paid_by(client, "team_of_others"))
        assert error_of(answer)[0] == 403
    assert prime_platform.inference_calls() == []


async def test_an_empty_account_pays_for_nothing(
    prime_platform: LocalPlatform, client: RawClient, team_id: str
) -> None:
    cost = (await chat(client, usage={"include": True}))["usage"]["cost"]
    prime_platform.set_balance(cost / 2)
    await chat(client)
    for path, body in ((CHAT, asking()), (CHAT, asking(stream=True)), (EVALUATIONS, QUESTION)):
        answer = await client.call("POST", path, body)
        assert error_of(answer) == (402, "insufficient_funds", None)
        assert answer.body["error"]["type"] == "insufficient_quota"
        assert (await client.call("POST", path, body, paid_by(client, team_id))).status == 200
    prime_platform.set_balance("0", team_id)
    answer = await client.call("POST", CHAT, asking(), paid_by(client, team_id))
    assert error_of(answer)[0] == 402
    await client.call("POST", "/_local/reset")
    await chat(client)


async def test_one_call_too_many(prime_platform: LocalPlatform, client: RawClient) -> None:
    prime_platform.set_inference(token_time=0.05, concurrency=2)
    calls = [client.call("POST", CHAT, asking(model=ECHO)) for _ in range(5)]
    answers = await asyncio.gather(*calls)
    assert sorted(answer.status for answer in answers) == [200, 200, 429, 429, 429]
    refused = next(answer for answer in answers if answer.status == 429)
    assert error_of(refused)[1] == "rate_limit_exceeded"
    assert refused.headers["Retry-After"] == "1"
    assert (await client.call("POST", CHAT, asking(model=ECHO))).status == 200


async def test_a_body_that_is_too_large(client: RawClient) -> None:
    most = 16 * 1024 * 1024
    for path in (CHAT, EVALUATIONS):
        for size, status in ((most, 400), (most + 1, 413)):
            data = b'{"x":"' + b"x" * (size - 8) + b'"}'
            async with client.session.post(
                client.url + path, data=data, headers=client.key
            ) as response:
                assert response.status == status
                assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_faults_of_a_busy_host(prime_platform: LocalPlatform, client: RawClient) -> None:
    prime_platform.add_faults(
        FaultRule("create_chat_completion", nth=1, status=429, headers={"Retry-After": "0.5"}),
        FaultRule(
            "create_chat_completion",
            nth=1,
            status=500,
            headers={"Content-Type": "text/plain"},
            body="upstream boom",
        ),
    )
    busy, broken = [await client.call("POST", CHAT, asking()) for _ in range(2)]
    assert (busy.status, busy.headers["Retry-After"]) == (429, "0.5")
    assert (broken.status, broken.body) == (500, b"upstream boom")
    assert broken.headers["Content-Type"] == "text/plain"
    assert prime_platform.inference_calls() == []
    assert await stream_text(client)


async def test_switches_that_there_are_not(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    for switches in ({"speed": 1}, {"token_time": -1}, {"token_time": "1"}, {"concurrency": 1.5}):
        with pytest.raises(ValueError, match=r"speed|token_time|concurrency"):
            prime_platform.set_inference(**switches)
        assert (await client.call("POST", "/_local/inference", switches)).status == 422
    with pytest.raises(ValueError, match="amount of USD"):
        prime_platform.set_balance("much")
    assert (await client.call("POST", "/_local/balance", {})).status == 422
    assert (await client.call("GET", "/_local/inference")).body == {
        "token_time": 0.0,
        "concurrency": None,
    }


def test_a_platform_process_has_the_same_knobs(prime_platform_server: PlatformProcess) -> None:
    prime_platform_server.set_inference(token_time=0.1)
    prime_platform_server.set_balance(-1, "team_1")
    assert prime_platform_server.inference_calls() == []
    with pytest.raises(OSError, match="422"):
        prime_platform_server.set_inference(speed=1)
    prime_platform_server.reset()


async def test_calls_stand_on_the_bill_of_their_wallet(
    prime_platform: LocalPlatform, client: RawClient, team_id: str
) -> None:
    for _ in range(2):
        await chat(client, max_tokens=5)
    await client.call("POST", CHAT, asking(), paid_by(client, team_id))
    accounts = prime_platform.ledger()["inference"]["accounts"]
    for account, query in (("personal", ""), (team_id, f"?teamId={team_id}")):
        wallet = (await client.call("GET", f"/api/v1/billing/wallet{query}")).body
        (row,) = wallet["recent_billings"]
        assert row["resource_type"] == "inference"
        assert row["amount_usd"] == pytest.approx(accounts[account]["cost_usd"])
        assert wallet["balance_usd"] == pytest.approx(1000 - row["amount_usd"])
