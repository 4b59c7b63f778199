"""The record of an evaluation, with its wire forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from prime_local.contract.document import JsonObject


class Status(str, Enum):
    """States of an evaluation; it runs from its first sample on."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"


CLOSED = (Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.TIMEOUT)
# What a create and an update may say about it, each with its value where nothing is said.
DESCRIPTION: JsonObject = {
    "name": "",
    "description": None,
    "tags": [],
    "metadata": None,
    "metrics": None,
    "model_name": None,
    "dataset": None,
    "framework": None,
    "task_type": None,
    "inference_model": None,
    "eval_config": None,
    "is_public": False,
    "show_on_leaderboard": False,
}


@dataclass
class Evaluation:
    """An evaluation; dates are in their wire form.

    Args:
        described: what its maker says about it, by the names of `DESCRIPTION`.
        environments: id and name of each.
        scored: how many of its samples have a score; `score_sum` is what they come to.
        pushes: how many times samples were pushed.
        hosted: sandbox and final log of one that the platform runs.
    """

    id: str
    user_id: str
    team_id: str | None
    described: JsonObject
    environments: list[dict[str, str]]
    suite_id: str | None
    run_id: str | None
    created_at: str
    updated_at: str
    status: Status = Status.PENDING
    error_message: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    total_samples: int = 0
    pushes: int = 0
    scored: int = 0
    score_sum: float = 0.0
    min_score: float | None = None
    max_score: float | None = None
    hosted: JsonObject | None = None

    @property
    def closed(self) -> bool:
        return self.status in CLOSED

    def count(self, samples: Sequence[JsonObject]) -> None:
        """Take samples into its figures."""
        self.total_samples += len(samples)
        self.pushes += 1
        for sample in samples:
            score = sample.get("score", sample.get("reward"))
            if score is not None:
                self.scored += 1
                self.score_sum += score
                least, most = self.min_score, self.max_score
                self.min_score = score if least is None else min(score, least)
                self.max_score = score if most is None else max(score, most)

    def figures(self) -> JsonObject:
        """Return what is computed from its samples."""
        return {
            "total_samples": self.total_samples,
            "avg_score": self.score_sum / self.scored if self.scored else None,
            "min_score": self.min_score,
            "max_score": self.max_score,
        }

    def to_wire(self, viewer_url: str) -> JsonObject:
        """Return the `Evaluation` object of the contract."""
        kind = "environment" if self.environments else "training" if self.run_id else "suite"
        return {
            **self.described,
            **self.figures(),
            "evaluation_id": self.id,
            "status": self.status.value,
            "eval_type": kind,
            "user_id": self.user_id,
            "team_id": self.team_id,
            "environment_ids": [each["id"] for each in self.environments],
            "environment_names": [each["name"] for each in self.environments],
            "suite_id": self.suite_id,
            "run_id": self.run_id,
            "is_hosted": self.hosted is not None,
            "sandbox_id": None if self.hosted is None else self.hosted["sandbox_id"],
            "error_message": self.error_message,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "viewer_url": viewer_url,
        }

    def to_row(self) -> dict[str, Any]:
        """Return what is kept."""
        return {**vars(self), "status": self.status.value}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Evaluation:
        return cls(**{**row, "status": Status(row["status"])})
