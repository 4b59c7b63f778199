"""What happens to runs by themselves: GPUs, states, money, and what they leave on their volumes."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from prime_local.billing.wallets import Wallets
from prime_local.clock import PlatformClock, Timer
from prime_local.contract.document import JsonObject
from prime_local.ledger import Tally
from prime_local.storage import Storage
from prime_local.tasks import TaskSet
from prime_local.training.capacity.offers import TrainingCapacity
from prime_local.training.runs.checkpoints import checkpoints, files
from prime_local.training.runs.course import next_moment
from prime_local.training.runs.record import Moment, Run, Status, step
from prime_local.training.volumes.registry import TrainingVolumes

logger = logging.getLogger("prime_local")

KIND = "hosted_run"
NO_FUNDS = "Insufficient funds in the wallet"
_BILL_SECONDS = 60.0
_SECONDS_OF_HOUR = 3600
_SAVE_SECONDS = 5.0
_ROUNDING = 1e-6
_CONFIDENCE = 0.9


class RunConductor:
    """Moves runs on along the platform's clock.

    Args:
        clock: what runs are on.
        storage: keeps them.
        wallets: what they are paid from.
        capacity: the GPUs.
        volumes: what they mount.
        tally: counts them.
    """

    def __init__(
        self,
        clock: PlatformClock,
        storage: Storage,
        wallets: Wallets,
        capacity: TrainingCapacity,
        volumes: TrainingVolumes,
        tally: Tally,
    ) -> None:
        self._clock = clock
        self._storage = storage
        self._tasks = TaskSet()
        self._closed = False
        self._wallets = wallets
        self._capacity = capacity
        self._volumes = volumes
        self._tally = tally
        self._queue: list[Run] = []
        self._timers: dict[str, Timer] = {}
        self._saving: set[str] = set()  # whose pause has come, and saves its checkpoint
        capacity.on_freed = self.promote

    def now(self) -> float:
        """Return the platform's time in seconds since 1970, as records have it."""
        return self._clock.date().timestamp()

    def queue(self, gpu_type: str | None = None) -> list[Run]:
        """Return the runs that wait, for one type of GPU or for any, in their order."""
        return [run for run in self._queue if gpu_type in (None, run.gpu_type)]

    def begin(self, run: Run, *, placed: bool) -> None:
        """Let a new run begin, on the GPUs that it has got or in the queue."""
        self._tally.made()
        self.enter(run, Status.PENDING if placed else Status.QUEUED, self.now())

    def take_over(self, run: Run) -> None:
        """Go on with a run of an earlier platform."""
        if not run.status.final:
            self._tally.made()
            if run.volume is not None:
                self._volumes.attach(run.volume, run.owner.team_id, run.id)
            if run.status is Status.QUEUED:
                self._queue.append(run)
            else:
                self.reserve(run)
            self._arm(run)
        elif not run.synced:
            self._tasks.start(self._sync(run))

    def reserve(self, run: Run) -> bool:
        """Take GPUs for a run; returns False where it has to wait for them."""
        placement = self._capacity.reserve(
            run.id,
            run.gpu_type,
            run.gpus,
            team_id=run.owner.team_id,
            model=run.model,
            volume=run.volume is not None,
        )
        if placement is None:
            return False
        run.cluster_id, run.reserved = placement.cluster_id, placement.reserved
        return True

    def can_pay(self, run: Run) -> bool:
        """Say whether a run's owner has anything left."""
        return self._wallets.balance(run.owner.team_id) > 0

    def enter(
        self,
        run: Run,
        status: Status,
        at: float,
        reached: int | None = None,
        *,
        deleted: bool = False,
    ) -> None:
        """Note that a run came into a state, and what follows from it."""
        if reached is None:
            reached = step(run, at)
        run.timeline.append(Moment(status, at, reached))
        self._queue = [each for each in self._queue if each is not run]
        if status is Status.QUEUED:
            self._queue.append(run)
        if status is Status.FAILED:
            run.error_message = run.doom
            run.failure_analysis = _analysis(run)
        if status.final:
            self._end(run, deleted=deleted)
        else:
            self._arm(run)
        self.save(run)

    def go_on(self, run: Run) -> None:
        """Let a run come into the states that are due."""
        while (coming := next_moment(run)) is not None and coming.at <= self.now() + _ROUNDING:
            if coming.status is Status.PAUSED:
                if run.id not in self._saving:
                    self._saving.add(run.id)
                    self._tasks.start(self._finish_pause(run, coming))
                return
            self.enter(run, coming.status, coming.at, coming.step)
        self._bill(run)
        self._arm(run)

    async def settle(self) -> None:
        """Wait until the volumes have got what ended runs left."""
        await self._tasks.settle(_SAVE_SECONDS)

    def clear(self) -> None:
        """Move no run any more, and keep none."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def close(self) -> None:
        """Break off what still saves files."""
        await self._tasks.close(_SAVE_SECONDS)

    def _arm(self, run: Run) -> None:
        if (timer := self._timers.pop(run.id, None)) is not None:
            timer.cancel()
        coming = next_moment(run)
        due = math.inf if coming is None else coming.at - self.now()
        if run.status.trains and run.hourly:
            due = min(due, _BILL_SECONDS)
        if due < math.inf:
            self._timers[run.id] = self._clock.call_later(max(0.0, due), lambda: self.go_on(run))

    def _end(self, run: Run, *, deleted: bool) -> None:
        if (timer := self._timers.pop(run.id, None)) is not None:
            timer.cancel()
        self._bill(run)
        self._tally.ended(deleted=deleted)
        self._tasks.start(self._sync(run))
        self._capacity.release(run.id)

    def _bill(self, run: Run) -> None:
        seconds = int(run.trained_seconds(self.now()) + _ROUNDING)
        due = run.hourly * seconds / _SECONDS_OF_HOUR - self._wallets.amount(run.id)
        if due > 0:
            self._wallets.charge("training", run.id, run.owner.team_id, due)

    def promote(self) -> None:
        """Give GPUs to those that wait, in their order, as far as there are any."""
        full: set[str] = set()
        for run in self.queue():
            # What fails below makes room, and so this is called again from within.
            if run.status is not Status.QUEUED or run.gpu_type in full:
                continue
            if not self.reserve(run):
                full.add(run.gpu_type)
            elif run.reserved or self.can_pay(run):
                self.enter(run, Status.PENDING, self.now())
            else:
                run.doom = NO_FUNDS
                self.enter(run, Status.FAILED, self.now())

    async def _finish_pause(self, run: Run, paused: Moment) -> None:
        """Save the checkpoint of a pause, and only then let the run be PAUSED."""
        try:
            await self._save_files(run, [paused.step])
        except OSError as error:
            run.doom = f"The checkpoint of the pause could not be saved: {error}"
            paused = Moment(Status.FAILED, paused.at, paused.step)
        self._saving.discard(run.id)
        if run.status is Status.PAUSING:
            self.enter(run, paused.status, paused.at, paused.step)

    async def _sync(self, run: Run) -> None:
        """Bring what a run has saved to its volume, and leave that to the next writer."""
        try:
            if run.volume is not None:
                kept = [each.step for each in checkpoints(run, self.now()) if each.kept]
                await self._save_files(run, kept)
        except OSError as error:
            logger.warning("run %s left no checkpoints on its volume: %s", run.id, error)
        run.synced = True
        self._volumes.release(run.id)
        self.save(run)

    async def _save_files(self, run: Run, steps: Iterable[int]) -> None:
        for number in steps:
            if number not in run.saved:
                for key, pieces in files(run.id, number):
                    await self._volumes.write_file(run.id, key, pieces)
                run.saved.append(number)

    def save(self, run: Run) -> None:
        """Keep a run that has changed."""
        if not self._closed:
            self._storage.save_object(KIND, run.id, run.to_row())


def _analysis(run: Run) -> JsonObject:
    reached = run.timeline[-1].step
    return {
        "rootCause": run.error_message,
        "evidence": [f"The run failed after step {reached}", "The failure was simulated"],
        "confidence": _CONFIDENCE,
    }
