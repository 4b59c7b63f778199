"""When a failed attempt is made again, and after how long."""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass

from prime_core.limits import Scope
from prime_core.operations import Operation
from prime_core.outages import HostHealth
from prime_core.outcomes import Failure, Outcome

__all__ = ["MAX_ATTEMPTS", "Retries", "RetryQuota", "may_repeat", "transient_delay"]

logger = logging.getLogger("prime_core")

MAX_ATTEMPTS = 3
BASE_DELAY = 0.1
COUNTED_BASE_DELAY = 0.25
LONGEST_DELAY = 20.0
# How often a call without a limit of time asks whether a host that is down is back: once a second.
MOST_PROBES = 60
THROTTLE_BASE_DELAY = 1.0
THROTTLE_JITTER = 0.25
LOG_INTERVAL = 30.0


def may_repeat(operation: Operation, outcome: Outcome) -> bool:
    """Whether a request with this outcome may be sent again without doubling its effect."""
    if outcome in (Outcome.NOT_SENT, Outcome.REFUSED):
        return True
    return outcome is Outcome.AMBIGUOUS and operation.repeatable


def transient_delay(retry: int) -> float:
    """Seconds to wait before the n-th retry: full jitter over 0.1·2ⁿ, at most 20 s."""
    return random.uniform(0, min(LONGEST_DELAY, BASE_DELAY * 2**retry))


def counted_delay(retry: int) -> float:
    """Seconds before the n-th retry of a call whose attempts the caller has limited.

    Longer than usual: so few attempts should outlast a short outage.
    """
    longest = min(LONGEST_DELAY, COUNTED_BASE_DELAY * 2**retry)
    return random.uniform(longest / 2, longest)


class RetryQuota:
    """A client's allowance of scattered retries, which ends retry floods.

    A retry costs tokens and gives them back when it succeeds. Waits that the platform asked
    for, and waits for a host that is down, cost nothing: they make no flood.
    """

    SIZE = 500
    TRANSIENT = 14
    THROTTLE = 5

    def __init__(self) -> None:
        self._tokens = self.SIZE

    def take(self, cost: int) -> bool:
        if self._tokens < cost:
            return False
        self._tokens -= cost
        return True

    def refund(self, tokens: int) -> None:
        self._tokens = min(self.SIZE, self._tokens + tokens)


class ThrottleLog:
    """Counts the platform's refusals, and says that calls wait, at most every 30 s."""

    def __init__(self) -> None:
        self._last = -LOG_INTERVAL
        self.count = 0

    def waiting(self, operation: Operation, seconds: float) -> None:
        now = time.monotonic()
        if now - self._last >= LOG_INTERVAL:
            self._last = now
            logger.warning(
                "The platform throttles %s; waiting %.1f s before it is sent again.",
                operation.id,
                seconds,
            )


@dataclass
class Retries:
    """The retry budgets of one failed call.

    Attributes:
        max_attempts: how often it is sent at most. Waits that the platform asks for are not
            counted; nor, unless ``counted``, those for a host that is down. 1 means once.
        counted: whether the caller has chosen that number.
        limited: whether the call has a limit of time of its own.
    """

    operation: Operation
    quota: RetryQuota
    log: ThrottleLog
    max_throttle_wait: float
    max_attempts: int = MAX_ATTEMPTS
    counted: bool = False
    limited: bool = True
    transient: int = 0
    probes: int = 0
    throttles: int = 0
    unnamed_throttles: int = 0
    spent: int = 0
    delay: float = 0.0
    judged: Failure | None = None

    def grant(
        self, failure: Failure, scope: Scope, health: HostHealth, left: float, throttled: float
    ) -> bool:
        """Decides on one more attempt and sets ``delay``, the seconds to wait before it.

        Args:
            failure: what the last attempt came to.
            scope: the operation's rate-limit class, closed here for a throttle.
            health: the host's; a host that is down is waited for without a charge.
            left: seconds until the call's deadline.
            throttled: seconds that the call has waited for throttles so far.
        """
        self.delay = 0.0
        # The same failure again: time ran out before another attempt could be made.
        if failure is self.judged or not may_repeat(self.operation, failure.outcome):
            return False
        if self.max_attempts == 1:
            return False
        self.judged = failure
        if failure.throttled:
            return self._grant_throttled(failure, scope, throttled)
        # What the caller counts is what was sent, whether the host is down or not; and what may
        # be done once more with each attempt is never sent without bound.
        counted = self.counted or self.operation.safety == "permitted"
        counts = counted and failure.outcome is Outcome.AMBIGUOUS
        if health.down and not counts:
            self.probes += 1
            return left > 0 and (self.limited or self.probes <= MOST_PROBES)
        if self.transient + 1 >= self.max_attempts:
            return False
        self.transient += 1
        if counts:
            self.delay = counted_delay(self.transient)
        else:
            self.delay = transient_delay(self.transient)
        return self.delay < left and (health.down or self._pay(RetryQuota.TRANSIENT))

    def _grant_throttled(self, failure: Failure, scope: Scope, throttled: float) -> bool:
        self.log.count += 1
        self.throttles += 1
        if failure.retry_after is not None:
            # A platform that says "now" again and again is not asked without end.
            least = min(1.0, BASE_DELAY * 2 ** min(self.throttles - 1, 10))
            wait = max(failure.retry_after, least) * (1 + random.uniform(0, THROTTLE_JITTER))
        else:
            self.unnamed_throttles += 1
            longest = min(LONGEST_DELAY, THROTTLE_BASE_DELAY * 2 ** (self.unnamed_throttles - 1))
            wait = longest * random.uniform(0.5, 1.0)
            if not self._pay(RetryQuota.THROTTLE):
                return False
        asked = wait if failure.retry_after is None else failure.retry_after
        if throttled + asked > self.max_throttle_wait:
            message, *others = failure.error.args
            limit = f"max_throttle_wait, {self.max_throttle_wait:g} s"
            failure.error.args = (f"{message}; that is more than what is left of {limit}", *others)
            return False
        # The call waits at the closed gate, with every other call of its scope.
        scope.close(wait)
        self.log.waiting(self.operation, wait)
        return True

    def _pay(self, cost: int) -> bool:
        if not self.quota.take(cost):
            return False
        self.spent += cost
        return True

    def succeeded(self) -> None:
        self.quota.refund(self.spent)
