"""What the platform answers to one request too many."""

from __future__ import annotations

import math
from email.utils import format_datetime

from prime_local.assumptions import Assumptions
from prime_local.clock import PlatformClock
from prime_local.errors import PlatformError


class Refusals:
    """Makes the errors of limits, in the forms that the assumptions name.

    Args:
        clock: tells the date that a Retry-After names.
        assumptions: the forms.
    """

    def __init__(self, clock: PlatformClock, assumptions: Assumptions) -> None:
        self._clock = clock
        self._assumptions = assumptions

    def rate(self, seconds: float) -> PlatformError:
        """The 429 of a rate limit that has room again after `seconds`; rounded up, at least 1."""
        wait = max(1, math.ceil(seconds))
        form = self._assumptions.retry_after
        headers = {"Retry-After": str(wait)}
        if form == "date":
            # Dates of HTTP know no fractions, and this one must not come too early.
            headers["Retry-After"] = format_datetime(self._clock.date(wait + 1), usegmt=True)
        elif form == "absent":
            headers.clear()
        return PlatformError(429, "Rate limit exceeded", headers)

    def quota(self, what: str, limit: int) -> PlatformError:
        """The error of an account limit: waiting alone does not help, so no Retry-After."""
        return PlatformError(self._assumptions.account_limit, f"{what} limit reached ({limit})")
