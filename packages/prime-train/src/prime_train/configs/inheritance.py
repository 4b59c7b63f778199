"""What sources of training and evaluation take from their group.

Follows the page "prime-rl/configuration", "Environments".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

from prime_train.configs.sections.sources import (
    EvalGroup,
    EvalSource,
    Source,
    SourceGroup,
    TrainGroup,
    TrainSource,
)
from prime_train.configs.values import Table, Value

__all__ = ["eval_sources", "train_sources"]

_SHARED = ("env", "sampling", "select", "group_size")

_S = TypeVar("_S", bound=Source)


def train_sources(group: TrainGroup) -> list[TrainSource]:
    """Give the sources of training with what they inherit."""
    return _inherited(TrainSource, group, group.source, (*_SHARED, "algo"))


def eval_sources(group: EvalGroup) -> list[EvalSource]:
    """Give the sources of evaluation with what they inherit."""
    return _inherited(EvalSource, group, group.source, (*_SHARED, "interval"))


def _inherited(
    model: type[_S], group: SourceGroup, sources: list[_S] | None, names: tuple[str, ...]
) -> list[_S]:
    defaults = cast(Table, group.model_dump(exclude_unset=True, include=set(names)))
    return [
        model.model_validate(_over(defaults, cast(Table, source.model_dump(exclude_unset=True))))
        for source in sources or []
    ]


def _over(defaults: Mapping[str, Value], own: Mapping[str, Value]) -> Table:
    """Own values win key by key; a table of another `type` owes nothing to the group's."""
    result = dict(defaults)
    for key, value in own.items():
        base = result.get(key)
        if isinstance(base, dict) and isinstance(value, dict) and _same_kind(base, value):
            value = _over(base, value)
        result[key] = value
    return result


def _same_kind(base: Table, own: Table) -> bool:
    return "type" not in own or own["type"] == base.get("type")
