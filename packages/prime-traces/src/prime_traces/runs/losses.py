"""What went wrong with a run: kept on disk, counted, and said."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prime_traces.runs.background import off_loop
from prime_traces.runs.errors import RecordsUnsentError
from prime_traces.runs.parcels import Parcel
from prime_traces.runs.unsent import UPLOADABLE, UnsentRecords

__all__ = ["Losses"]

logger = logging.getLogger("prime_traces")

KEPT_ERRORS = 100
LOG_INTERVAL = 30.0


class Losses:
    """Failures of a run; the counters may be read from any thread.

    Attributes:
        errors: the first 100 of them.
        unsent: records that could not be sent and are kept on disk.
        rejected: records that the platform refused, or that JSON has no form for; on disk too.
        dropped: records that could be neither sent nor kept.
        folder: where they are kept; None as long as there are none.
    """

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.unsent = 0
        self.rejected = 0
        self.dropped = 0
        self.folder: Path | None = None
        self._raised = False
        self._said = -LOG_INTERVAL
        self._said_lost = -LOG_INTERVAL
        self._late: RecordsUnsentError | None = None
        self._written: set[str] = set()
        self._files: UnsentRecords | None = None
        self._run = ""
        self._writes: set[asyncio.Task[None]] = set()

    def keep_in(self, files: UnsentRecords, run_id: str) -> None:
        """Names the run and its folder."""
        self._files = files
        self._run = run_id
        self._writes = set()
        self._written = set()

    @property
    def total(self) -> int:
        """Records that are not at the platform."""
        return self.unsent + self.rejected + self.dropped

    def note(self, error: Exception) -> None:
        """Counts a failure in, without the frames of its traceback: they hold what was sent."""
        part: BaseException | None = error
        while part is not None:
            part.__traceback__ = None
            part = part.__cause__ or part.__context__
        known = any(error is each for each in self.errors)
        if not known and len(self.errors) < KEPT_ERRORS:
            self.errors.append(error)

    def raise_first(self) -> None:
        """Raises the first failure, once.

        Raises:
            Exception: the first failure.
        """
        if self.errors and not self._raised:
            self._raised = True
            raise self.errors[0]

    async def keep(self, parcel: Parcel, error: Exception | None, rejected: bool) -> None:
        """Writes a parcel to disk; a cancellation of the caller does not cut that short."""
        if error is None:
            self._late = self._late or RecordsUnsentError(
                f"What the run {self._run} has logged was not all sent in time: the platform takes "
                "it too slowly, or not at all; what was not is kept on disk."
            )
            error = self._late
        self.note(error)
        task = asyncio.ensure_future(self._write(parcel, error, rejected))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        await asyncio.shield(task)

    async def settled(self) -> None:
        """Waits until everything that is to be kept is on disk."""
        if self._writes:
            await asyncio.wait(list(self._writes))

    async def keep_end(self, end: Mapping[str, Any], error: Exception) -> None:
        """Writes down how a run ended, since the platform could not be told."""
        assert self._files is not None
        self.note(error)
        try:
            path = await off_loop(self._files.write_end, end)
        except OSError as failure:
            logger.error(
                "The end of the run %s could not be reported (%s), nor written down: %s",
                self._run,
                error,
                failure,
            )
            return
        self.folder = path.parent
        logger.warning(
            "The end of the run %s could not be reported; it is written down in %s: %s",
            self._run,
            path,
            error,
        )

    def say_all(self) -> None:
        """Says, at the end of the run, what is not at the platform."""
        if self.total:
            logger.warning(
                "Of the run %s, %d records were not sent, %d were refused and %d were lost.%s",
                self._run,
                self.unsent,
                self.rejected,
                self.dropped,
                self._advice(),
            )

    def _advice(self) -> str:
        if not self._written:
            return ""
        files = sorted(self._written)
        advice = f" What is left of them is in {self.folder}: {', '.join(files)}."
        later = [name for name in files if name in UPLOADABLE]
        if later:
            advice += f" TracesClient.upload_file sends {' and '.join(later)}."
        return advice

    async def _write(self, parcel: Parcel, error: Exception, rejected: bool) -> None:
        files = self._files
        assert files is not None
        count = len(parcel.lines)
        try:
            path = await off_loop(lambda: files.write(parcel, rejected=rejected))
        except OSError as failure:
            self.dropped += count
            self.note(failure)
            self._say_lost(failure)
            return
        if rejected:
            self.rejected += count
        else:
            self.unsent += count
        self.folder = path.parent
        self._written.add(path.name)
        self._say(path, count, error, rejected)

    def _say_lost(self, failure: OSError) -> None:
        now = time.monotonic()
        if now - self._said_lost < LOG_INTERVAL:
            return
        self._said_lost = now
        logger.error(
            "%d records of the run %s are lost so far: they could not be sent, nor written to "
            "disk: %s",
            self.dropped,
            self._run,
            failure,
        )

    def _say(self, path: Path, count: int, error: Exception, rejected: bool) -> None:
        now = time.monotonic()
        if now - self._said < LOG_INTERVAL:
            return
        self._said = now
        logger.warning(
            "%d records of the run %s were %s and are kept in %s: %s",
            count,
            self._run,
            "refused" if rejected else "not sent",
            path,
            error,
        )
