"""What following the log of a run goes by: its state, and how the platform says there is no log."""

from __future__ import annotations

from typing import Any

from prime_core.errors import NotFoundError
from prime_train.log_following import Phase
from prime_train.models.run_logs import LogQuery
from prime_train.models.runs import FINAL_RUN_STATUSES, STARTING_RUN_STATUSES

__all__ = ["is_absent", "log_query", "phase_of"]

# Texts of a 404 by which it means a log that has not begun, or is gone, and not the run.
_NO_LOG = (
    "queued",
    "pending",
    "starting",
    "initializing",
    "not started",
    "not available yet",
    "logs are not available",
    "logs not available",
)


def log_query(asked: LogQuery) -> dict[str, Any]:
    """The query of a read."""
    query = asked.model_dump(mode="json", exclude_none=True)
    if not asked.regex:
        del query["regex"]
    return query


def phase_of(status: str) -> Phase:
    """Where in its life a run of this state is; a state of tomorrow is one while it runs."""
    if status.upper() in FINAL_RUN_STATUSES:
        return Phase.OVER
    return Phase.WAITING if status.upper() in STARTING_RUN_STATUSES else Phase.RUNNING


def is_absent(error: NotFoundError) -> bool:
    """Whether a 404 is about the log, not about the run."""
    text = str(error.args[0]).lower()
    return any(each in text for each in _NO_LOG)
