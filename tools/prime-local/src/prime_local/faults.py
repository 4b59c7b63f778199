"""Faults: rules that spoil chosen requests."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from prime_local.errors import PlatformError

Reset = Literal["before_commit", "after_commit"]


@dataclass(frozen=True)
class FaultRule:
    """Which requests to spoil, and how.

    A request is matched when `operation` and `path_prefix` fit; of those, `nth`, `every` and
    `probability` choose, and `times` ends the rule. The first rule that chooses a request acts.
    On a command's stream only what comes before processing has an effect.

    Args:
        operation: an operationId of the contract, or `*` for all.
        path_prefix: start of the request path, e.g. `/api/v1/sandbox/sbx_1`.
        nth: which matching requests, counted from 1; a number or several.
        every: every n-th matching request.
        times: how often the rule acts at most.
        probability: chance of 0 to 1 that a matching request is chosen.
        seed: makes `probability` repeatable.
        status: answer this status; the request is not processed.
        headers: further headers of that answer.
        body: body of that answer, as text; by default `{"detail": "Injected fault"}`.
        delay_before: seconds to wait before processing.
        delay_after: seconds to wait between processing and answering.
        reset: break the connection instead of answering, before or after processing.
        garbage: process, then answer 200 with HTML instead of JSON.
        truncate: process, then close the connection after this many bytes of the body.
        stall: process, send half of the body and pause this many seconds before the rest.
    """

    operation: str = "*"
    path_prefix: str = ""
    nth: int | Sequence[int] | None = None
    every: int | None = None
    times: int | None = None
    probability: float | None = None
    seed: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    delay_before: float = 0.0
    delay_after: float = 0.0
    reset: Reset | None = None
    garbage: bool = False
    truncate: int | None = None
    stall: float | None = None

    @classmethod
    def from_wire(cls, rule: dict[str, Any]) -> FaultRule:
        """Read a rule from JSON.

        Raises:
            PlatformError: 422 for an unknown key.
        """
        unknown = set(rule) - {known.name for known in fields(cls)}
        if unknown:
            raise PlatformError(422, f"unknown fault keys: {', '.join(sorted(unknown))}")
        return cls(**rule)


class _Armed:
    """A rule with its counts."""

    def __init__(self, rule: FaultRule) -> None:
        self.rule = rule
        self.matched = 0
        self.hits = 0
        self._random = random.Random(rule.seed)
        self._nth = (rule.nth,) if isinstance(rule.nth, int) else rule.nth

    def chooses(self, operation_id: str, path: str) -> bool:
        rule = self.rule
        if rule.operation not in ("*", operation_id) or not path.startswith(rule.path_prefix):
            return False
        self.matched += 1
        chosen = (
            (self._nth is None or self.matched in self._nth)
            and (rule.every is None or self.matched % rule.every == 0)
            and (rule.probability is None or self._random.random() < rule.probability)
            and (rule.times is None or self.hits < rule.times)
        )
        self.hits += chosen
        return chosen


class FaultRules:
    """The rules in force, in order."""

    def __init__(self, rules: Iterable[FaultRule] = ()) -> None:
        self._armed = [_Armed(rule) for rule in rules]

    def add(self, rules: Iterable[FaultRule]) -> None:
        self._armed += [_Armed(rule) for rule in rules]

    def clear(self) -> None:
        self._armed.clear()

    def choose(self, operation_id: str, path: str) -> FaultRule | None:
        """Return the rule that spoils this request, if any; counts the request."""
        for armed in self._armed:
            if armed.chooses(operation_id, path):
                return armed.rule
        return None

    def to_wire(self) -> list[dict[str, Any]]:
        """Return the rules with `matched` and `hits`, how many requests they saw and spoiled."""
        return [
            {**asdict(armed.rule), "matched": armed.matched, "hits": armed.hits}
            for armed in self._armed
        ]
