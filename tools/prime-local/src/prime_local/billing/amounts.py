"""Amounts of money that tests name."""

from __future__ import annotations

from decimal import Decimal


def read_usd(name: str, amount: object) -> Decimal:
    """Return an amount of USD.

    Raises:
        ValueError: it is none.
    """
    try:
        usd = Decimal(str(amount))
    except ArithmeticError:
        usd = Decimal("nan")
    if not usd.is_finite():
        raise ValueError(f"{name} is an amount of USD, not {amount!r}")
    return usd
