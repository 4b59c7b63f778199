"""The models there are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from prime_local.contract.document import JsonObject

_PER_TOKEN = Decimal(1_000_000)
DECISIONS = "decisions"
ECHO = "local/echo"


@dataclass(frozen=True)
class Model:
    """An entry of the catalogue.

    Args:
        id: what a request names it by.
        created: seconds since 1970.
        serving: `hosted` or `gateway`.
        prices: USD per million tokens of input, output, cache reads and cache writes; a text is
            listed as a text, None is unknown.
        context: tokens of prompt and answer together; None for an entry without specs.
        max_output: tokens of an answer.
        reasoning: whether it can think aloud.
        inputs: what it reads.
        outputs: what it makes; `decisions` for evaluation models.
        team_only: listed for requests of a team alone.
        withdrawn: listed, but served no more.
    """

    id: str
    created: int
    serving: str = "hosted"
    name: str | None = None
    prices: tuple[float | str | None, ...] | None = None
    context: int | None = None
    max_output: int | None = None
    reasoning: bool = False
    inputs: tuple[str, ...] = ("text",)
    outputs: tuple[str, ...] = ("text",)
    team_only: bool = False
    withdrawn: bool = False

    @property
    def evaluates(self) -> bool:
        return DECISIONS in self.outputs

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """Return the price of a call in USD; what has no known price costs nothing."""
        rates = [Decimal(str(price or 0)) for price in (self.prices or (0, 0))[:2]]
        return (rates[0] * prompt_tokens + rates[1] * completion_tokens) / _PER_TOKEN

    def to_wire(self) -> JsonObject:
        """Return the `Model` object of the contract."""
        entry: JsonObject = {
            "id": self.id,
            "object": "model",
            "created": self.created,
            "owned_by": self.id.partition("/")[0],
            "display_name": self.name,
            "serving": self.serving,
            "pricing": None,
        }
        if self.prices is not None:
            names = ("input", "output", "cache_read", "cache_write")
            entry["pricing"] = {
                f"{name}_usd_per_mtok": price
                for name, price in zip(names, self.prices, strict=False)
            }
        if self.context is not None:
            entry["specs"] = {
                "context_window": self.context,
                "max_output_tokens": self.max_output,
                "supports_reasoning": self.reasoning,
                "input_modalities": list(self.inputs),
                "output_modalities": list(self.outputs),
            }
        return entry


MODELS = (
    Model(
        "z-ai/glm-5.3",
        1_789_430_400,
        name="GLM-5.3",
        prices=(0.6, 2.2, 0.11, None),
        context=200_000,
        max_output=131_072,
        reasoning=True,
    ),
    Model(
        "qwen/qwen3-32b",
        1_745_798_400,
        name="Qwen3 32B",
        prices=("0.10", "0.30"),
        context=40_960,
        max_output=16_384,
        reasoning=True,
    ),
    Model("openai/gpt-4.1-mini", 1_744_675_200, "gateway", prices=(0.4, 1.6)),
    Model(
        "anthropic/claude-sonnet-4.5",
        1_759_104_000,
        "gateway",
        name="Claude Sonnet 4.5",
        prices=(3.0, 15.0, 0.3, 3.75),
        context=200_000,
        max_output=64_000,
        reasoning=True,
        inputs=("text", "image"),
    ),
    Model("deepseek/deepseek-v3.1", 1_755_734_400, "gateway", context=131_072, max_output=8_192),
    Model(
        "meta-llama/llama-3.1-8b-instruct",
        1_721_692_800,
        prices=(0.02, 0.03),
        context=131_072,
        max_output=8_192,
        withdrawn=True,
    ),
    Model(
        ECHO,
        1_790_000_000,
        name="Says what it was told",
        prices=(0, 0, 0, 0),
        context=2_000_000,
        max_output=2_000_000,
    ),
    Model(
        "internal/preview-1",
        1_791_000_000,
        prices=(1.0, 4.0),
        context=65_536,
        max_output=8_192,
        team_only=True,
    ),
    Model(
        "cloudflare/clef",
        1_792_800_000,
        name="Clef",
        prices=(0.25, 0),
        context=65_536,
        inputs=("text", "image"),
        outputs=(DECISIONS,),
    ),
    Model(
        "cloudflare/clef-flash",
        1_792_800_000,
        name="Clef Flash",
        prices=(0.05, 0),
        context=24_576,
        inputs=("text", "image"),
        outputs=(DECISIONS,),
    ),
    Model(
        "typesafe-ai/jev",
        1_788_000_000,
        "gateway",
        prices=(0.08, 0),
        context=32_768,
        outputs=(DECISIONS,),
    ),
)


def listed(team_id: str | None, *, authorized: bool) -> Iterable[Model]:
    """Yield the models that a caller sees."""
    with_team = authorized and team_id is not None
    return (model for model in MODELS if with_team or not model.team_only)


def is_evaluation_model(model_id: str) -> bool:
    return any(model.id == model_id and model.evaluates for model in MODELS)


def find(model_id: str, team_id: str | None) -> Model | None:
    """Return a model that a caller with a key sees, by its exact id."""
    seen = listed(team_id, authorized=True)
    return next((model for model in seen if model.id == model_id), None)
