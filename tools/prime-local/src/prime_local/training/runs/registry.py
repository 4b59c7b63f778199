"""Every hosted run, and what its owner can do with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from prime_local.billing.runs import RunTitle
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import Owner
from prime_local.training.capacity.offers import TrainingCapacity
from prime_local.training.runs.admission import Plan, can_pause, check_secrets, examine
from prime_local.training.runs.checkpoints import latest_step
from prime_local.training.runs.conductor import NO_FUNDS, RunConductor
from prime_local.training.runs.record import LOG_LINES, Run, Status
from prime_local.training.volumes.registry import TrainingVolumes

MAX_QUEUED = 10
_DEFAULT_IMAGE = "main"


@dataclass(frozen=True)
class RunPace:
    """How fast runs are, and how much they log, from their dispatch on.

    Args:
        step_time: seconds on the platform clock for each step of training, above 0.
        setup_time: seconds for each state before RUNNING, and for a stop, at least 0.
        log_lines: how many lines each component logs in a step, at least 1.

    Raises:
        ValueError: it is not.
    """

    step_time: float = 1.0
    setup_time: float = 0.0
    log_lines: int = LOG_LINES

    def __post_init__(self) -> None:
        for name, least in (("step_time", "above"), ("setup_time", "at least")):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{name} is a number of seconds")
            if not 0 <= value < math.inf or (least == "above" and not value):
                raise ValueError(f"{name} is {least} 0")
        if type(self.log_lines) is not int or self.log_lines < 1:
            raise ValueError("log_lines is a whole number of at least 1")

    def changed(self, changes: Mapping[str, Any]) -> RunPace:
        """Return this with changes.

        Raises:
            ValueError: there is no such time, or it has no such value.
        """
        known = [field.name for field in fields(self)]
        unknown = [name for name in changes if name not in known]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return replace(self, **changes)


class RunRegistry:
    """Every hosted run since the last reset. Training is simulated; its clock and its bill are not.

    Args:
        identifiers: makes ids.
        conductor: moves them on.
        capacity: says which GPUs there are.
        volumes: what they mount.
        pace: how fast they are.
        is_known: says whether the hub has an environment.
    """

    def __init__(
        self,
        identifiers: Identifiers,
        conductor: RunConductor,
        capacity: TrainingCapacity,
        volumes: TrainingVolumes,
        pace: RunPace,
        is_known: Callable[[str], bool],
    ) -> None:
        self._identifiers = identifiers
        self._conductor = conductor
        self._capacity = capacity
        self._volumes = volumes
        self.pace = pace
        self._is_known = is_known
        self._runs: dict[str, Run] = {}

    def now(self) -> float:
        """Return the platform's time in seconds since 1970, as records have it."""
        return self._conductor.now()

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the runs of an earlier platform."""
        for row in rows:
            run = Run.from_row(row)
            self._runs[run.id] = run
            self._conductor.take_over(run)
        self._conductor.promote()

    def get(self, run_id: str) -> Run:
        """Return a run.

        Raises:
            PlatformError: 404.
        """
        run = self.find(run_id)
        if run is None:
            raise PlatformError(404, "Run not found")
        return run

    def find(self, run_id: str) -> Run | None:
        """Return a run, if there is one that was not deleted."""
        run = self._runs.get(run_id)
        return None if run is None or run.deleted else run

    def was_there(self, run_id: str) -> bool:
        """Say whether a run exists, or has existed."""
        return run_id in self._runs

    def all(self) -> list[Run]:
        """Return the runs that were not deleted, the newest first."""
        return [run for run in reversed(self._runs.values()) if not run.deleted]

    def ahead(self, run: Run) -> int:
        """Return how many runs wait for the same type of GPU before a run."""
        queued = [each.id for each in self._conductor.queue(run.gpu_type)]
        return queued.index(run.id) if run.id in queued else 0

    def create(self, asked: JsonObject, owner: Owner, doom: str | None = None) -> Run:
        """Admit a run, which gets GPUs at once or waits for them.

        Args:
            asked: a `CreateTrainingRunRequest` of the contract.
            owner: whose it is.
            doom: why it is going to fail once it is installed.

        Raises:
            PlatformError: 400, 402, 403, 404 or 409; nothing was made.
        """
        paused = None if not asked.get("resumeFrom") else self._resumable(asked)
        volume = asked.get("volume") or None if paused is None else paused.volume
        plan = examine(asked, has_volume=volume is not None, is_known=self._is_known)
        if paused is not None and plan.model != paused.model:
            raise PlatformError(400, f"A run that resumes {paused.id} has the same model")
        gpu_type = self._capacity.admit(
            owner.team_id,
            asked.get("gpuType") or None,
            plan.gpus,
            model=plan.model,
            volume=volume is not None,
        )
        run = self._record(asked, owner, plan, gpu_type, volume)
        run.doom = doom
        if paused is not None:
            run.resumed_from, run.started_from = paused.id, paused.timeline[-1].step
        if volume is not None:
            self._volumes.attach(volume, owner.team_id, run.id)
        try:
            placed = self._place_or_queue(run)
        except BaseException:
            self._volumes.release(run.id)
            raise
        self._runs[run.id] = run
        self._conductor.begin(run, placed=placed)
        return run

    def resume(self, run_id: str, asked: JsonObject) -> Run:
        """Admit a run that goes on with a paused one.

        Args:
            run_id: the paused run.
            asked: a `ResumeTrainingRunRequest` of the contract.

        Raises:
            PlatformError: as for `create`.
        """
        check_secrets(asked)
        paused = self.get(run_id)
        again = {
            "config": paused.config,
            "mode": paused.mode,
            "name": paused.name,
            "imageTag": asked.get("imageTag") or paused.image_tag,
            "gpuType": asked.get("gpuType") or paused.gpu_type,
            "wandbApiKey": asked.get("wandbApiKey"),
            "resumeFrom": paused.id,
        }
        return self.create(again, paused.owner)

    def pause(self, run: Run) -> None:
        """Let a run pause once its step is done.

        Raises:
            PlatformError: 400 or 409.
        """
        if run.status is not Status.RUNNING:
            raise PlatformError(409, f"Only a RUNNING run can be paused; this one is {_word(run)}")
        if run.volume is None:
            raise PlatformError(400, "A run without a volume cannot be paused; stop it instead")
        if not can_pause(run.image_tag):
            raise PlatformError(400, f"Image {run.image_tag} cannot pause: use v0.10.1.dev11")
        self._conductor.enter(run, Status.PAUSING, self.now())

    def stop(self, run: Run) -> None:
        """Let a run stop; one that has stopped stays so.

        Raises:
            PlatformError: 409 when it has ended otherwise.
        """
        if run.status is Status.STOPPED:
            return
        if run.status.final:
            raise PlatformError(409, f"The run is {_word(run)} already")
        if run.stops_at is None:
            waits = run.status is Status.QUEUED
            run.stops_at = self.now() + (0.0 if waits else run.setup_seconds)
            self._conductor.save(run)
        self._conductor.go_on(run)

    def restart(self, run: Run) -> None:
        """Install a run anew, from its newest checkpoint on.

        Raises:
            PlatformError: 409.
        """
        if run.status is not Status.RUNNING:
            raise PlatformError(
                409, f"Only a RUNNING run can be restarted; this one is {_word(run)}"
            )
        now = self.now()
        self._conductor.enter(run, Status.PENDING, now, latest_step(run, now))

    def delete(self, run: Run) -> None:
        """Forget a run, and end it first where it goes on."""
        if not run.status.final:
            self._conductor.enter(run, Status.STOPPED, self.now(), deleted=True)
        run.deleted = True
        self._conductor.save(run)

    def fail(self, run_id: str, reason: str) -> None:
        """Let a run fail.

        Raises:
            ValueError: no such run is going on.
        """
        run = self.find(run_id)
        if run is None or run.status.final:
            raise ValueError(f"there is no run {run_id} that goes on")
        run.doom = reason
        self._conductor.enter(run, Status.FAILED, self.now())

    async def settle(self) -> None:
        """Wait until the volumes have got what ended runs left."""
        await self._conductor.settle()

    def title(self, run_id: str) -> RunTitle | None:
        """Return what a bill says of a run, if there is one."""
        run = self._runs.get(run_id)
        return None if run is None else RunTitle(run.name, run.model, run.status.value)

    def clear(self) -> None:
        """Move no run any more."""
        self._conductor.clear()

    async def close(self) -> None:
        """Break off what still saves files."""
        await self._conductor.close()

    def _resumable(self, asked: JsonObject) -> Run:
        paused = self.get(asked["resumeFrom"])
        if paused.status is not Status.PAUSED:
            raise PlatformError(
                409, f"Only a PAUSED run can be resumed; {paused.id} is {_word(paused)}"
            )
        if asked.get("volume") not in (None, paused.volume):
            raise PlatformError(400, f"volume is {paused.volume!r}, that of the paused run")
        return paused

    def _record(
        self, asked: JsonObject, owner: Owner, plan: Plan, gpu_type: str, volume: str | None
    ) -> Run:
        try:
            price = self._capacity.price(gpu_type)
        except PlatformError:  # such GPUs are only to be had by reservation
            price = Decimal(0)
        return Run(
            id=self._identifiers.make("", 24),
            owner=owner,
            name=asked.get("name"),
            mode=plan.mode,
            config=plan.config,
            model=plan.model,
            environments=plan.environments,
            max_steps=plan.max_steps,
            gpus=plan.gpus,
            gpu_type=gpu_type,
            price=price,
            image_tag=asked.get("imageTag") or _DEFAULT_IMAGE,
            volume=volume,
            step_seconds=self.pace.step_time,
            setup_seconds=self.pace.setup_time,
            log_lines=self.pace.log_lines,
        )

    def _place_or_queue(self, run: Run) -> bool:
        """Take GPUs for a new run; returns False when it has to wait for them.

        Raises:
            PlatformError: 400 or 402.
        """
        conductor = self._conductor
        # Who comes later must not overtake those that wait for the same GPUs.
        placed = not conductor.queue(run.gpu_type) and conductor.reserve(run)
        if not run.reserved and not conductor.can_pay(run):
            self._capacity.release(run.id)
            raise PlatformError(402, NO_FUNDS)
        if placed:
            return True
        waiting = [each for each in conductor.queue() if each.owner.user_id == run.owner.user_id]
        if len(waiting) >= MAX_QUEUED:
            raise PlatformError(400, f"Queued run limit ({MAX_QUEUED}) reached")
        return False


def _word(run: Run) -> str:
    return run.status.value
