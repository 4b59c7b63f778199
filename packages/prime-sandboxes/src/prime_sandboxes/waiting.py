"""Waiting until sandboxes run: budgets, and what the states on the way mean."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from prime_core.deadlines import timeout_at
from prime_core.errors import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    ConflictError,
    PrimeError,
    RateLimitError,
    ServerError,
)
from prime_core.polling import PollSchedule, PollTimeout
from prime_sandboxes.arguments import check_count
from prime_sandboxes.commands import GONE_CODES
from prime_sandboxes.errors import CommandTimeoutError, SandboxNotRunningError, not_running
from prime_sandboxes.models import TERMINAL_STATUSES, SandboxStatus, SandboxStatusSnapshot

__all__ = ["is_transient", "wait_until_reachable", "wait_until_running", "waiting_budget"]

STABILITY_INTERVAL = 0.5
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0
_TRANSIENT_CODES = frozenset({"aborted", "deadline_exceeded", "unavailable"}) | GONE_CODES
_TRANSIENT_STATUSES = frozenset({408, 409, 500, 502, 503, 504, 524})

Schedule = PollSchedule[str, SandboxStatusSnapshot]


def waiting_budget(max_attempts: int) -> float:
    """Seconds that ``max_attempts`` stands for: one each for the first five, then two."""
    check_count("max_attempts", max_attempts, least=1)
    return max_attempts if max_attempts <= 5 else 5 + 2 * (max_attempts - 5)


def is_transient(error: Exception) -> bool:
    """Whether a failure to read states may pass by itself while somebody waits."""
    return isinstance(error, (APIConnectionError, ServerError, RateLimitError))


def _raise_if_over(snapshot: SandboxStatusSnapshot) -> None:
    if snapshot.status in TERMINAL_STATUSES:
        raise not_running(
            snapshot.sandbox_id, snapshot.status, snapshot.error_type, snapshot.error_message
        )


def _runs(snapshot: SandboxStatusSnapshot) -> bool:
    return snapshot.status == SandboxStatus.RUNNING


def _builds(snapshot: SandboxStatusSnapshot) -> bool:
    """Whether the sandbox waits for its image's first build."""
    return snapshot.status == SandboxStatus.PENDING and bool(snapshot.pending_image_build_id)


async def wait_until_running(
    schedule: Schedule, sandbox_id: str, budget: float, build_budget: float
) -> SandboxStatusSnapshot:
    """Waits for RUNNING; an image build has a budget of its own and holds the other.

    Raises:
        SandboxNotRunningError: a terminal state, or a budget that is over.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + budget
    build_deadline: float | None = None

    def runs_or_builds(snapshot: SandboxStatusSnapshot) -> bool:
        _raise_if_over(snapshot)
        return _runs(snapshot) or _builds(snapshot)

    def builds_no_more(snapshot: SandboxStatusSnapshot) -> bool:
        _raise_if_over(snapshot)
        return not _builds(snapshot)

    try:
        while True:
            snapshot = await schedule.wait(sandbox_id, runs_or_builds, deadline)
            if _runs(snapshot):
                return snapshot
            left = deadline - loop.time()
            if build_deadline is None:
                build_deadline = loop.time() + build_budget
            snapshot = await schedule.wait(sandbox_id, builds_no_more, build_deadline)
            if _runs(snapshot):
                return snapshot
            deadline = loop.time() + left
    except PollTimeout as late:
        what = f"did not run within {budget:g} s"
        if build_deadline is not None:
            what += f", or its image was not built within {build_budget:g} s"
        raise SandboxNotRunningError(sandbox_id, message=what) from late.last_error


async def wait_until_reachable(
    check: Callable[[str], Awaitable[object]], sandbox_id: str, budget: float, checks: int
) -> None:
    """Waits until the gateway of a running sandbox runs commands.

    Args:
        check: runs a short command.
        sandbox_id: the sandbox.
        budget: seconds.
        checks: successes in a row that are needed, at least 1.

    Raises:
        SandboxNotRunningError: not within the budget; the last failure is the cause.
    """
    deadline = asyncio.get_running_loop().time() + budget
    successes, pause = 0, FIRST_PAUSE
    failure: PrimeError | None = None
    while True:
        try:
            async with timeout_at(deadline):
                await check(sandbox_id)
        except PrimeError as error:
            if not _may_become_reachable(error):
                raise
            failure = error
            successes = 0
        except asyncio.TimeoutError:
            # An earlier failure says more than that the last check was cut short.
            failure = failure or APITimeoutError("The gateway did not answer.", sent="unknown")
        else:
            failure = None
            successes += 1
            if successes >= checks:
                return
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise SandboxNotRunningError(
                sandbox_id,
                status="RUNNING",
                error_type="GATEWAY_REACHABILITY_TIMEOUT",
                message=f"it runs, but its gateway did not answer within {budget:g} s",
            ) from failure
        if failure is None:
            wait = STABILITY_INTERVAL
        else:
            wait = pause * random.uniform(0.75, 1.25)
            pause = min(pause * 1.5, LONGEST_PAUSE)
        await asyncio.sleep(min(wait, left))


def _may_become_reachable(error: PrimeError) -> bool:
    passing = (CommandTimeoutError, APIConnectionError, APIResponseError, ConflictError)
    if isinstance(error, passing):
        return True
    return isinstance(error, APIError) and (
        error.code in _TRANSIENT_CODES or error.status_code in _TRANSIENT_STATUSES
    )
