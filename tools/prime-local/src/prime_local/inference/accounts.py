"""Who pays for calls of models, and what was paid."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal, TypedDict

from prime_local.contract.document import JsonObject
from prime_local.inference.errors import InferenceError

_BALANCE = Decimal(1000)
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


def read_usd(value: object) -> Decimal:
    """Read an amount, a number or a text.

    Raises:
        ValueError: it is none.
    """
    try:
        usd = Decimal(str(value))
    except InvalidOperation:
        usd = Decimal("nan")
    if not usd.is_finite():
        raise ValueError("usd must be an amount of money")
    return usd


@dataclass
class _Totals:
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)


class Accounts:
    """The balances, and the calls that were paid from them."""

    def __init__(self) -> None:
        self._balances: dict[str | None, Decimal] = {}
        self._totals: dict[str | None, _Totals] = defaultdict(_Totals)
        self._calls: deque[BilledCall] = deque(maxlen=_CALLS_KEPT)
        self._open = self._peak = self._abandoned = 0

    def balance(self, team_id: str | None) -> Decimal:
        """Return what an account has left in USD; each begins with the same."""
        return self._balances.get(team_id, _BALANCE)

    def set_balance(self, usd: Decimal, team_id: str | None) -> None:
        self._balances[team_id] = usd

    def check(self, team_id: str | None) -> None:
        """Refuse who cannot pay.

        Raises:
            InferenceError: 402.
        """
        if self.balance(team_id) <= 0:
            whose = f"Team {team_id} has" if team_id else "Your personal account has"
            raise InferenceError(
                402,
                f"{whose} insufficient funds for this call",
                kind="insufficient_quota",
                code="insufficient_funds",
            )

    def opened(self) -> int:
        """Count a call that begins; return how many are under way with it."""
        self._open += 1
        self._peak = max(self._peak, self._open)
        return self._open

    def closed(self) -> None:
        self._open -= 1

    def charge(self, call: BilledCall, cost: Decimal) -> None:
        """Take the price of a call."""
        self._balances[call.team_id] = self.balance(call.team_id) - cost
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
