"""Checks of arguments that several methods take."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["check_ids", "check_labels"]


def check_ids(sandbox_ids: Sequence[str]) -> list[str]:
    """Ids without repeats; a lone string, whose letters would be taken for ids, is refused."""
    if isinstance(sandbox_ids, str):
        raise ValueError("sandbox_ids is a list of ids, not one string")
    return list(dict.fromkeys(sandbox_ids))


def check_labels(labels: Sequence[str] | None) -> list[str] | None:
    if isinstance(labels, str):
        raise ValueError("labels is a list of labels, not one string")
    return None if labels is None else list(labels)
