"""A spool at work: its files, the thread that writes them and the task that uploads them."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import weakref
from concurrent.futures import wait
from dataclasses import dataclass

from prime_core.sync import across, in_thread, loop_thread
from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces.errors import SpoolFullError, SpoolWriteError
from prime_traces.spool.folder import SpoolFolder
from prime_traces.spool.framing import Header, framed_size
from prime_traces.spool.status import SpoolState, SpoolStats
from prime_traces.spool.uploader import SegmentUploader
from prime_traces.spool.writer import FsyncPolicy, SegmentWriter

__all__ = ["SpoolEngine", "SpoolSettings"]

logger = logging.getLogger("prime_traces")

# How long the interpreter's exit waits for uploads to break off.
EXIT_PATIENCE = 2.0
_at_work: weakref.WeakSet[SpoolEngine] = weakref.WeakSet()


@dataclass(frozen=True)
class SpoolSettings:
    """What `AsyncTraceSpool` was told."""

    directory: str
    header: Header
    fsync: FsyncPolicy
    max_bytes: int | None
    segment_bytes: int
    max_delay: float
    compress: bool


class SpoolEngine:
    """An open spool. All but `append` runs on the process's loop thread.

    Args:
        settings: what it was told.
        api: uploads the records; closed with the spool.
        folder: its files.
    """

    def __init__(
        self, settings: SpoolSettings, api: AsyncTracesAPIClient, folder: SpoolFolder
    ) -> None:
        loop = asyncio.get_running_loop()

        def changed() -> None:
            loop.call_soon_threadsafe(self._uploader.wake)

        self._settings = settings
        self._api = api
        self._folder = folder
        self._writer = SegmentWriter(
            folder,
            settings.header,
            fsync=settings.fsync,
            segment_bytes=settings.segment_bytes,
            max_bytes=settings.max_bytes,
            changed=changed,
        )
        self._uploader = SegmentUploader(
            folder, self._writer, api, compress=settings.compress, max_delay=settings.max_delay
        )
        self._uploading = loop.create_task(self._uploader.run())
        self._draining: asyncio.Future[bool] | None = None
        self._lost_before = 0
        self._cut_short = False
        self._closed = False
        _at_work.add(self)

    @classmethod
    async def open(cls, settings: SpoolSettings, api: AsyncTracesAPIClient) -> SpoolEngine:
        """Takes the directory and goes on with what it holds.

        Raises:
            SpoolError: it is in use, or holds what this spool must not upload.
            SpoolWriteError: the disk failed.
        """
        try:
            folder = await in_thread(SpoolFolder)(settings.directory, settings.header.team)
        except OSError as error:
            raise SpoolWriteError(
                f"the spool's directory {settings.directory} can't be used: {error}"
            ) from error
        return cls(settings, api, folder)

    @property
    def stats(self) -> SpoolStats:
        count, size, _ = self._writer.waiting
        uploader = self._uploader
        state: SpoolState = "closed" if self._closed else uploader.state
        return SpoolStats(
            state=state,
            pending=count
            + sum(segment.count for segment in self._folder.segments)
            - uploader.uploaded_of_waiting,
            appended=self._writer.appended,
            uploaded=uploader.uploaded,
            rejected=uploader.rejected,
            disk_bytes=size + self._folder.used,
            error=uploader.error,
            lost=self._folder.lost,
        )

    async def append(self, line: bytes, patience: float) -> None:
        """Writes a record; on any event loop."""
        limit = self._settings.max_bytes
        if limit is not None and framed_size(line) > limit:
            raise SpoolFullError(f"the record has {len(line):,} bytes, and the spool {limit:,}")
        work = self._writer.append(line, patient=patience > 0)
        try:
            if patience > 0:
                await asyncio.wait([work.done], timeout=patience)
                if not work.done.done() and self._writer.withdraw(work):
                    raise SpoolFullError(
                        f"{self._folder.path} had no room for the record for {patience:g} s"
                    )
            await work.done
        except asyncio.CancelledError:
            self._writer.withdraw(work)
            raise

    async def flush(self, timeout: float | None) -> bool:
        """As `AsyncTraceSpool.flush`."""
        loop = asyncio.get_running_loop()
        try:
            deadline = None if timeout is None else loop.time() + timeout
            settled = await self._uploader.settle(deadline)
        except OSError as error:
            raise SpoolWriteError(f"{self._folder.path}: {error}") from error
        before, self._lost_before = self._lost_before, self._folder.lost
        if self._lost_before > before:
            raise SpoolWriteError(
                f"somebody removed {self._lost_before - before} records from {self._folder.path} "
                "before they were uploaded; append them again if they matter"
            )
        return settled

    async def close(self, timeout: float) -> SpoolStats:
        """As `AsyncTraceSpool.aclose`; it always lets go of the directory."""
        try:
            await across(self._writer.close())
            await self._drain(timeout)
        except OSError as error:
            logger.warning("The last segment is sealed when the spool is next opened: %s", error)
        finally:
            await self._stop()
            await in_thread(self._folder.close)()
            await self._api.aclose()
            self._closed = True
        self._say_left()
        return self.stats

    async def _stop(self) -> None:
        _at_work.discard(self)
        self._uploading.cancel()
        await asyncio.wait([self._uploading])

    def _say_left(self) -> None:
        stats = self.stats
        if stats.pending:
            logger.warning(
                "%d records stay in %s until a spool is opened there again%s",
                stats.pending,
                self._folder.path,
                f": {stats.error}" if stats.error else ".",
            )

    async def forget(self) -> None:
        """Ends it at the interpreter's exit, which lets go of the directory."""
        await self._stop()
        self._say_left()

    async def _drain(self, timeout: float) -> None:
        if self._cut_short:
            return
        self._draining = asyncio.ensure_future(self.flush(timeout))
        await asyncio.wait([self._draining])
        if not self._draining.cancelled():
            self._draining.exception()  # why records stay is said at the end

    async def cut_short(self) -> None:
        """Has `close` leave what is not uploaded yet."""
        self._cut_short = True
        if self._draining is not None:
            self._draining.cancel()


def _stop_at_exit() -> None:
    """Ends uploads before the connections under them are closed."""
    if _at_work:
        stops = [loop_thread().submit(engine.forget()) for engine in list(_at_work)]
        wait(stops, timeout=EXIT_PATIENCE)


# Registered behind the core's handler, which closes the connections, it runs before it.
atexit.register(_stop_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_at_work.clear)
