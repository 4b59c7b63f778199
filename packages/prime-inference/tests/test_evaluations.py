"""Typed questions to evaluation models: every documented limit, on both sides of its border."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any

import pytest
from raw_server import RawServer, answer, reset

from prime_inference import (
    AsyncInferenceClient,
    BooleanAnswer,
    BooleanQuestion,
    ChoiceAnswer,
    ChoiceQuestion,
    InferenceClient,
    ModelNotFoundError,
    ScoreAnswer,
    ScoreQuestion,
    ServerError,
    UnknownAnswer,
)
from prime_inference.evaluation_requests import MAX_BODY

pytestmark = pytest.mark.usefixtures("quick_retries")

ANSWER: dict[str, Any] = {
    "answers": {
        "incident": {"type": "boolean", "probability": 0.95, "confidence": 0.5},
        "team": {"type": "choice", "choice": "a", "probabilities": {"a": 0.97, "b": 0.03}},
        "severity": {"type": "score", "score": 1.5},
        "colour": {"type": "palette", "colours": ["red"]},
    },
    "usage": {"inputTokens": 123, "outputTokens": 0},
    "warnings": ["odd"],
    "rounding": {"probabilityDecimals": 2},
    "providerMetadata": {"x": 1},
}
ASKED: dict[str, Any] = {"incident": {"type": "boolean"}}
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff\xe0" + b"pixels"
WEBP = b"RIFF\x00\x00\x00\x00WEBP" + b"pixels"
MIB = 1024 * 1024


def url(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def sized(size: int) -> bytes:
    return PNG + b"x" * (size - len(PNG))


async def test_questions_and_answers_of_every_type(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, ANSWER, X_Inference_Id="inf-1")]
    response = await client.evaluations.create(
        model="cloudflare/clef-flash",
        state={"user": "é"},
        questions={
            "incident": BooleanQuestion(instructions="An outage?", criteria={"true": "yes"}),
            "team": ChoiceQuestion(criteria={"b": None, "a": "Bugs"}),
            "severity": ScoreQuestion(criteria=["minor", {"k": 1}]),
            "colour": {"type": "boolean", "instructions": ["?"], "newer": 1},
        },
    )
    incident, team, severity, colour = response.answers.values()
    assert isinstance(incident, BooleanAnswer)
    assert (incident.probability, incident.confidence) == (0.95, 0.5)
    assert isinstance(team, ChoiceAnswer)
    assert (team.choice, team.probabilities) == ("a", {"a": 0.97, "b": 0.03})
    assert isinstance(severity, ScoreAnswer)
    assert severity.score == 1.5
    assert isinstance(colour, UnknownAnswer)
    assert (colour.type, colour.model_extra) == ("palette", {"colours": ["red"]})
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (123, 0)
    assert response.rounding is not None
    assert (response.rounding.probability_decimals, response.rounding.score_decimals) == (2, None)
    assert (response.warnings, response.inference_id) == (["odd"], "inf-1")
    (request,) = server.requests
    assert request.target == "/api/v1/evaluations"
    assert request.json == {
        "model": "cloudflare/clef-flash",
        "state": {"user": "é"},
        "questions": {
            "incident": {
                "type": "boolean",
                "instructions": "An outage?",
                "criteria": {"true": "yes"},
            },
            "team": {"type": "choice", "criteria": {"b": None, "a": "Bugs"}},
            "severity": {"type": "score", "criteria": ["minor", {"k": 1}]},
            "colour": {"type": "boolean", "instructions": ["?"], "newer": 1},
        },
    }
    # The order of options is their order.
    assert list(request.json["questions"]["team"]["criteria"]) == ["b", "a"]
    assert "é".encode() in request.body


async def test_the_path_of_the_gateway_protocol(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, ANSWER)]
    await client.evaluations.create(
        model="m", state="x", questions=ASKED, gateway_protocol=True, provider_options={"p": {}}
    )
    (request,) = server.requests
    assert request.target == "/v4/ai/evaluation-model"
    assert request.headers["ai-evaluation-model-specification-version"] == "4"
    assert (request.json["model"], request.json["providerOptions"]) == ("m", {"p": {}})


def questions(count: int) -> dict[str, Any]:
    return {f"q{number}": {"type": "boolean"} for number in range(count)}


def options(count: int) -> dict[str, Any]:
    return {"tone": {"type": "choice", "criteria": {f"o{n}": None for n in range(count)}}}


def levels(count: int) -> dict[str, Any]:
    return {"tone": {"type": "score", "criteria": ["level"] * count}}


def boolean(criteria: object) -> dict[str, Any]:
    return {"tone": {"type": "boolean", "criteria": criteria}}


STATES: list[object] = ["x", "", {}, [], [1], ({"a": 1},)]
NO_TYPES: list[object] = ["Score", "noul", None, 1, []]
ACCEPTED: list[dict[str, Any]] = [
    *[{"state": state} for state in STATES],
    {"questions": questions(1)},
    {"questions": questions(64)},
    *[{"questions": {id: {"type": "boolean"}}} for id in ("a", "A.b-c_9", ".", "-", "a" * 100)],
    {"questions": {"a": {"type": "boolean", "instructions": 3}}},  # the server's to judge
    {"questions": boolean({"true": "x", "false": ["y"]})},
    {"questions": boolean({})},
    {"questions": options(1)},
    {"questions": options(255)},
    {"questions": {"tone": {"type": "choice", "criteria": {"": "x"}}}},
    {"questions": levels(2)},
    {"questions": levels(10)},
    {"images": [PNG, JPEG, WEBP, url("png", b"x")]},
    {"images": [url(kind, b"x") for kind in ("png", "jpeg", "webp")]},
    {"images": [sized(4 * MIB), url("jpeg", b"x" * 4 * MIB)]},
]


@pytest.mark.parametrize("given", ACCEPTED, ids=range(len(ACCEPTED)))
async def test_what_is_within_the_limits_is_sent(
    server: RawServer, client: AsyncInferenceClient, given: dict[str, Any]
) -> None:
    server.steps = [answer(200, ANSWER)]
    request: Any = {"model": "m", "state": "x", "questions": ASKED, **given}
    await client.evaluations.create(**request)
    assert len(server.requests) == 1


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": ""}, r"^model is"),
    *[({"state": state}, r"^state") for state in (None, 1, True, b"x", {"x": math.nan})],
    ({"questions": {}}, r"^questions holds 1 to 64"),
    ({"questions": questions(65)}, r"^questions holds 1 to 64"),
    ({"questions": [{"type": "boolean"}]}, r"^questions is an object"),
    *[
        ({"questions": {id: {"type": "boolean"}}}, r"^questions: an id")
        for id in ("", "a" * 101, "a b", "a:b", "a/b", "é", "a\n", 1)
    ],
    *[({"questions": {"tone": {"type": kind}}}, r"^questions\.tone\.type is") for kind in NO_TYPES],
    ({"questions": {"tone": "boolean"}}, r"^questions\.tone is a question"),
    ({"questions": boolean({"yes": "x"})}, r"^questions\.tone\.criteria holds 'true'"),
    ({"questions": boolean([])}, r"^questions\.tone\.criteria is an object"),
    ({"questions": boolean({"true": math.inf})}, r"^questions can't be sent"),
    ({"questions": options(0)}, r"^questions\.tone\.criteria holds 1 to 255"),
    ({"questions": options(256)}, r"^questions\.tone\.criteria holds 1 to 255"),
    *[
        ({"questions": {"tone": {"type": "choice", **rest}}}, r"^questions\.tone\.criteria is an")
        for rest in ({}, {"criteria": ["a"]})
    ],
    ({"questions": {"a": {"type": "choice", "criteria": {1: "x"}}}}, r"^questions\.a\.criteria"),
    ({"questions": levels(1)}, r"^questions\.tone\.criteria holds 2 to 10"),
    ({"questions": levels(11)}, r"^questions\.tone\.criteria holds 2 to 10"),
    *[
        ({"questions": {"tone": {"type": "score", **rest}}}, r"^questions\.tone\.criteria is a l")
        for rest in ({}, {"criteria": {"a": 1}}, {"criteria": "ab"})
    ],
    ({"images": [PNG] * 5}, r"^images holds at most 4"),
    ({"images": PNG}, r"^images is a list"),
    *[
        ({"images": [PNG, image]}, r"^images\.1 is")
        for image in (
            "https://example.com/a.png",
            url("gif", b"x"),
            url("jpg", b"x"),
            "data:image/png,x",
            "data:image/png;base64,",
            "data:image/png;base64,QQ",
            "data:image/png;base64,QQ==\n",
            b"GIF89a",
            1,
        )
    ],
    ({"images": [sized(4 * MIB + 1)]}, r"^images\.0 is larger"),
    ({"images": [url("png", b"x" * (4 * MIB + 1))]}, r"^images\.0 is larger"),
    ({"images": [sized(4 * MIB)] * 2 + [PNG]}, r"^images holds at most 8388608 bytes"),
    ({"provider_options": {"x": object()}}, r"^providerOptions can't"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=range(len(REFUSED)))
async def test_what_passes_a_limit_is_named_before_anything_is_sent(
    server: RawServer, client: AsyncInferenceClient, given: dict[str, Any], message: str
) -> None:
    request: Any = {"model": "m", "state": "x", "questions": ASKED, **given}
    with pytest.raises(ValueError, match=message):
        await client.evaluations.create(**request)
    assert server.requests == []


async def test_the_whole_body_is_counted_in_the_bytes_that_are_sent(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, ANSWER)]
    await client.evaluations.create(model="m", state="", questions=ASKED)
    room = MAX_BODY - len(server.requests[0].body)
    state = "é" * (room // 2) + "x" * (room % 2)
    await client.evaluations.create(model="m", state=state, questions=ASKED)
    assert len(server.requests[1].body) == MAX_BODY
    with pytest.raises(ValueError, match="16777217 bytes long"):
        await client.evaluations.create(model="m", state=f"{state}x", questions=ASKED)
    assert len(server.requests) == 2


async def test_an_image_may_be_a_file(
    server: RawServer, client: AsyncInferenceClient, tmp_path: Path
) -> None:
    server.steps = [answer(200, ANSWER)]
    file = tmp_path / "a.jpeg"
    file.write_bytes(JPEG)
    await client.evaluations.create(
        model="m", state="x", questions=ASKED, images=[file, str(file), PNG]
    )
    assert server.requests[0].json["images"] == [url("jpeg", JPEG)] * 2 + [url("png", PNG)]
    with file.open("wb") as large:
        large.truncate(100 * MIB)
    with pytest.raises(ValueError, match=r"images\.0 is larger"):
        await client.evaluations.create(model="m", state="x", questions=ASKED, images=[file])
    with pytest.raises(FileNotFoundError):
        await client.evaluations.create(model="m", state="x", questions=ASKED, images=["/no/file"])


async def test_errors_are_those_of_chats(server: RawServer, client: AsyncInferenceClient) -> None:
    server.steps = [answer(404, {"error": {"message": "Model not found"}})]
    with pytest.raises(ModelNotFoundError):
        await client.evaluations.create(model="m", state="x", questions=ASKED)
    server.steps = [answer(502), answer(200, ANSWER)]
    with pytest.raises(ServerError):
        await client.evaluations.create(model="m", state="x", questions=ASKED)
    server.steps = [reset(), answer(502), answer(200, ANSWER)]
    request: Any = {"model": "m", "state": "x", "questions": ASKED, "retry_ambiguous": True}
    assert (await client.evaluations.create(**request)).warnings == ["odd"]


def test_the_sync_client_asks_too(server: RawServer, sync_client: InferenceClient) -> None:
    server.steps = [answer(200, ANSWER)]
    response = sync_client.evaluations.create(model="m", state="x", questions=ASKED, images=[PNG])
    assert set(response.answers) == set(ANSWER["answers"])


async def test_the_scheme_of_a_data_url_has_no_case(
    server: RawServer, client: AsyncInferenceClient
) -> None:
    server.steps = [answer(200, {"answers": {}})]
    image = url("png", PNG)
    await client.evaluations.create(
        model="m", state="x", questions=ASKED, images=[image.replace("data:", "DATA:")]
    )
    assert server.requests[0].json["images"] == [image]
