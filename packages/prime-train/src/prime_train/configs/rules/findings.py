"""What a rule says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from prime_train.configs.values import KeyPath

__all__ = ["Circumstances", "Finding", "Findings", "hint", "refusal"]


@dataclass(frozen=True)
class Circumstances:
    """What a dispatch depends on beside the config.

    Attributes:
        has_volume: whether the run mounts a volume.
        gpu_cap: GPUs that one run may hold.
        has_wandb_key: whether a key for Weights & Biases goes along.
    """

    has_volume: bool
    gpu_cap: int
    has_wandb_key: bool


@dataclass(frozen=True)
class Finding:
    """What a rule says of one key.

    Attributes:
        path: the key; need not exist in the config.
        message: what is wrong and what to do.
        refused: whether a dispatch is refused for it.
        near: a key to point at when that one's tables do not exist.
    """

    path: KeyPath
    message: str
    refused: bool
    near: KeyPath = ()


Findings: TypeAlias = Iterator[Finding]


def refusal(path: KeyPath, message: str, *, near: KeyPath = ()) -> Finding:
    """Something that a dispatch is refused for."""
    return Finding(path, message, True, near)


def hint(path: KeyPath, message: str) -> Finding:
    """Something that a dispatch goes through with."""
    return Finding(path, message, False)
