"""When a failed attempt is made again: decisions without a socket."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from rows import CREATE, POKE, READ

from prime_core.errors import APIConnectionError, APIError, RateLimitError, ServerError
from prime_core.limits import Scope
from prime_core.operations import Operation
from prime_core.outages import HostHealth
from prime_core.outcomes import Failure, Outcome
from prime_core.retries import Retries, RetryQuota, ThrottleLog, may_repeat, transient_delay

LONG = 60.0  # seconds left, more than any delay here


def retries(
    operation: Operation = READ, quota: RetryQuota | None = None, max_throttle_wait: float = 120.0
) -> Retries:
    return Retries(operation, quota or RetryQuota(), ThrottleLog(), max_throttle_wait)


def grant(
    budgets: Retries,
    failure: Failure,
    *,
    scope: Scope | None = None,
    health: HostHealth | None = None,
    left: float = LONG,
    throttled: float = 0.0,
) -> bool:
    return budgets.grant(failure, scope or Scope(None), health or HostHealth(), left, throttled)


def lost() -> Failure:
    return Failure(Outcome.AMBIGUOUS, ServerError("HTTP 500"))


def refused(retry_after: float | None = None) -> Failure:
    return Failure(Outcome.REFUSED, RateLimitError("HTTP 429"), retry_after)


@pytest.mark.parametrize(
    ("operation", "outcome", "again"),
    [
        (READ, Outcome.NOT_SENT, True),
        (READ, Outcome.REFUSED, True),
        (READ, Outcome.AMBIGUOUS, True),
        (READ, Outcome.FINAL, False),
        (CREATE, Outcome.NOT_SENT, True),
        (CREATE, Outcome.REFUSED, True),
        (CREATE, Outcome.AMBIGUOUS, True),
        (CREATE, Outcome.FINAL, False),
        (POKE, Outcome.NOT_SENT, True),
        (POKE, Outcome.REFUSED, True),
        (POKE, Outcome.AMBIGUOUS, False),
        (POKE, Outcome.FINAL, False),
    ],
)
def test_safety_and_outcome_decide_together(
    operation: Operation, outcome: Outcome, again: bool
) -> None:
    assert may_repeat(operation, outcome) is again
    assert grant(retries(operation), Failure(outcome, APIError("x"), 0.1)) is again


def test_a_call_is_sent_three_times_at_most() -> None:
    budgets = retries()
    assert [grant(budgets, lost()) for _ in range(4)] == [True, True, False, False]


def test_the_same_failure_is_judged_once() -> None:
    # The same object again means that time ran out before another attempt was made.
    budgets, failure = retries(), refused(0.1)
    assert grant(budgets, failure)
    assert not grant(budgets, failure)
    assert budgets.log.count == 1


@pytest.mark.parametrize(("retry", "longest"), [(1, 0.2), (2, 0.4), (3, 0.8), (20, 20.0)])
def test_delays_are_spread_over_the_whole_back_off(retry: int, longest: float) -> None:
    delays = [transient_delay(retry) for _ in range(2_000)]
    assert min(delays) < longest * 0.1
    assert longest * 0.9 < max(delays) <= longest


def test_no_retry_is_granted_that_the_deadline_would_cut() -> None:
    assert not grant(retries(), lost(), left=0.0)
    assert not grant(retries(), lost(), left=-1.0)


def test_the_quota_ends_a_flood_of_retries() -> None:
    quota = RetryQuota()
    granted = [grant(retries(quota=quota), lost()) for _ in range(100)]
    assert granted.count(True) == RetryQuota.SIZE // RetryQuota.TRANSIENT == 35
    assert granted[35:] == [False] * 65


def test_a_retry_that_succeeds_gives_its_tokens_back() -> None:
    quota = RetryQuota()
    for _ in range(100):
        budgets = retries(quota=quota)
        assert grant(budgets, lost())
        assert grant(budgets, lost())
        budgets.succeeded()


def test_the_quota_never_grows_beyond_its_size() -> None:
    quota = RetryQuota()
    quota.refund(10_000)
    assert not quota.take(RetryQuota.SIZE + 1)
    assert quota.take(RetryQuota.SIZE)
    assert not quota.take(1)


def test_a_wait_that_the_platform_asked_for_costs_neither_tokens_nor_attempts() -> None:
    quota = RetryQuota()
    assert quota.take(RetryQuota.SIZE)
    budgets = retries(quota=quota)
    assert all(grant(budgets, refused(0.01)) for _ in range(50))
    assert not grant(budgets, refused(None)), "an unnamed wait is charged"


def test_a_throttle_that_names_no_time_costs_five_tokens() -> None:
    quota = RetryQuota()
    assert quota.take(RetryQuota.SIZE - 12)
    assert [grant(retries(quota=quota), refused()) for _ in range(3)] == [True, True, False]


def test_a_throttle_closes_the_scope_for_the_time_asked_plus_a_quarter() -> None:
    waits = []
    for _ in range(500):
        scope = Scope(None)
        before = time.monotonic()
        assert grant(retries(), refused(8.0), scope=scope)
        waits.append(scope.opens_at - before)
    assert 8.0 <= min(waits) < 8.3
    assert 9.7 < max(waits) <= 10.1


def test_unnamed_throttles_back_off_to_twenty_seconds() -> None:
    budgets = retries(max_throttle_wait=1_000.0)
    waits = []
    for _ in range(8):
        scope = Scope(None)
        before = time.monotonic()
        assert grant(budgets, refused(), scope=scope)
        waits.append(scope.opens_at - before)
    for wait, longest in zip(waits, [1, 2, 4, 8, 16, 20, 20, 20], strict=True):
        assert longest * 0.5 <= wait <= longest + 0.1


def test_a_throttle_leaves_the_delay_to_the_closed_scope() -> None:
    budgets = retries()
    assert grant(budgets, lost())
    assert grant(budgets, refused(5.0))
    assert budgets.delay == 0.0


@pytest.mark.parametrize(
    ("asked", "throttled", "granted"),
    [(9.9, 0.0, True), (10.1, 0.0, False), (1.0, 8.9, True), (1.0, 9.1, False)],
)
def test_a_wait_beyond_the_throttle_budget_is_refused_at_once(
    asked: float, throttled: float, granted: bool
) -> None:
    scope = Scope(None)
    budgets = retries(max_throttle_wait=10.0)
    assert grant(budgets, refused(asked), scope=scope, throttled=throttled) is granted
    assert scope.free is not granted, "a wait that nobody makes must not hold others back"


def test_the_throttle_budget_is_apart_from_the_deadline() -> None:
    assert grant(retries(max_throttle_wait=100.0), refused(50.0), left=1.0)


def test_throttling_is_said_once_in_thirty_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "prime_core")
    log = ThrottleLog()
    for _ in range(20):
        Retries(CREATE, RetryQuota(), log, 120.0).grant(
            refused(3.0), Scope(None), HostHealth(), LONG, 0.0
        )
    assert log.count == 20
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "create_thing" in record.getMessage()


async def test_a_host_that_is_down_is_waited_for_without_a_charge() -> None:
    health = HostHealth()
    health.answered(time.monotonic())
    for _ in range(3):
        health.failed()
    quota = RetryQuota()
    assert quota.take(RetryQuota.SIZE)
    budgets = retries(CREATE, quota)
    unreachable = Failure(Outcome.NOT_SENT, APIConnectionError("x", sent="no"), unavailable=True)
    for _ in range(10):
        failure = Failure(unreachable.outcome, unreachable.error, unavailable=True)
        assert grant(budgets, failure, health=health)
        assert budgets.delay == 0.0
    assert not grant(budgets, lost(), health=health, left=0.0)
    assert not grant(retries(POKE), lost(), health=health), "it may have arrived"
    health.answered(time.monotonic())
    await asyncio.sleep(0)
