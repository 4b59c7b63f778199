"""`algo`: the training algorithm of a source. Follows the page "prime-rl/algorithms"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from prime_train.configs.sections.base import Known, OpenSection, Section

__all__ = [
    "Algorithm",
    "AlgorithmSampling",
    "EchoRole",
    "FrozenModel",
    "LengthPenalty",
    "Loss",
    "TokenFilter",
]


class FrozenModel(OpenSection):
    """A model served elsewhere.

    Attributes:
        name: its name there.
        base_url: an OpenAI-compatible endpoint.
    """

    name: str | None = None
    base_url: str | None = None


class AlgorithmSampling(OpenSection):
    """`algo.sampling`: who generates rollouts: the live ``policy``, or a frozen model."""

    source: Literal["policy"] | FrozenModel | None = None


class EchoRole(Section):
    """`algo.roles.<role>`: the weight of that role's tokens."""

    alpha: float | None = None


# The plugin of mypy gives __init__ a **kwargs of its own.
class TokenFilter(OpenSection):  # type: ignore[no-redef]
    """`algo.filter`: code that narrows which tokens echo trains on."""

    import_path: str | None = None
    kwargs: dict[str, object] | None = None


class LengthPenalty(Section):
    """`algo.length_penalty`: what long rollouts lose of their reward."""

    type: Annotated[str, Known("linear")] | None = None
    num_output_tokens_weight: float | None = None
    num_input_tokens_weight: float | None = 0.1
    num_turns_weight: float | None = 0.1


class Algorithm(Section):
    """`algo`: the algorithm by its `type`, and that algorithm's own settings.

    Attributes:
        teacher: the frozen model that ``opd`` scores against.
        sampling: ``sft`` takes its rollouts from a frozen model that stands here.
        episode_agents: roles that ``hierarchical_grpo`` compares within an episode.
        decay: how slowly the baseline of ``rae`` moves.
    """

    variants: ClassVar[Mapping[str, str]] = {
        "teacher": "opd",
        "episode_agents": "hierarchical_grpo",
        "decay": "rae",
        "demo_key": "opsd",
        "template": "opsd",
        "roles": "echo",
        "filter": "echo",
    }

    type: (
        Annotated[
            str,
            Known("grpo", "max_rl", "rae", "hierarchical_grpo", "opd", "opsd", "sft", "echo"),
        ]
        | None
    ) = "grpo"
    sampling: AlgorithmSampling | None = None
    teacher: Literal["policy"] | FrozenModel | None = None
    episode_agents: list[str] | None = None
    decay: float | None = None
    demo_key: str | None = None
    template: str | None = None
    renderer: OpenSection | None = None
    roles: dict[str, EchoRole] | None = None
    filter: TokenFilter | None = None
    length_penalty: LengthPenalty | None = None
    length_weighted_baseline: bool | None = None
    loss_aggregation: Annotated[str, Known("token", "prompt")] | None = None


# The plugin of mypy gives __init__ a **kwargs of its own.
class Loss(Section):  # type: ignore[no-redef]
    """`[trainer.loss]`: the loss of policy tokens."""

    variants: ClassVar[Mapping[str, str]] = {
        "eps": "ipo",
        "ratio_low": "icepop",
        "ratio_high": "icepop",
        "import_path": "custom",
        "kwargs": "custom",
    }

    type: Annotated[str, Known("ipo", "icepop", "custom")] | None = "ipo"
    eps: float | None = None
    adv_tau: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    import_path: str | None = None
    kwargs: dict[str, object] | None = None
