"""The life of one build: its states, its upload, its time limit and its end."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from prime_local.clock import PlatformClock, Timer
from prime_local.errors import PlatformError
from prime_local.images import dockerfile
from prime_local.images.context import ContextError, read_dockerfile, unpack
from prime_local.images.dockerfile import DockerfileError
from prime_local.images.kitchen import BuildFailure, BuildLog, Kitchen
from prime_local.images.record import Build, BuildStatus, Content
from prime_local.images.references import Source
from prime_local.sandboxes.isolation.view import SEARCH_PATH
from prime_local.sandboxes.removal import remove_tree
from prime_local.tasks import TaskSet

UPLOAD_SECONDS = 600
_MOST_SECONDS = 1800.0
_MOST_UPLOAD_BYTES = 2 * 1024**3
_MESSAGE_BYTES = 4096


@dataclass(frozen=True)
class BuildHost:
    """What builds share.

    Args:
        folder: for uploads and contexts; nothing in it outlives its build.
        seconds: how long a build takes at least, on the platform clock.
        base: returns the content of the image that a reference names, None when there is none.
        hold: keeps the files of a content while they are copied.
        on_change: told whenever a record has changed.
        on_built: told what a build has made.
    """

    clock: PlatformClock
    tasks: TaskSet
    kitchen: Kitchen
    folder: Path
    seconds: float
    base: Callable[[str], Content | None]
    hold: Callable[[Content], AbstractContextManager[None]]
    on_change: Callable[[Build], None]
    on_built: Callable[[Build, Content], None]


class BuildLife:
    """Carries a build from PENDING to a final state. Only this class changes the record.

    A Dockerfile build waits for its context, and is CANCELLED when the time for that is over. A
    build of a source begins at once.
    """

    def __init__(self, record: Build, host: BuildHost) -> None:
        self.record = record
        self.signature = secrets.token_hex(16)
        self._host = host
        self._folder = host.folder / record.id
        self._uploaded = False
        self._uploads = 0
        self._expires = host.clock.now() + UPLOAD_SECONDS
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = threading.Event()
        self._ready = asyncio.Event()
        self._log = BuildLog()

    def begin(self) -> None:
        """Start on the way; to be called once."""
        clock = self._host.clock
        if self.record.source is not None:
            self._timer = clock.call_later(0, self._build)
        else:
            self._timer = clock.call_later(UPLOAD_SECONDS, self._expire)
        self._host.on_change(self.record)

    async def upload(self, signature: str, pieces: AsyncIterator[bytes]) -> None:
        """Take a context, in place of an earlier one.

        Raises:
            PlatformError: 403 when the URL is wrong or has expired, 413.
        """
        waiting = self.record.status in (BuildStatus.PENDING, BuildStatus.UPLOADING)
        late = self._host.clock.now() >= self._expires
        if self.record.source or not waiting or late or signature != self.signature:
            raise PlatformError(403, "The URL has expired, or is wrong")
        self._enter(BuildStatus.UPLOADING)
        self._uploads += 1
        part = self._folder / f"part-{self._uploads}"
        try:
            await asyncio.to_thread(part.parent.mkdir, parents=True, exist_ok=True)
            await _write(part, pieces)
            if self.record.status is BuildStatus.UPLOADING:
                await asyncio.to_thread(part.replace, self._archive)
                self._uploaded = True
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def start(self) -> None:
        """Begin to build what was uploaded.

        Raises:
            PlatformError: 409 when nothing was, or when it has begun or ended.
        """
        if self.record.status not in (BuildStatus.PENDING, BuildStatus.UPLOADING):
            raise PlatformError(409, f"The build is {self.record.status.value} already")
        if not self._uploaded:
            raise PlatformError(409, "The build context has not been uploaded")
        self._build()

    def end(self, status: BuildStatus, message: str | None = None) -> None:
        """Move to a final state at once; what runs is ended in the background."""
        if self.record.status.final:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.record.error_message = message
        self.record.completed_at = self._host.clock.date()
        self._enter(status)
        self._stop.set()
        if self._task is None:
            self._host.tasks.start(self._remove())
        elif asyncio.current_task() is not self._task:
            self._task.cancel()

    async def gone(self) -> None:
        """Wait until an ended build runs no more."""
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def _archive(self) -> Path:
        return self._folder / "context.tar.gz"

    def _enter(self, status: BuildStatus) -> None:
        self.record.status = status
        self._host.on_change(self.record)

    def _expire(self) -> None:
        self.end(BuildStatus.CANCELLED, "The build context was not uploaded in time")

    def _time_out(self) -> None:
        self._fail(f"The build took more than {_MOST_SECONDS:g} s")

    def _fail(self, why: str) -> None:
        self._log.line(f"ERROR: {why}")
        self.end(BuildStatus.FAILED, self._log.tail(_MESSAGE_BYTES))

    def _build(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.record.started_at = self._host.clock.date()
        self._enter(BuildStatus.BUILDING)
        # From now on, and not from when the task first runs: the clock may be advanced before.
        self._host.clock.call_later(self._host.seconds, self._ready.set)
        self._timer = self._host.clock.call_later(_MOST_SECONDS, self._time_out)
        self._task = self._host.tasks.start(self._run())

    async def _run(self) -> None:
        try:
            content = await self._make()
            await self._ready.wait()
        except (BuildFailure, ContextError, DockerfileError) as error:
            self._fail(str(error))
        else:
            self._host.on_built(self.record, content)
            self.end(BuildStatus.COMPLETED)
        finally:
            await asyncio.shield(self._remove())

    async def _make(self) -> Content:
        if self.record.source is not None:
            if not Source(self.record.source).exists:
                raise BuildFailure(f"Failed to pull image {self.record.source}")
            return Content()
        context = self._folder / "context"
        await self._unpack(context)
        text = await asyncio.to_thread(read_dockerfile, context, self.record.dockerfile_path)
        reference = dockerfile.base_of(text)
        base = self._host.base(reference)
        if base is None:
            raise BuildFailure(f"FROM {reference}: there is no such image here")
        kitchen = self._host.kitchen
        plan = dockerfile.plan(text, base.settings, SEARCH_PATH)
        with self._host.hold(base):
            return await kitchen.cook(self.record.id, plan, base, context, self._log)

    async def _unpack(self, context: Path) -> None:
        loop = asyncio.get_running_loop()
        unpacking = loop.run_in_executor(None, unpack, self._archive, context, self._stop)
        # It sees that the build has ended; what it writes until then must be there to be deleted.
        unpacking.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.shield(unpacking)
        except asyncio.CancelledError:
            await asyncio.wait({unpacking})
            raise

    async def _remove(self) -> None:
        await asyncio.to_thread(remove_tree, self._folder)


async def _write(path: Path, pieces: AsyncIterator[bytes]) -> None:
    """Write what arrives into a new file.

    Raises:
        PlatformError: 413.
    """
    size = 0
    file = await asyncio.to_thread(path.open, "wb")
    try:
        async for piece in pieces:
            size += len(piece)
            if size > _MOST_UPLOAD_BYTES:
                raise PlatformError(413, "The build context is too large")
            await asyncio.to_thread(file.write, piece)
    finally:
        await asyncio.to_thread(file.close)
