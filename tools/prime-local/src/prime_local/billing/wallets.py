"""Wallets: what is rented is paid for each minute, from the wallet of its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, Literal

from prime_local.clock import PlatformClock, Timer
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage

KIND = "billing"
Resource = Literal["compute", "disks", "inference", "training"]
_MINUTE = 60.0
_PER_HOUR = 60


@dataclass
class Bill:
    """What one thing has cost.

    Args:
        rates: the sum of the hourly prices of all minutes that were charged, which divided by
            60 is the amount: sums of prices are exact.
        prepaid: minutes that are paid for and still to come.
    """

    id: str
    team_id: str | None
    resource_type: Resource
    resource_id: str
    created_at: datetime
    updated_at: datetime
    last_billed_at: datetime | None = None
    rates: Decimal = Decimal(0)
    prepaid: int = 0

    @property
    def amount(self) -> Decimal:
        return self.rates / _PER_HOUR

    def to_wire(self) -> JsonObject:
        """Return the `BillingEntry` object of the contract."""
        return {
            "id": self.id,
            "created_at": wire_date(self.created_at),
            "updated_at": wire_date(self.updated_at),
            "last_billed_at": self.last_billed_at and wire_date(self.last_billed_at),
            "amount_usd": float(self.amount),
            "currency": "USD",
            "resource_type": self.resource_type,
            "resource_id": self.resource_id,
        }

    def to_row(self) -> dict[str, Any]:
        row = asdict(self)
        for name in ("created_at", "updated_at", "last_billed_at"):
            row[name] = row[name] and row[name].isoformat()
        return {**row, "rates": str(self.rates)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Bill:
        dates = {
            name: row[name] and datetime.fromisoformat(row[name])
            for name in ("created_at", "updated_at", "last_billed_at")
        }
        return cls(**{**row, **dates, "rates": Decimal(row["rates"])})


class Wallets:
    """Every wallet: one for the caller, and one for each team.

    Args:
        clock: the platform's.
        identifiers: makes the ids of rows.
        storage: keeps the rows.
        balance: USD that each wallet begins with.
        on_empty: called for an owner whose credits have run out.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        balance: Decimal,
        on_empty: Callable[[str | None], None],
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._credit = balance
        self._credits: dict[str | None, Decimal] = {}
        self._on_empty = on_empty
        self._bills: dict[str, Bill] = {}
        self._meters: dict[str, Callable[[], Decimal]] = {}
        self._timer: Timer | None = None
        self._due = 0.0

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Remember the rows of an earlier platform."""
        self._bills = {row["resource_id"]: Bill.from_row(row) for row in rows}

    def wallet_id(self, team_id: str | None) -> str:
        return f"wallet_{team_id or 'personal'}"

    def balance(self, team_id: str | None) -> Decimal:
        """Return what is left."""
        return self._credits.get(team_id, self._credit) - self._spent(team_id)

    def set_balance(self, team_id: str | None, usd: Decimal) -> None:
        """Say what is left, as if credits were bought or withdrawn."""
        self._credits[team_id] = usd + self._spent(team_id)

    def rows(self, team_id: str | None) -> list[Bill]:
        """Return a wallet's rows, the last billed first."""
        return sorted(
            self._of(team_id), key=lambda bill: bill.last_billed_at or bill.created_at, reverse=True
        )

    def amount(self, resource_id: str) -> Decimal:
        """Return what a thing has cost."""
        bill = self._bills.get(resource_id)
        return Decimal(0) if bill is None else bill.amount

    def check(self, team_id: str | None, advance: Decimal = Decimal(0)) -> None:
        """Refuse an owner who cannot pay.

        Args:
            team_id: the owner.
            advance: USD that would be due at once.

        Raises:
            PlatformError: 402.
        """
        left = self.balance(team_id)
        if left <= 0 or left < advance:
            raise PlatformError(402, "Insufficient balance")

    def meter(
        self,
        resource_type: Resource,
        resource_id: str,
        team_id: str | None,
        rate: Callable[[], Decimal],
        *,
        prepaid_hours: Decimal = Decimal(0),
        price: Decimal = Decimal(0),
    ) -> None:
        """Charge for something from now on.

        Args:
            resource_type: what it is called on the bill.
            resource_id: the thing.
            team_id: who pays.
            rate: tells USD an hour as of now.
            prepaid_hours: that many are charged at once, when it is new.
            price: USD for each of those.
        """
        bill = self._bills.get(resource_id)
        if bill is None:
            bill = self._new_bill(resource_type, resource_id, team_id)
            minutes = int((prepaid_hours * _PER_HOUR).to_integral_value(ROUND_CEILING))
            if minutes:
                self._charge(bill, price * minutes)
                bill.prepaid = minutes
        self._save(bill)
        self._meters[resource_id] = rate
        if self._timer is None:
            self._due = self._clock.now()
            self._arm()

    def charge(
        self, resource_type: Resource, resource_id: str, team_id: str | None, usd: Decimal
    ) -> None:
        """Charge for something once; what has the same id stands in one row.

        Args:
            resource_type: what it is called on the bill.
            resource_id: the thing.
            team_id: who pays.
            usd: how much.
        """
        bill = self._bills.get(resource_id)
        if bill is None:
            bill = self._new_bill(resource_type, resource_id, team_id)
        self._charge(bill, usd * _PER_HOUR)

    def stop(self, resource_id: str) -> None:
        """Charge for something no more."""
        self._meters.pop(resource_id, None)

    def clear(self) -> None:
        self._bills.clear()
        self._credits.clear()
        self._meters.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        for resource_id, rate in list(self._meters.items()):
            bill = self._bills[resource_id]
            price = rate()
            if price and bill.prepaid:
                bill.prepaid -= 1
            elif price:
                self._charge(bill, price)
        for team_id in {self._bills[resource_id].team_id for resource_id in self._meters}:
            if self.balance(team_id) <= 0:
                self._on_empty(team_id)
        if self._meters:
            self._arm()

    def _arm(self) -> None:
        # From the last minute's end, not from now: else the minutes of a day would be too few.
        self._due += _MINUTE
        self._timer = self._clock.call_later(self._due - self._clock.now(), self._tick)

    def _new_bill(self, resource_type: Resource, resource_id: str, team_id: str | None) -> Bill:
        now = self._clock.date()
        bill_id = self._identifiers.make("bill_")
        bill = Bill(bill_id, team_id, resource_type, resource_id, now, now)
        self._bills[resource_id] = bill
        return bill

    def _charge(self, bill: Bill, rates: Decimal) -> None:
        bill.rates += rates
        bill.updated_at = bill.last_billed_at = self._clock.date()
        self._save(bill)

    def _save(self, bill: Bill) -> None:
        self._storage.save_object(KIND, bill.id, bill.to_row())

    def _spent(self, team_id: str | None) -> Decimal:
        return sum((bill.amount for bill in self._of(team_id)), Decimal(0))

    def _of(self, team_id: str | None) -> Iterable[Bill]:
        return (bill for bill in self._bills.values() if bill.team_id == team_id)
