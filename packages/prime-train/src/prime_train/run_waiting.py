"""Waiting for runs: which states are the end of a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from prime_core.polling import PollSchedule, PollTimeout
from prime_train.errors import RunEndedError, RunFailedError, RunTimeoutError
from prime_train.models.runs import FINAL_RUN_STATUSES, Run, RunStatus

__all__ = ["FIRST_PAUSE", "check_statuses", "wait_for_run"]

# Seconds from the first look at a run to the second, as documented; a long wait looks less often.
FIRST_PAUSE = 3.0


def check_statuses(until: str | Collection[str]) -> frozenset[str]:
    """States to wait for, as the platform spells them.

    Raises:
        ValueError: there are none.
    """
    names = [until] if isinstance(until, str) else list(until)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"until is a state of a run, or several, not {until!r}")
    return frozenset(str(name).upper() for name in names)


async def wait_for_run(
    schedule: PollSchedule[str, Run],
    run_id: str,
    until: frozenset[str],
    timeout: float,
    *,
    longest: float | None = None,
) -> Run:
    """Waits until a run is in one of some states.

    Args:
        schedule: reads runs.
        run_id: the run.
        until: the states, in capitals.
        timeout: seconds.
        longest: seconds between two looks, at most.

    Raises:
        RunFailedError: it failed.
        RunEndedError: it ended otherwise.
        RunTimeoutError: it was not there in time.
    """
    seen: list[str] = []
    wanted = " or ".join(sorted(until))

    def there(run: Run) -> bool:
        seen[:] = [str(run.status)]
        if run.status in until:
            return True
        if run.status == RunStatus.COMPLETED and not until <= FINAL_RUN_STATUSES:
            return True  # it has been through every state before
        if run.status == RunStatus.FAILED:
            raise RunFailedError(run_id, run.error_message, run.failure_analysis)
        if run.status in FINAL_RUN_STATUSES:
            raise RunEndedError(run_id, str(run.status), f"it won't be {wanted} any more")
        return False

    deadline = asyncio.get_running_loop().time() + timeout
    try:
        return await schedule.wait(run_id, there, deadline, interval=FIRST_PAUSE, longest=longest)
    except PollTimeout as late:
        status = seen[0] if seen else None
        reason = f"it was not {wanted} within {timeout:g} s: wait again, or stop it"
        raise RunTimeoutError(run_id, status, reason) from late.last_error
