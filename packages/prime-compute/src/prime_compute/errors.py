"""The errors that this package adds to those of every package."""

from __future__ import annotations

from prime_core.errors import PrimeError

__all__ = ["NoOfferError"]


class NoOfferError(PrimeError):
    """No offer fits what was asked for; the message says why not.

    Args:
        message: how many offers failed which wish.
    """
