"""Waiting for hosted evaluations, and following what they log meanwhile."""

from __future__ import annotations

import asyncio

from prime_core.errors import APIConnectionError, RateLimitError, ServerError
from prime_core.polling import PollSchedule, PollTimeout
from prime_train.errors import HostedEvaluationError, HostedEvaluationTimeoutError
from prime_train.models.evaluations import FINAL_EVALUATION_STATUSES, Evaluation, EvaluationStatus

__all__ = [
    "check_complete",
    "is_transient",
    "late",
    "log_text",
    "wait_until_over",
]

# Texts that stand in the place of a log that there is not.
_NO_LOGS = (
    "Waiting for container to start...",
    "No logs available",
    "Unable to retrieve logs",
    "Failed to fetch logs from sandbox",
    "The hosted eval is still initializing",
)


def is_transient(error: Exception) -> bool:
    """Whether a failure to read a state may pass by itself while somebody waits."""
    return isinstance(error, (APIConnectionError, ServerError, RateLimitError))


def log_text(text: str) -> str:
    """A log, or nothing where the platform says in its place that there is none."""
    return "" if text.strip().startswith(_NO_LOGS) and "\n" not in text.strip() else text


async def wait_until_over(
    schedule: PollSchedule[str, Evaluation], evaluation_id: str, timeout: float
) -> Evaluation:
    """Waits for the end of an evaluation, however it ends.

    Raises:
        HostedEvaluationTimeoutError: it did not end in time.
    """
    seen: list[Evaluation] = []

    def over(evaluation: Evaluation) -> bool:
        seen[:] = [evaluation]
        return evaluation.status in FINAL_EVALUATION_STATUSES

    deadline = asyncio.get_running_loop().time() + timeout
    try:
        return await schedule.wait(evaluation_id, over, deadline)
    except PollTimeout as reason:
        status = str(seen[0].status) if seen else None
        raise late(evaluation_id, status) from reason.last_error


def late(evaluation_id: str, status: str | None) -> HostedEvaluationTimeoutError:
    """What is raised for an evaluation that goes on too long."""
    reason = "it did not end in time: wait again with a longer timeout, or cancel it"
    return HostedEvaluationTimeoutError(evaluation_id, status, reason)


def check_complete(evaluation: Evaluation) -> Evaluation:
    """An evaluation that is over, if it is complete.

    Raises:
        HostedEvaluationError: it is not.
    """
    if evaluation.status != EvaluationStatus.COMPLETED:
        status = str(evaluation.status)
        raise HostedEvaluationError(evaluation.evaluation_id, status, evaluation.error_message)
    return evaluation
