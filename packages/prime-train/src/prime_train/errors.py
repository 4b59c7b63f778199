"""Errors that only training raises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from prime_core.errors import PrimeError

__all__ = ["ConfigIssue", "InvalidConfigError"]


@dataclass(frozen=True)
class ConfigIssue:
    """Something to say about a config. It never quotes a value, which may be a secret.

    Attributes:
        message: what is wrong, and what to do instead.
        key: dotted key that it concerns; empty for the config as a whole.
        file: file that sets the key, or ``override``; `None` when no file does.
        line: line in that file, from 1; `None` when there is none to point at.
        severity: an ``error`` stops a dispatch, a ``warning`` does not.
    """

    message: str
    key: str = ""
    file: str | None = None
    line: int | None = None
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class InvalidConfigError(PrimeError, ValueError):
    """A config, its secrets or what goes with it can't be dispatched; nothing was sent.

    Attributes:
        issues: all that is wrong, each with file, line and key where they are known.
    """

    issues: tuple[ConfigIssue, ...]

    def __init__(self, issues: Iterable[ConfigIssue]) -> None:
        self.issues = tuple(issues)
        super().__init__("\n".join(map(str, self.issues)))
