"""A run's work: what it has logged travels from here, on the process-wide loop thread.

Neither the program's loop nor its end stops that. Each public coroutine may be awaited on any
loop; what they share is touched on the loop thread only.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NoReturn

from prime_core.sync import across, loop_thread
from prime_traces.batches import DEFAULT_TARGET_BATCH_BYTES
from prime_traces.models import UploadReceipt
from prime_traces.runs.background import off_loop, on_loop_thread
from prime_traces.runs.entries import EPISODES_WRITTEN, Ending, Status
from prime_traces.runs.equipment import Equipment
from prime_traces.runs.errors import RunFinishedError
from prime_traces.runs.figures import check_mapping, check_step, metrics_line, summary_values
from prime_traces.runs.lifecycle import LIVE, REPORT_LEAST, REPORT_PATIENCE
from prime_traces.runs.losses import Losses
from prime_traces.runs.parcels import Parcel, Refusal
from prime_traces.runs.records import Packer, check_records
from prime_traces.runs.reporting import report
from prime_traces.runs.settings import RunSettings
from prime_traces.runs.unsent import UnsentRecords

__all__ = ["Recorder"]

TERMINAL = ("completed", "failed", "cancelled", "crashed")


class Recorder:
    """The state of a run, and its deliveries.

    Args:
        settings: what makes the run.
    """

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self.id = settings.attached_id or f"disabled-{uuid.uuid4().hex[:16]}"
        self.name = settings.name
        self.url: str | None = None
        self.status: Status = "running"
        self.finished = False
        self.summary: dict[str, Any] = {}
        self.losses = Losses()
        self._inherited = False
        self._begin()

    def _begin(self) -> None:
        """What each process has for itself."""
        self._equipment: Equipment | None = None
        self._creating: asyncio.Task[Any] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._cut: asyncio.Event | None = None

    def __repr__(self) -> str:
        return f"Run({self.id!r}, kind={self.settings.kind!r}, status={self.status!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a run can't be pickled: attach to it there, with init(id=run.id)")

    @property
    def online(self) -> bool:
        """Whether anything is sent."""
        return self.settings.mode == "online"

    @property
    def receipts(self) -> list[UploadReceipt]:
        """The latest receipts of the traces service."""
        return [] if self._equipment is None else list(self._equipment.traces.receipts)

    # Beginning

    async def create(self) -> None:
        """Makes the run at the platform, or attaches to it.

        Raises:
            APIError: the platform refused it, or could not be reached.
            EnvironmentResolutionError: an environment is unknown.
        """
        if not self.online:
            return
        LIVE.add(self)
        creating = loop_thread().submit(self._create())
        try:
            await across(creating)
        except BaseException:
            if not creating.done():
                self.abandon()  # it may be made all the same
            raise

    async def _create(self) -> None:
        self._creating = asyncio.current_task()
        equipment = Equipment(self.settings, self.losses)
        try:
            await equipment.entry.create()
        except BaseException:
            LIVE.discard(self)
            await equipment.aclose()
            raise
        entry = equipment.entry
        self.id, self.name, self.url = entry.id, entry.name, entry.url
        self._equip(equipment)

    def _equip(self, equipment: Equipment) -> None:
        self._packer = Packer(self.id, self.settings.kind, DEFAULT_TARGET_BATCH_BYTES)
        self.losses.keep_in(UnsentRecords(self.settings.unsent_dir, self.id), self.id)
        equipment.open()
        self._equipment = equipment

    def _equipped(self) -> Equipment:
        """What delivers; a forked child makes its own when it first logs something."""
        if self._equipment is None:
            equipment = Equipment(self.settings, self.losses)
            entry = equipment.entry
            entry.id, entry.name, entry.url = self.id, self.name, self.url
            self._equip(equipment)
            LIVE.add(self)
        assert self._equipment is not None
        return self._equipment

    def abandon(self) -> None:
        """Ends a run that its maker never learned of; `LIVE` waits for that."""
        if self.online:
            loop_thread().submit(self._end_after_create("cancelled", None, REPORT_PATIENCE, None))

    # Logging

    async def log_records(
        self, records: Iterable[object], only: Literal["episode"] | None = None
    ) -> None:
        """Queues records; by default traces and episodes, each known by what it holds.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: they are one record, or nothing that holds any.
        """
        self._check_running()
        check_records(records)
        if not self.online:
            return
        packed = self._packer.pack(records, only)
        while (item := await off_loop(next, packed, None)) is not None:
            if isinstance(item, Refusal):
                await on_loop_thread(self.losses.keep(item.parcel, item.error, True))
            else:
                await on_loop_thread(self._put(item))

    async def log_metrics(self, values: Mapping[str, object], step: int | None) -> None:
        """Queues a step of metrics.

        Raises:
            RunFinishedError: the run has been finished.
            TypeError: the values are no mapping, or the step is no integer.
            ValueError: the step is out of range.
        """
        self._check_running()
        check_mapping("metrics", values)
        if step is not None:
            step = check_step(step)
        elif self.settings.kind == "train" and "step" in values:
            check_step(values["step"])
        line, problems = metrics_line(values, step)
        for problem in problems:
            self.losses.note(problem)
        if self.online:
            await on_loop_thread(self._put(Parcel("metrics", (line,))))

    async def _put(self, parcel: Parcel) -> None:
        if self._ending is not None:  # another thread has just finished it
            await self.losses.keep(parcel, None, False)
            return
        equipment = self._equipped()
        outlet = equipment.metrics if parcel.kind == "metrics" else equipment.records
        await outlet.put(parcel)

    def update_summary(self, values: Mapping[str, Any]) -> None:
        """Adds to the final figures.

        Raises:
            RunFinishedError: the run has been finished.
            ValueError: one has a name that is kept for the SDK.
        """
        self._check_running()
        check_mapping("summary", values)
        if EPISODES_WRITTEN in values:
            raise ValueError(f"summary: {EPISODES_WRITTEN} is written by the SDK itself")
        good, problems = summary_values(values)
        self.summary.update(good)
        for problem in problems:
            self.losses.note(problem)

    def _check_running(self) -> None:
        if self.finished:
            raise RunFinishedError(f"the run {self.id} has been finished, as {self.status}")

    # Ending

    async def flush(self, timeout: float) -> bool:
        """Waits for what was logged so far, and says whether all of it was sent in time."""
        in_time = await on_loop_thread(self._flush(timeout)) if self.online else True
        self._raise_first()
        return in_time and not self.losses.total

    async def _flush(self, timeout: float) -> bool:
        equipment = self._equipment
        if equipment is None:
            return True
        try:
            await asyncio.wait_for(equipment.drained(), timeout)
        except asyncio.TimeoutError:
            return False
        return True

    async def finish(
        self,
        status: Status,
        summary: Mapping[str, Any] | None,
        error: BaseException | str | None,
        timeout: float | None,
    ) -> None:
        """Sends what is left, and reports the end; the first caller's word counts.

        Raises:
            ValueError: a status that is no end, or a timeout that is none.
            Exception: the first failure, where the run is to raise them.
        """
        if status not in TERMINAL:
            raise ValueError(f"status is one of {', '.join(TERMINAL)}, not {status!r}")
        if timeout is not None and not 0 <= timeout < math.inf:
            raise ValueError(f"timeout is a number of seconds from 0 on, not {timeout!r}")
        if summary is not None and not self.finished:
            self.update_summary(summary)
        limit = self.settings.finish_timeout if timeout is None else timeout
        if self.online:
            await on_loop_thread(self._finish(status, error, limit))
        elif not self.finished:
            self.status, self.finished = status, True
        self._raise_first()

    async def end_with_process(self, patience: float) -> None:
        """Finishes the run as crashed; what takes longer to send is kept unsent."""
        patience = max(0.0, patience - REPORT_LEAST)
        asyncio.get_running_loop().call_later(patience, self._hurry)
        error = getattr(sys, "last_value", None) or "the process ended without finishing the run"
        await self._end_after_create("crashed", error, patience, patience)

    def begin_anew(self) -> None:
        """Leaves what is under way to the parent process, in a forked child."""
        self._inherited = True
        self._begin()

    async def _end_after_create(
        self,
        status: Status,
        error: BaseException | str | None,
        timeout: float,
        patience: float | None,
    ) -> None:
        """Finishes the run once its making is over, which is waited for no longer than so."""
        if self._creating is not None:
            await asyncio.wait([self._creating], timeout=patience)
            if not self._creating.done():
                return  # it stays among the open ones, and that is said
        with contextlib.suppress(Exception):
            await self._finish(status, error, timeout)

    async def _finish(
        self, status: Status, error: BaseException | str | None, timeout: float
    ) -> None:
        if self._ending is None:
            if not self.finished:
                self.status, self.finished = status, True
            self._cut = asyncio.Event()
            self._ending = asyncio.ensure_future(self._end(_reason(error), timeout))
        await asyncio.shield(self._ending)

    def _hurry(self) -> None:
        if self._cut is not None:
            self._cut.set()

    async def _end(self, reason: str | None, timeout: float) -> None:
        equipment = self._equipment
        deadline = time.monotonic() + timeout
        try:
            if equipment is not None:
                await self._drain(equipment, timeout)
                await self.losses.settled()
                if not self._inherited:
                    left = max(deadline - time.monotonic(), REPORT_LEAST)
                    await self._report(equipment, reason, min(left, REPORT_PATIENCE))
                self.losses.say_all()
        finally:
            LIVE.discard(self)
            if equipment is not None:
                await equipment.aclose()

    async def _drain(self, equipment: Equipment, timeout: float) -> None:
        assert self._cut is not None
        waits = [asyncio.ensure_future(each) for each in (equipment.drained(), self._cut.wait())]
        await asyncio.wait(waits, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await equipment.stop()

    async def _report(self, equipment: Equipment, reason: str | None, seconds: float) -> None:
        ending = Ending(self.status, reason, self.summary, equipment.traces.episodes_written)
        try:
            await report(lambda: equipment.entry.close(ending), seconds)
        except Exception as error:
            run = {"id": self.id, "name": self.name, "kind": self.settings.kind, "url": self.url}
            await self.losses.keep_end({**run, **vars(ending)}, error)

    def _raise_first(self) -> None:
        if self.settings.on_error == "raise":
            self.losses.raise_first()


def _reason(error: BaseException | str | None) -> str | None:
    if not isinstance(error, BaseException):
        return error
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
