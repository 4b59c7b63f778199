"""Evaluation models of the local platform: answers, and every limit of a request."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_calls import CHAT, CLEF, EVALUATIONS, MODEL, asking, error_of

from prime_local.inference.errors import InferenceError
from prime_local.inference.evaluations import _chances
from prime_local.inference.questions import check_evaluation

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

V4 = "/inference/v4/ai/evaluation-model"
QUESTIONS = {
    "incident": {"type": "boolean", "instructions": "Is it an outage?"},
    "team": {"type": "choice", "criteria": {"engineering": "Bugs", "billing": None, "b": 1}},
    "severity": {"type": "score", "criteria": ["minor", "major", "critical"]},
}
BODY = {"model": CLEF, "state": "User: the page returns a 500.", "questions": QUESTIONS}
MIB = 1024 * 1024


def image(size: int, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(bytes(size)).decode()}"


async def test_each_question_has_its_answer(client: RawClient) -> None:
    body = (await client.call("POST", EVALUATIONS, BODY)).body
    answers = body["answers"]
    assert [(name, each["type"]) for name, each in answers.items()] == [
        ("incident", "boolean"),
        ("team", "choice"),
        ("severity", "score"),
    ]
    assert 0 <= answers["incident"]["probability"] <= 1
    chances = answers["team"]["probabilities"]
    assert list(chances) == ["engineering", "billing", "b"]
    assert sum(chances.values()) == pytest.approx(1)
    assert chances[answers["team"]["choice"]] == max(chances.values())
    levels = answers["severity"]["probabilities"]
    mean = sum(int(level) * chance for level, chance in levels.items())
    assert answers["severity"]["score"] == pytest.approx(mean, abs=1e-4)
    assert body["usage"]["inputTokens"] > 0
    assert body["usage"]["outputTokens"] == 0


async def test_answers_are_stable_and_stand_alone(client: RawClient) -> None:
    async def ask(**changes: object) -> Any:
        return (await client.call("POST", EVALUATIONS, {**BODY, **changes})).body["answers"]

    first = await ask()
    assert await ask() == first
    alone = await ask(questions={"team": QUESTIONS["team"]})
    assert alone["team"] == first["team"]
    for changes in ({"state": "other"}, {"model": "cloudflare/clef-flash"}, {"images": [image(9)]}):
        assert await ask(**changes) != first


async def test_the_protocols_path_takes_the_model_from_a_header(client: RawClient) -> None:
    rest = {name: value for name, value in BODY.items() if name != "model"}
    headers = {**client.key, "ai-model-id": CLEF, "ai-gateway-protocol-version": "0.0.1"}
    wanted = (await client.call("POST", EVALUATIONS, BODY)).body["answers"]
    assert (await client.call("POST", V4, rest, headers)).body["answers"] == wanted
    wins = {**headers, "ai-model-id": "no/such"}
    assert (await client.call("POST", V4, BODY, wins)).body["answers"] == wanted
    assert error_of(await client.call("POST", V4, rest)) == (400, "invalid_request", "model")
    answer = await client.call("POST", EVALUATIONS, rest, headers)
    assert error_of(answer) == (400, "invalid_request", "model")


async def test_models_have_their_routes(client: RawClient) -> None:
    chat = await client.call("POST", CHAT, asking(model=CLEF))
    evaluation = await client.call("POST", EVALUATIONS, {**BODY, "model": MODEL})
    assert error_of(chat) == error_of(evaluation) == (400, "unsupported_model", "model")


async def test_a_long_state_is_cut_silently(client: RawClient) -> None:
    body = {**BODY, "state": "x" * 400_000}
    tokens = [
        (await client.call("POST", EVALUATIONS, {**body, "model": model})).body["usage"]
        for model in (CLEF, "cloudflare/clef-flash")
    ]
    assert tokens[0]["inputTokens"] - tokens[1]["inputTokens"] == 65_536 - 24_576


async def test_newer_servers_answer_no_more_questions(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(noise=True)
    body = (await client.call("POST", EVALUATIONS, BODY)).body
    assert body["answers"].keys() == QUESTIONS.keys()
    assert body["answers"]["team"]["probabilities"].keys() == {"engineering", "billing", "b"}
    assert "noiseAdded" in body["answers"]["team"]


def with_question(name: str = "q", **question: object) -> dict[str, Any]:
    return {"state": "s", "questions": {name: question}}


def with_images(*images: object) -> dict[str, Any]:
    return {**with_question(type="boolean"), "images": list(images)}


STATES: list[Any] = ["x", {}, [], [1], ""]
MANY = {f"q{number}": {"type": "boolean"} for number in range(64)}
ACCEPTED: list[dict[str, Any]] = [
    *(with_question(type="boolean") | {"state": state} for state in STATES),
    *(with_question(name, type="boolean") for name in ("a", "A.b-c_9", ".", "-", "a" * 100)),
    with_question(type="boolean")
    | {"questions": {f"q{n}": {"type": "boolean"} for n in range(64)}},
    with_question(type="boolean", criteria={}),
    with_question(type="boolean", criteria={"true": "x"}),
    with_question(type="boolean", criteria={"true": 1, "false": None}),
    with_question(type="choice", criteria={"a": None}),
    with_question(type="choice", criteria={str(n): None for n in range(255)}),
    with_question(type="choice", criteria={"": None}),
    with_question(type="score", criteria=["a", "b"]),
    with_question(type="score", criteria=list(range(10))),
    with_question(type="boolean", instructions={"k": 1}),
    with_images(),
    with_images(image(1), image(1, "jpeg"), image(1, "webp"), image(1)),
    with_images(image(4 * MIB), image(4 * MIB)),
]


@pytest.mark.parametrize("body", ACCEPTED, ids=range(len(ACCEPTED)))
def test_what_is_just_within_the_limits(body: dict[str, Any]) -> None:
    check_evaluation(body)


NO_OPTIONS: list[Any] = [None, {}, ["a"], {str(number): None for number in range(256)}]
NO_LEVELS: list[Any] = [None, ["a"], list(range(11)), {"a": 1, "b": 2}]
NO_OUTCOMES: list[Any] = [{"yes": "x"}, [], None]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ([], None),
        ({"questions": {}}, "state"),
        *(
            (with_question(type="boolean") | {"state": state}, "state")
            for state in (None, 1, 1.5, True)
        ),
        ({"state": "s"}, "questions"),
        ({"state": "s", "questions": {}}, "questions"),
        ({"state": "s", "questions": []}, "questions"),
        ({"state": "s", "questions": {**MANY, "more": {"type": "boolean"}}}, "questions"),
        *(
            (with_question(name, type="boolean"), f"questions.{name}")
            for name in ("", "a" * 101, "a b", "a:b", "a/b", "é", "a\n")
        ),
        ({"state": "s", "questions": {"q": []}}, "questions.q"),
        *(
            (with_question(type=kind, criteria=["a", "b"]), "questions.q.type")
            for kind in ("Score", "noul", None, ["score"])
        ),
        (with_question(), "questions.q.type"),
        (with_question(type="boolean", instructions=1), "questions.q.instructions"),
        *(
            (with_question(type="boolean", criteria=criteria), "questions.q.criteria")
            for criteria in NO_OUTCOMES
        ),
        *(
            (with_question(type="choice", criteria=criteria), "questions.q.criteria")
            for criteria in NO_OPTIONS
        ),
        *(
            (with_question(type="score", criteria=criteria), "questions.q.criteria")
            for criteria in NO_LEVELS
        ),
        (with_question(type="choice"), "questions.q.criteria"),
        (with_images(*[image(1)] * 5), "images"),
        (with_question(type="boolean") | {"images": "x"}, "images"),
        *(
            (with_images(image(1), wrong), "images.1")
            for wrong in (
                "https://example.org/a.png",
                image(1, "gif"),
                image(1, "jpg"),
                "data:image/png,AAAA",
                "data:image/png;base64,AAA",
                "data:image/png;base64,",
                "data:image/png;base64,A A=",
                5,
            )
        ),
        (with_images(image(4 * MIB + 1)), "images.0"),
        (with_images(image(4 * MIB), image(4 * MIB), image(1)), "images"),
    ],
)
def test_what_is_refused(body: Any, param: str | None) -> None:
    with pytest.raises(InferenceError) as refusal:
        check_evaluation(body)
    assert (refusal.value.status, refusal.value.param) == (400, param)


async def test_a_refusal_names_the_field(client: RawClient) -> None:
    body = {**BODY, "questions": {**QUESTIONS, "tone": {"type": "score", "criteria": ["x"]}}}
    answer = await client.call("POST", EVALUATIONS, body)
    assert error_of(answer) == (400, "invalid_request", "questions.tone.criteria")
    assert answer.body["error"]["type"] == "invalid_request_error"


@given(st.binary(min_size=32, max_size=32), st.lists(st.text(), min_size=1, unique=True))
def test_chances_add_up(digest: bytes, options: list[str]) -> None:
    encodable = [option.encode(errors="replace").decode() for option in options]
    chances = _chances(digest, "q", dict.fromkeys(encodable))
    assert sum(round(chance * 10_000) for chance in chances.values()) == 10_000
    assert all(0 <= chance <= 1 for chance in chances.values())
