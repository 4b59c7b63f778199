"""Jobs on the dedicated cluster, all of which follow from the clock and the Slurm deployments."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from prime_local.contract.document import JsonObject
from prime_local.factory.cluster import GPUS, INFERENCE, NAME, TRAINING
from prime_local.sandboxes.record import wire_date
from prime_local.slurm.record import JOB_CYCLE, JOB_WAIT, Deployment

# One training run follows the other, and every fifth fails.
TRAINING_CYCLE = timedelta(hours=2)
FAILING = 5
# As far as the records go back.
REMEMBERED = 5000
OBSERVED = timedelta(seconds=5)

State = Literal["running", "queued", "completed", "failed"]
_NATIVE = {"running": "RUNNING", "queued": "PENDING", "completed": "COMPLETED", "failed": "FAILED"}


@dataclass(frozen=True)
class Job:
    """A job; `started_at` and `ended_at` may be to come."""

    id: str
    kind: Literal["training", "inference", "slurm"]
    name: str
    owner: JsonObject
    gpus: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    fails: bool = False
    scheduler: str | None = None

    def state(self, now: datetime) -> State:
        if self.started_at is None or now < self.started_at:
            return "queued"
        if self.ended_at is None or now < self.ended_at:
            return "running"
        return "failed" if self.fails else "completed"

    def moment(self, now: datetime) -> datetime:
        """Return when it last changed."""
        changes = (self.ended_at, self.started_at)
        return next((at for at in changes if at is not None and at <= now), self.created_at)

    def to_wire(self, now: datetime) -> JsonObject:
        """Return the `FactoryWorkload` object of the contract."""
        state = self.state(now)
        begun, over = state != "queued", state in ("completed", "failed")
        return {
            "id": self.id,
            "type": self.kind,
            "cluster_display_name": NAME,
            "name": self.name,
            "state": state,
            "native_state": _NATIVE[state],
            "owner": self.owner,
            "requested_gpus": self.gpus,
            "allocated_gpus": self.gpus if begun else None,
            "created_at": wire_date(self.created_at),
            "started_at": wire_date(self.started_at) if begun and self.started_at else None,
            "ended_at": wire_date(self.ended_at) if over and self.ended_at else None,
            "scheduler_display_name": self.scheduler,
            "reason": None if begun else "Resources",
            "source": source(self.kind, now),
        }


def source(kind: str, now: datetime) -> JsonObject:
    """Return a `FactorySource` object of the contract."""
    return {"kind": kind, "status": "ok", "observed_at": wire_date(now - OBSERVED)}


def jobs_until(now: datetime, opened: datetime, deployments: Iterable[Deployment]) -> list[Job]:
    """Return the jobs that were handed in until now, the newest first.

    Args:
        now: the platform's date.
        opened: when the cluster was.
        deployments: the Slurm deployments on it.
    """
    streams = [_trainings(now, opened), iter(_inferences(opened, now))]
    streams += [_slurm_jobs(now, each) for each in deployments]
    return list(
        islice(heapq.merge(*streams, key=lambda job: job.created_at, reverse=True), REMEMBERED)
    )


def _trainings(now: datetime, opened: datetime) -> Iterator[Job]:
    for number in range((now - opened) // TRAINING_CYCLE, -1, -1):
        begin = opened + number * TRAINING_CYCLE
        yield Job(
            id=f"training:run-{number}",
            kind="training",
            name=f"sft-{number}",
            owner={"kind": "prime", "display_name": "Ada"},
            gpus=GPUS * len(TRAINING),
            created_at=begin,
            started_at=begin,
            ended_at=begin + TRAINING_CYCLE,
            fails=number % FAILING == FAILING - 1,
        )


def _inferences(opened: datetime, now: datetime) -> Iterable[Job]:
    owner = {"kind": "prime", "display_name": "Bob"}
    chat = Job(
        "inference:job-1",
        "inference",
        "chat",
        owner,
        GPUS * len(INFERENCE),
        created_at=opened,
        started_at=opened,
        ended_at=None,
    )
    # It waits for room that never comes.
    waiting = Job(
        "inference:job-2",
        "inference",
        "judge",
        owner,
        GPUS,
        created_at=opened + timedelta(hours=1),
        started_at=None,
        ended_at=None,
    )
    return [waiting, chat] if waiting.created_at <= now else [chat]


def _slurm_jobs(now: datetime, deployment: Deployment) -> Iterator[Job]:
    if deployment.started_at is None:
        return
    for number in range((now - deployment.started_at) // JOB_CYCLE, -1, -1):
        begin = deployment.started_at + number * JOB_CYCLE
        yield Job(
            id=f"slurm:{deployment.id[-4:]}:{number + 1}",
            kind="slurm",
            name=f"sweep-{number + 1}",
            owner={"kind": "slurm", "display_name": "carol"},
            gpus=GPUS * deployment.job_nodes,
            created_at=begin,
            started_at=begin + JOB_WAIT,
            ended_at=begin + JOB_CYCLE,
            scheduler=deployment.name,
        )
