"""The figures of a run's steps: made up, of plausible shape, always the same for the same run."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from prime_local.training.runs.admission import table
from prime_local.training.runs.record import Run

_BATCH = 64
_MOST_ROLLOUTS = 1024
_GROUP = 8
_LEARNING_RATE = 1e-6
_STEPS = 100
_TOKENS = 900
_PROBLEMS = 1000
Groups: TypeAlias = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Rollout:
    """A rollout of a step."""

    problem: int
    env_name: str
    reward: float
    advantage: float
    turns: int


def chance(*about: object) -> float:
    """Return a number from 0 up to 1 that looks random, the same one for the same words."""
    digest = hashlib.blake2b("/".join(map(str, about)).encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


def env_names(run: Run) -> list[str]:
    """Return the environments of a run by their names, each once."""
    return list(dict.fromkeys(str(each["name"]) for each in run.environments))


def rollouts(run: Run, step: int) -> list[Rollout]:
    """Return what a step of an RL run trains on, group after group."""
    names = env_names(run) or ["simulated"]
    found = []
    for number, rewards in enumerate(_rewards(run, step)):
        problem = int(chance(run.id, step, number) * _PROBLEMS)
        name = names[number % len(names)]
        mean = sum(rewards) / len(rewards)
        found += [
            Rollout(problem, name, reward, round(reward - mean, 6), 1 + int(4 * reward))
            for reward in rewards
        ]
    return found


def mean_reward(run: Run, step: int, env_name: str | None = None) -> float:
    """Return what the rollouts of a step, or those of an environment, got on average."""
    groups, names = _rewards(run, step), env_names(run)
    if env_name is not None:
        groups = groups[names.index(env_name) :: len(names)]
    rewards = [reward for group in groups for reward in group]
    return round(sum(rewards) / len(rewards), 6) if rewards else 0.0


def loss(run: Run, step: int) -> float:
    """Return the loss of a step: that of RL stays near zero, that of SFT falls."""
    if run.mode == "rl":
        return round(0.02 * (chance(run.id, step, "loss") - 0.5), 6)
    return round(0.7 + 0.6 * _decay(run, step) + 0.1 * chance(run.id, step, "loss"), 6)


def entropy(run: Run, step: int) -> float:
    """Return the entropy of what the model writes: it falls as it learns."""
    return round(0.25 + 0.4 * _decay(run, step) + 0.02 * chance(run.id, step, "entropy"), 6)


def gradient(run: Run, step: int) -> float:
    """Return the norm of the gradient of a step."""
    return round(0.1 + 0.3 * chance(run.id, step, "gradient"), 6)


def learning_rate(run: Run) -> float:
    """Return the learning rate."""
    path = ("optim",) if run.mode == "sft" else ("trainer", "optim")
    found = (table(run.config, *path) or {}).get("lr")
    return float(found) if isinstance(found, (int, float)) else _LEARNING_RATE


def tokens(run: Run, step: int) -> int:
    """Return how many tokens a step trains on."""
    if run.mode == "sft":
        data = table(run.config, "data") or {}
        return _count(data.get("batch_size"), _BATCH) * _count(data.get("seq_len"), _TOKENS)
    share = 0.5 + 0.5 * chance(run.id, step, "tokens")
    batch = _count((table(run.config, "orchestrator") or {}).get("batch_size"), _BATCH)
    return int(batch * _TOKENS * share)


def throughput(run: Run, step: int) -> float:
    """Return the tokens a second of a step."""
    return round(tokens(run, step) / run.step_seconds, 3)


def _rewards(run: Run, step: int) -> Groups:
    """Return the rewards of a step, group after group."""
    train = table(run.config, "orchestrator", "train") or {}
    group = _count(train.get("group_size"), _GROUP)
    batch = _count((table(run.config, "orchestrator") or {}).get("batch_size"), _BATCH)
    right = round(0.1 + 0.8 * (1 - _decay(run, step)), 3)
    return _drawn(run.id, step, max(1, min(batch, _MOST_ROLLOUTS) // group), group, right)


@lru_cache(maxsize=1024)
def _drawn(run_id: str, step: int, groups: int, group: int, right: float) -> Groups:
    def reward(number: int, member: int) -> float:
        luck = chance(run_id, step, number, member)
        return 1.0 if luck < right else 0.5 if luck > 1 - 0.2 * (1 - right) else 0.0

    return tuple(
        tuple(reward(number, member) for member in range(group)) for number in range(groups)
    )


def _decay(run: Run, step: int) -> float:
    """Return what is left to learn: 1 at first, then ever less."""
    return math.exp(-3 * step / (run.max_steps or _STEPS))


def _count(value: object, otherwise: int) -> int:
    return value if type(value) is int and value > 0 else otherwise
