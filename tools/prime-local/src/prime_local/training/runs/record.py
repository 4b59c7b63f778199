"""The record of a hosted run: what it is, what became of it, and how far its training is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from prime_local.contract.document import JsonObject
from prime_local.sandboxes.record import Owner

KIND = "DEDICATED_FULL_FT"
# Lest a step that ends just now is counted as not done: times are sums of floats.
_ROUNDING = 1e-6


class Status(str, Enum):
    """States of a run; the last four are final."""

    QUEUED = "QUEUED"
    PENDING = "PENDING"
    CREATING = "CREATING"
    PULLING_IMAGE = "PULLING_IMAGE"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"

    @property
    def final(self) -> bool:
        return self in (Status.PAUSED, Status.COMPLETED, Status.FAILED, Status.STOPPED)

    @property
    def trains(self) -> bool:
        """Whether its pods are ready, which is what costs money."""
        return self in (Status.RUNNING, Status.PAUSING)


@dataclass(frozen=True)
class Moment:
    """A state that a run came into.

    Args:
        status: the state.
        at: when, in the platform's seconds since 1970.
        step: how many steps were done by then.
    """

    status: Status
    at: float
    step: int


@dataclass(frozen=True)
class Stretch:
    """A time of training without a break.

    Step `first + n` is done at `began_at + n * step_seconds`, as far as `last`.

    Args:
        began_at: when, in the platform's seconds since 1970.
        ended_at: likewise; None for one that goes on.
        first: steps that were done before.
        last: steps that are done at its end, or now.
    """

    began_at: float
    ended_at: float | None
    first: int
    last: int


@dataclass
class Run:
    """A hosted run.

    Args:
        name: what its owner calls it.
        config: of prime-rl, without what the platform strips; secrets are not kept.
        model: the model that it trains.
        environments: the sources that it trains on, or that SFT evaluates with, as configured.
        max_steps: its last step; None for a run that only its owner ends.
        gpus: how many it holds, on all pods.
        price: USD for a GPU and hour on demand, as it was at the dispatch.
        volume: the volume that it mounts.
        step_seconds: how long a step takes.
        setup_seconds: how long it is in each state before it trains, and how long its stop takes.
        started_from: steps that were done when it began; 0 unless it goes on with another run.
        resumed_from: the run that it goes on with.
        timeline: every state that it came into, the oldest first; never empty.
        saved: steps whose checkpoints its volume has got.
        cluster_id: where it is, once it has GPUs.
        reserved: whether those are its team's own, which cost nothing.
        doom: why it is going to fail once it is installed.
        stops_at: when it will be STOPPED; a stop takes a while.
        synced: whether its volume has got what it was to get at the run's end.
        deleted: whether its owner has deleted it.
    """

    id: str
    owner: Owner
    name: str | None
    mode: Literal["rl", "sft"]
    config: JsonObject
    model: str
    environments: list[JsonObject]
    max_steps: int | None
    gpus: int
    gpu_type: str
    price: Decimal
    image_tag: str
    volume: str | None
    step_seconds: float
    setup_seconds: float
    started_from: int = 0
    resumed_from: str | None = None
    timeline: list[Moment] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    error_message: str | None = None
    failure_analysis: JsonObject | None = None
    cluster_id: str | None = None
    reserved: bool = False
    doom: str | None = None
    stops_at: float | None = None
    synced: bool = False
    deleted: bool = False
    kind: str = KIND

    @property
    def status(self) -> Status:
        return self.timeline[-1].status

    @property
    def created_at(self) -> float:
        return self.timeline[0].at

    @property
    def updated_at(self) -> float:
        return self.timeline[-1].at

    @property
    def started_at(self) -> float | None:
        """When its training began."""
        return next((each.at for each in self.timeline if each.status.trains), None)

    @property
    def completed_at(self) -> float | None:
        """When it ended."""
        return self.timeline[-1].at if self.status.final else None

    @property
    def hourly(self) -> Decimal:
        """USD an hour, while its pods are ready."""
        return Decimal(0) if self.reserved else self.price * self.gpus

    def stretches(self, now: float) -> list[Stretch]:
        """Return the times of training until `now`, the oldest first; a restart begins another."""
        found: list[Stretch] = []
        begun: Moment | None = None
        for moment in self.timeline:
            if moment.at > now + _ROUNDING:
                break
            if begun is None and moment.status.trains:
                begun = moment
            elif begun is not None and not moment.status.trains:
                found.append(self._stretch(begun, moment.at, ended=True))
                begun = None
        if begun is not None:
            found.append(self._stretch(begun, now, ended=False))
        return found

    def _stretch(self, begun: Moment, until: float, *, ended: bool) -> Stretch:
        last = begun.step + int((until - begun.at + _ROUNDING) / self.step_seconds)
        if self.max_steps is not None:
            last = max(begun.step, min(last, self.max_steps))
        return Stretch(begun.at, until if ended else None, begun.step, last)

    def trained_seconds(self, now: float) -> float:
        """Return for how long its pods were ready until `now`."""
        return sum(
            (now if each.ended_at is None else each.ended_at) - each.began_at
            for each in self.stretches(now)
        )

    def to_row(self) -> dict[str, Any]:
        """Return what is kept."""
        timeline = [[each.status.value, each.at, each.step] for each in self.timeline]
        return {**asdict(self), "price": str(self.price), "timeline": timeline}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Run:
        timeline = [Moment(Status(status), at, step) for status, at, step in row["timeline"]]
        owner, price = Owner(**row["owner"]), Decimal(row["price"])
        return cls(**{**row, "owner": owner, "price": price, "timeline": timeline})


def step(run: Run, now: float) -> int:
    """Return how many steps of a run are done by `now`, in the platform's seconds since 1970.

    All that a run shows (logs, metrics, samples, checkpoints) follows from this and the record.
    """
    reached = run.started_from
    for moment in run.timeline:
        if moment.at > now + _ROUNDING:
            break
        reached = moment.step
        if moment.status.trains:
            reached = run.stretches(now)[-1].last
    return reached
