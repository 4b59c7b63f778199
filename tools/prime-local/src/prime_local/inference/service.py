"""The inference service of one platform: who pays, and what a test may switch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from prime_local.billing.wallets import Wallets
from prime_local.inference.tally import BilledCall, InferenceTally
from prime_local.inference.upstream import Upstream
from prime_local.refusals import Refusals

_RETRY_SECONDS = 1.0


@dataclass(frozen=True)
class InferenceSwitches:
    """What a test can turn.

    Args:
        token_time: real seconds that each token of a completion takes.
        concurrency: how many calls of models may be under way; more are answered with 429.
            None for any number.

    Raises:
        ValueError: a value that no switch has.
    """

    token_time: float = 0.0
    concurrency: int | None = None

    def __post_init__(self) -> None:
        time, most = self.token_time, self.concurrency
        if isinstance(time, bool) or not isinstance(time, (int, float)):
            raise ValueError("token_time must be a number of seconds")
        if not 0 <= time < math.inf:
            raise ValueError("token_time must be at least 0")
        if most is not None and (type(most) is not int or most < 0):
            raise ValueError("concurrency must be a number of calls, or null")

    def changed(self, changes: Mapping[str, Any]) -> InferenceSwitches:
        """Return these switches with changes.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        known = [each.name for each in fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"{name!r} is none of {', '.join(known)}")
        return replace(self, **changes)


class InferenceService:
    """What the inference service remembers.

    Args:
        refusals: makes the answer to one call too many.
        wallets: pay.
        tally: counts calls.
        upstream: makes the text in place of our own.
    """

    def __init__(
        self,
        refusals: Refusals,
        wallets: Wallets,
        tally: InferenceTally,
        upstream: Upstream | None,
    ) -> None:
        self.upstream = upstream
        self.switches = InferenceSwitches()
        self._refusals = refusals
        self._wallets = wallets
        self._tally = tally

    def change(self, changes: Mapping[str, Any]) -> None:
        """Turn switches; see `InferenceSwitches`.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        self.switches = self.switches.changed(changes)

    @contextmanager
    def under_way(self, team_id: str | None) -> Iterator[None]:
        """Hold one of the places for calls of models.

        Raises:
            PlatformError: 402 or 429.
        """
        self._wallets.check(team_id)
        most = self.switches.concurrency
        try:
            if self._tally.opened() > (math.inf if most is None else most):
                raise self._refusals.rate(_RETRY_SECONDS)
            yield
        finally:
            self._tally.closed()

    def charge(self, call: BilledCall, cost: Decimal) -> None:
        """Let a call be paid for; all of an account's stand in one row of its bills."""
        self._tally.billed(call, cost)
        if cost:
            row = f"inference_{call.team_id or 'personal'}"
            self._wallets.charge("inference", row, call.team_id, cost)
