"""Typed questions to evaluation models, and their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from prime_core.models import RequestModel, ResponseModel

JSONText: TypeAlias = str | Mapping[str, Any] | Sequence[Any]
"""Text, or JSON that says the same in a structure."""


class BooleanQuestion(RequestModel):
    """Asks whether something holds. Follows the page "api-reference/inference-evaluations".

    Attributes:
        type: ``boolean``.
        instructions: what to judge: text, an object or a list.
        criteria: what the outcomes mean, under ``true``, ``false`` or both.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["boolean"] = "boolean"
    instructions: JSONText | None = None
    criteria: dict[str, Any] | None = None


class ChoiceQuestion(RequestModel):
    """Asks for one of several options. Follows the page "api-reference/inference-evaluations".

    Attributes:
        type: ``choice``.
        instructions: what to judge: text, an object or a list.
        criteria: 1 to 255 options in order: by name, what each means, or `None`.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["choice"] = "choice"
    instructions: JSONText | None = None
    criteria: dict[str, Any]


class ScoreQuestion(RequestModel):
    """Asks for a place on a scale. Follows the page "api-reference/inference-evaluations".

    Attributes:
        type: ``score``.
        instructions: what to judge: text, an object or a list.
        criteria: 2 to 10 levels: what each means, from the lowest to the highest.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"type"})

    type: Literal["score"] = "score"
    instructions: JSONText | None = None
    criteria: list[Any]


Question: TypeAlias = BooleanQuestion | ChoiceQuestion | ScoreQuestion | Mapping[str, Any]
"""A question, or a mapping that says the same."""


class BooleanAnswer(ResponseModel):
    """Whether it holds.

    Attributes:
        type: ``boolean``.
        probability: the probability of *true*, from 0 to 1.
        confidence: some models' own.
    """

    type: Literal["boolean"]
    probability: float
    confidence: float | None = None


class ChoiceAnswer(ResponseModel):
    """The option that fits best.

    Attributes:
        type: ``choice``.
        choice: the option's name.
        probabilities: by name of the option, if the model tells.
        confidence: some models' own.
    """

    type: Literal["choice"]
    choice: str
    probabilities: dict[str, float] | None = None
    confidence: float | None = None


class ScoreAnswer(ResponseModel):
    """A place on the scale.

    Attributes:
        type: ``score``.
        score: from 0, the first level, to the last level's number; often between two levels.
        probabilities: by number of the level as text, if the model tells; the score is their
            mean.
        confidence: some models' own.
    """

    type: Literal["score"]
    score: float
    probabilities: dict[str, float] | None = None
    confidence: float | None = None


class UnknownAnswer(ResponseModel):
    """An answer of a type that is newer than this package; its fields are attributes.

    Attributes:
        type: its type.
    """

    type: str = ""


def _type_of(answer: Any) -> str:
    kind = answer.get("type") if isinstance(answer, dict) else getattr(answer, "type", "")
    return kind if kind in ("boolean", "choice", "score") else "unknown"


Answer: TypeAlias = Annotated[
    Annotated[BooleanAnswer, Tag("boolean")]
    | Annotated[ChoiceAnswer, Tag("choice")]
    | Annotated[ScoreAnswer, Tag("score")]
    | Annotated[UnknownAnswer, Tag("unknown")],
    Discriminator(_type_of),
]


class EvaluationUsage(ResponseModel):
    """What an evaluation used; it is billed by its input.

    Attributes:
        input_tokens: tokens that the model read.
        output_tokens: tokens that it wrote.
    """

    input_tokens: int | None = Field(default=None, alias="inputTokens")
    output_tokens: int | None = Field(default=None, alias="outputTokens")


class Rounding(ResponseModel):
    """To how many decimal places numbers were rounded; sums are exact to no more than that.

    Attributes:
        probability_decimals: of probabilities.
        score_decimals: of scores.
    """

    probability_decimals: int | None = Field(default=None, alias="probabilityDecimals")
    score_decimals: int | None = Field(default=None, alias="scoreDecimals")


class EvaluationResponse(ResponseModel):
    """The answers. Follows the page "api-reference/inference-evaluations".

    Attributes:
        answers: by the ids of the questions.
        usage: what it used, if that is told.
        warnings: what the platform has to say of the request; their form is not published.
        rounding: how numbers were rounded; without it they are not.
        provider_metadata: what the provider adds.
        inference_id: id of the call, to quote to the platform's support; ours.
    """

    essential = frozenset({"answers", "type", "probability", "choice", "score"})

    answers: dict[str, Answer]
    usage: EvaluationUsage | None = None
    warnings: list[Any] = Field(default_factory=list)
    rounding: Rounding | None = None
    provider_metadata: dict[str, Any] | None = Field(default=None, alias="providerMetadata")
    inference_id: str | None = None
