"""Rules of how training samples.

Follow the pages "prime-rl/configuration", "Environments", and "prime-rl/inference".
"""

from __future__ import annotations

from collections.abc import Iterator

from prime_train.configs.rules.findings import Findings, refusal
from prime_train.configs.sections.sources import Environment, Sampling
from prime_train.configs.values import KeyPath

__all__ = ["agent_findings", "is_truncated", "top_k_findings"]

MAX_TOP_K = 512
"""Training pads each batch to its largest sampling mask."""

AGENTS_OWN = frozenset(
    {"max_tokens", "max_completion_tokens", "reasoning_effort", "chat_template_kwargs"}
)
"""What an agent may set for itself while the policy that it samples from is trained."""


def top_k_findings(sampling: Sampling, path: KeyPath) -> Findings:
    """Yield a `top_k` that is too large to train on."""
    top_k = _number(sampling, "top_k")
    if top_k is not None and top_k > MAX_TOP_K:
        yield refusal((*path, "top_k"), f"training takes at most {MAX_TOP_K}")


def is_truncated(sampling: Sampling) -> bool:
    """Whether only a part of the distribution is sampled from."""
    top_p, top_k = _number(sampling, "top_p"), _number(sampling, "top_k")
    return (top_p is not None and top_p < 1) or (top_k is not None and top_k > 0)


def agent_findings(environment: Environment | None, path: KeyPath) -> Findings:
    """Yield what an agent of a training source sets, though only the source may."""
    for role, sampling in _agents(environment):
        for key in sorted(sampling.keys() - AGENTS_OWN):
            message = "agents of a training source can't set it; set it in the source's sampling"
            yield refusal((*path, "env", role, "sampling", key), message)


def _agents(environment: Environment | None) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each agent's name and what it sets of its sampling."""
    if environment is None:
        return
    for role, agent in environment.model_dump(exclude_unset=True).items():
        sampling = agent.get("sampling") if isinstance(agent, dict) else None
        if isinstance(sampling, dict):
            yield role, sampling


def _number(sampling: Sampling, name: str) -> float | None:
    """A parameter's value, wherever it stands."""
    value: object = getattr(sampling, name)
    if value is None:
        value = (sampling.extra_body or {}).get(name)
    return value if isinstance(value, (int, float)) else None
