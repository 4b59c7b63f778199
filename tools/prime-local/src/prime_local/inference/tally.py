"""What was paid for calls of models, and by whom."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Literal, TypedDict

from prime_local.contract.document import JsonObject

_CALLS_KEPT = 10_000

Outcome = Literal["completed", "abandoned"]


class AccountTotals(TypedDict):
    """What one account has used; `personal` or the id of a team names it."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


class InferenceCounts(TypedDict):
    """What the ledger says about the inference service."""

    open: int
    peak: int
    abandoned: int
    accounts: dict[str, AccountTotals]


@dataclass(frozen=True)
class BilledCall:
    """A call of a model that was paid for.

    Args:
        inference_id: as in its answer's X-Inference-Id.
        operation: the contract's operationId.
        team_id: as X-Prime-Team-ID said; None for the personal account.
        streamed: whether the answer was a stream.
        outcome: `abandoned` when the stream ended before its end; it costs what was sent.
    """

    inference_id: str
    operation: str
    model: str
    team_id: str | None
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    streamed: bool = False
    outcome: Outcome = "completed"


@dataclass
class _Totals:
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)


class InferenceTally:
    """Counts calls of models, and what each account has used."""

    def __init__(self) -> None:
        self._totals: dict[str | None, _Totals] = defaultdict(_Totals)
        self._calls: deque[BilledCall] = deque(maxlen=_CALLS_KEPT)
        self._open = self._peak = self._abandoned = 0

    def opened(self) -> int:
        """Count a call that begins; return how many are under way with it."""
        self._open += 1
        self._peak = max(self._peak, self._open)
        return self._open

    def closed(self) -> None:
        self._open -= 1

    def billed(self, call: BilledCall, cost: Decimal) -> None:
        """Count a call that was paid for."""
        totals = self._totals[call.team_id]
        totals.calls += 1
        totals.prompt_tokens += call.prompt_tokens
        totals.completion_tokens += call.completion_tokens
        totals.cost += cost
        self._abandoned += call.outcome == "abandoned"
        self._calls.append(call)

    def calls(self) -> list[JsonObject]:
        """Return the last 10,000 calls, the oldest first."""
        return [asdict(call) for call in self._calls]

    def counts(self) -> InferenceCounts:
        return {
            "open": self._open,
            "peak": self._peak,
            "abandoned": self._abandoned,
            "accounts": {
                team_id or "personal": {
                    "calls": totals.calls,
                    "prompt_tokens": totals.prompt_tokens,
                    "completion_tokens": totals.completion_tokens,
                    "cost_usd": float(totals.cost),
                }
                for team_id, totals in self._totals.items()
            },
        }
