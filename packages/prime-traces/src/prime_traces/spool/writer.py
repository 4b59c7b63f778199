"""The thread that writes a spool's records: those that come together share one fsync."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal, TypeAlias

from prime_traces.batches import MAX_BATCH_LINES
from prime_traces.errors import SpoolClosedError, SpoolError, SpoolFullError, SpoolWriteError
from prime_traces.spool.folder import SpoolFolder
from prime_traces.spool.framing import Header, framed_size
from prime_traces.spool.segments import DISK_FULL, OpenSegment

__all__ = ["FsyncPolicy", "SegmentWriter"]

FsyncPolicy: TypeAlias = Literal["always", "never"] | float

# Written at once: enough to share an fsync, not so much that the first waits for long.
GROUP_RECORDS = 4096
GROUP_BYTES = 8 * 1024 * 1024
# How often those who wait for room on a full disk try again.
ROOM_INTERVAL = 1.0
CLOSED = "the spool is closed; what it holds is uploaded by the next one in its directory"

_writers: weakref.WeakSet[SegmentWriter] = weakref.WeakSet()


class Append:
    """A record on its way to the disk.

    Args:
        line: the record.
        patient: whether it waits when there is no room for it.

    Attributes:
        done: what its caller awaits, on the caller's loop.
    """

    __slots__ = ("done", "line", "loop", "patient", "taken", "withdrawn")

    def __init__(self, line: bytes, *, patient: bool) -> None:
        self.line = line
        self.patient = patient
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.taken = False
        self.withdrawn = False


class SegmentWriter:
    """Writes records into segments, in a thread of its own.

    Args:
        folder: the spool's directory.
        header: what holds for the records.
        fsync: when they are made to survive a power cut: before an append returns
            (``always``), so many seconds later, or when their segment is sealed (``never``).
        segment_bytes: most bytes of records in a segment; a longer record has its own.
        max_bytes: most bytes of the directory's files, None for no limit.
        changed: called from the thread when there is something new to upload.
    """

    def __init__(
        self,
        folder: SpoolFolder,
        header: Header,
        *,
        fsync: FsyncPolicy,
        segment_bytes: int,
        max_bytes: int | None,
        changed: Callable[[], None],
    ) -> None:
        self._folder = folder
        self._header = header
        self._fsync = fsync
        self._segment_bytes = segment_bytes
        self._max_bytes = max_bytes
        self._changed = changed
        self._queue: queue.SimpleQueue[Append | Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._header_size = framed_size(header.encode())
        self._segment: OpenSegment | None = None
        self._parked: deque[Append] = deque()
        self._settled: list[tuple[Append, SpoolError | None]] = []
        self._unsynced_since: float | None = None
        self._failure: str | None = None
        self._weighed = 0.0
        self.appended = 0
        _writers.add(self)
        self._thread = threading.Thread(target=self._main, name="prime-spool", daemon=True)
        self._thread.start()

    # Called from any thread or loop.

    @property
    def waiting(self) -> tuple[int, int, float | None]:
        """The open segment's records, the bytes of its file and how old its first record is."""
        segment = self._segment
        if segment is None or segment.since is None:
            return 0, 0, None
        return segment.count, segment.size, time.monotonic() - segment.since

    def append(self, line: bytes, *, patient: bool) -> Append:
        """Queues a record for writing.

        Raises:
            SpoolClosedError: the spool is closed.
        """
        work = Append(line, patient=patient)
        with self._lock:
            if self._closed:
                raise SpoolClosedError(CLOSED)
            self._queue.put(work)
        return work

    def withdraw(self, work: Append) -> bool:
        """Takes a record back; False when it is too late, and it is being written."""
        with self._lock:
            work.patient = False
            work.withdrawn = not work.taken
            return work.withdrawn

    def seal(self) -> Future[None]:
        """Seals the open segment, if it holds anything, behind what was appended so far."""
        return self._post(self._seal)

    def make_room(self) -> None:
        """Lets those who wait for room try again."""
        if self._parked:
            self._post(self._unpark)

    def close(self) -> Future[None]:
        """Seals the open segment and ends the thread, behind what was appended so far."""
        return self._post(self._end, last=True)

    def _post(self, job: Callable[[], None], *, last: bool = False) -> Future[None]:
        future: Future[None] = Future()

        def run() -> None:
            try:
                job()
                future.set_result(None)
            except Exception as error:
                future.set_exception(error)

        with self._lock:
            if self._closed:
                future.set_result(None)
            else:
                self._closed = last
                self._queue.put(run)
        return future

    def abandon(self) -> None:
        """Closes a forked child's copies of the files, which the parent writes on."""
        self._folder.abandon()
        if self._segment is not None:
            self._segment.abandon()

    # Called in the thread.

    def _main(self) -> None:
        while not (self._closed and self._queue.empty()):
            try:
                work = self._queue.get(timeout=self._patience())
            except queue.Empty:
                work = self._unpark
            job = self._write_group([work]) if isinstance(work, Append) else work
            self._settle()
            if job is not None:
                job()
                self._settle()
            self._sync_when_due()

    def _patience(self) -> float | None:
        """Seconds until something is to be done without being asked."""
        waits = [ROOM_INTERVAL] if self._parked else []
        if self._unsynced_since is not None and isinstance(self._fsync, float):
            waits.append(max(0.0, self._unsynced_since + self._fsync - time.monotonic()))
        return min(waits, default=None)

    def _write_group(self, group: list[Append]) -> Callable[[], None] | None:
        """Writes a record and those that wait behind it, up to a job, which is returned."""
        size = len(group[0].line)
        job = None
        while len(group) < GROUP_RECORDS and size < GROUP_BYTES:
            try:
                work = self._queue.get_nowait()
            except queue.Empty:
                break
            if not isinstance(work, Append):
                job = work
                break
            group.append(work)
            size += len(work.line)
        self._write(group)
        return job

    def _write(self, group: list[Append]) -> None:
        try:
            self._write_each(group)
        except Exception as error:  # a fault of this program's; nobody must wait for ever
            self._failure = f"the spool failed, and what it holds is for the next one: {error!r}"
            known = {id(work) for work, _ in self._settled} | set(map(id, self._parked))
            failure = SpoolWriteError(self._failure)
            self._settled += [(work, failure) for work in group if id(work) not in known]

    def _write_each(self, group: list[Append]) -> None:
        with self._lock:
            for work in group:
                work.taken = not work.withdrawn
        together: list[Append] = []
        size = body = 0
        for work in group:
            if not work.taken:
                continue
            need = framed_size(work.line)
            if together and not self._fits(body + len(work.line), len(together) + 1):
                self._commit(together)
                together, size, body = [], 0, 0
            try:
                self._prepare(work.line, size + need)
            except (SpoolError, OSError) as error:
                self._commit(together)
                together, size, body = [], 0, 0
                self._refuse([work], error)
                continue
            together.append(work)
            size += need
            body += len(work.line)
        self._commit(together)

    def _fits(self, body: int, count: int) -> bool:
        """Whether so much more goes into the open segment."""
        segment = self._segment
        return (
            segment is not None
            and not segment.closed
            and segment.body + body <= self._segment_bytes
            and segment.count + count <= MAX_BATCH_LINES
        )

    def _prepare(self, line: bytes, size: int) -> None:
        """Makes sure of a segment and of the room for ``size`` bytes that end with a line."""
        if self._failure is not None:
            raise SpoolWriteError(self._failure)
        segment = self._segment
        if segment is not None and (
            segment.closed or (segment.count and not self._fits(len(line), 1))
        ):
            self._seal()
        self._check_room(size)
        if self._segment is None:
            place = self._folder.next_place()
            self._segment = OpenSegment.create(self._folder.path, place, self._header)

    def _check_room(self, size: int) -> None:
        limit = self._max_bytes
        if limit is None or self._used() + size <= limit:
            return
        if time.monotonic() - self._weighed > ROOM_INTERVAL:
            self._folder.weigh_rejected()
            self._weighed = time.monotonic()
        if (used := self._used()) + size > limit:
            raise SpoolFullError(
                f"{self._folder.path} holds {used:,} bytes, and {size:,} more would pass its "
                f"limit of {limit:,}: wait for uploads, or allow it more"
            )

    def _used(self) -> int:
        open_segment = self._segment.size if self._segment else self._header_size
        return self._folder.used + open_segment

    def _commit(self, together: list[Append]) -> None:
        if not together:
            return
        segment = self._segment
        assert segment is not None
        fresh = segment.since is None
        try:
            segment.add([work.line for work in together], sync=self._fsync == "always")
        except OSError as error:
            self._refuse(together, error)
            return
        if self._fsync != "always" and self._unsynced_since is None:
            self._unsynced_since = time.monotonic()
        self.appended += len(together)
        self._settled += [(work, None) for work in together]
        if fresh:
            self._changed()

    def _refuse(self, works: list[Append], error: SpoolError | OSError) -> None:
        """Tells callers that their records were not written, or lets the patient ones wait."""
        cls: type[SpoolError]
        if isinstance(error, SpoolError):
            cls, message = type(error), str(error)
        else:
            cls = SpoolFullError if error.errno in DISK_FULL else SpoolWriteError
            message = f"the record can't be written to {self._folder.path}: {error.strerror}"
        full = cls is SpoolFullError
        if full:
            with contextlib.suppress(OSError):
                self._seal()  # once it is uploaded there is room
        for work in works:
            with self._lock:
                parked = work.patient and full
                work.taken = not parked
            if parked:
                self._parked.append(work)
            else:
                self._settled.append((work, cls(message)))

    def _unpark(self) -> None:
        parked, self._parked = list(self._parked), deque()
        if parked:
            self._write(parked)

    def _seal(self) -> None:
        segment = self._segment
        if segment is not None and segment.count:
            try:
                self._folder.add(segment.seal())
            except FileNotFoundError:
                self._folder.lose(segment.count)
            self._segment = None
            self._unsynced_since = None
            self._changed()
        elif segment is not None and segment.closed:
            segment.discard()
            self._segment = None

    def _end(self) -> None:
        self._unpark()
        self._settled += [(work, SpoolClosedError(CLOSED)) for work in self._parked]
        self._seal()
        if self._segment is not None:
            self._segment.discard()

    def _sync_when_due(self) -> None:
        if self._segment is None or self._patience() != 0.0:
            return
        self._unsynced_since = None
        try:
            self._segment.sync()
        except OSError as error:
            # What the disk took and did not take can't be told apart any more.
            self._failure = (
                f"the disk failed to keep what was appended last to {self._folder.path}: "
                f"{error.strerror}; nothing more is taken. Close this spool and open another"
            )

    def _settle(self) -> None:
        """Tells the callers, with one wake-up for each loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Append, SpoolError | None]]] = {}
        for settled in self._settled:
            by_loop.setdefault(settled[0].loop, []).append(settled)
        self._settled = []
        for loop, settled_there in by_loop.items():
            with contextlib.suppress(RuntimeError):  # it is closed: nobody asks any more
                loop.call_soon_threadsafe(_tell, settled_there)


def _tell(settled: list[tuple[Append, SpoolError | None]]) -> None:
    for work, error in settled:
        if work.done.done():
            continue
        if error is None:
            work.done.set_result(None)
        else:
            work.done.set_exception(error)


def _after_fork_in_child() -> None:
    for writer in list(_writers):
        writer.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
