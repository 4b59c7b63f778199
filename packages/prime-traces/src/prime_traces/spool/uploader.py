"""Brings sealed segments to the platform, one after the other, for as long as it takes."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prime_core.deadlines import timeout_at
from prime_core.errors import (
    APIError,
    APIResponseError,
    BadRequestError,
    ConfigurationError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    PrimeError,
    QuotaExceededError,
    UnauthorizedError,
    ValidationError,
    rebuilt,
)
from prime_core.sync import across, in_thread
from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces.errors import SpoolFullError
from prime_traces.spool.folder import Reason, SpoolFolder
from prime_traces.spool.framing import Header
from prime_traces.spool.rejections import Cut, cut_for
from prime_traces.spool.segments import DISK_FULL, Content, Segment, lines_digest
from prime_traces.spool.status import SpoolState
from prime_traces.spool.writer import ROOM_INTERVAL, SegmentWriter

__all__ = ["SegmentUploader"]

logger = logging.getLogger("prime_traces")

T = TypeVar("T")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
# The most that the platform can ask for.
LONGEST_ASKED = 3600.0
# What the platform refuses for a reason that somebody has to remove.
_REFUSALS = (
    BadRequestError,
    ConfigurationError,
    ForbiddenError,
    NotFoundError,
    PaymentRequiredError,
    QuotaExceededError,
    UnauthorizedError,
    ValidationError,
)


DAMAGED = "damaged_on_disk"


@dataclass(frozen=True)
class _HeldBack:
    """What is left of a segment once its good records were uploaded."""

    header: Header | None
    rejected: Sequence[memoryview]
    reason: Reason
    uploaded: int


class SegmentUploader:
    """Uploads segments in their order, on the event loop that it is made on.

    One at a time: of two records with one id the later must arrive last, since it is the one
    that is read from then on.

    Args:
        folder: where they are.
        writer: seals what has waited long enough.
        api: uploads them.
        compress: whether they travel as gzip.
        max_delay: seconds that a record waits for others while nothing else is uploaded.
    """

    def __init__(
        self,
        folder: SpoolFolder,
        writer: SegmentWriter,
        api: AsyncTracesAPIClient,
        *,
        compress: bool,
        max_delay: float,
    ) -> None:
        self._folder = folder
        self._writer = writer
        self._api = api
        self._compress = compress
        self._max_delay = max_delay
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self._busy = False
        self._failures = 0
        self._refusals = 0
        self._held_back: dict[Segment, _HeldBack] = {}
        self.error: Exception | None = None
        self.uploaded = 0
        self.rejected = 0

    @property
    def state(self) -> SpoolState:
        if self.error is not None:
            return "paused" if isinstance(self.error, _REFUSALS) else "retrying"
        return "uploading" if self._busy else "idle"

    @property
    def uploaded_of_waiting(self) -> int:
        """Records of segments on disk that the platform has all the same."""
        return sum(held.uploaded for held in self._held_back.values())

    def wake(self) -> None:
        """There may be something to upload."""
        self._wake.set()

    async def run(self) -> None:
        """Uploads until it is cancelled."""
        while True:
            try:
                segment = await self._next()
                self._busy = True
                await self._deliver(segment)
            except Exception as error:
                await self._pause(error)
            else:
                self._failures, self.error = 0, None
            finally:
                self._busy = False
            self._tell()

    async def settle(self, deadline: float | None) -> bool:
        """Waits until all that was appended so far is uploaded.

        Args:
            deadline: loop time, None for none.

        Returns:
            Whether it is; False when the deadline came first.

        Raises:
            PrimeError: the platform refuses the account, and did so again meanwhile.
            OSError: the open segment can't be sealed.
        """
        await across(self._writer.seal())
        last = self._folder.last
        refusals = self._refusals
        self._hurry.set()
        try:
            while any(segment.place[0] <= last for segment in self._folder.segments):
                if self._refusals > refusals and isinstance(self.error, PrimeError):
                    raise rebuilt(type(self.error), self.error)
                news = self._news
                async with timeout_at(deadline):
                    await news.wait()
        except asyncio.TimeoutError:
            return False
        return True

    async def _next(self) -> Segment:
        """The first segment, once there is one."""
        while True:
            self._wake.clear()
            segments = self._folder.segments
            for segment in segments:
                if segment not in self._held_back:
                    return segment
            _, _, age = self._writer.waiting
            if age is not None and age >= self._max_delay:
                await across(self._writer.seal())
                continue
            if segments:
                return segments[0]
            loop = asyncio.get_running_loop()
            try:
                async with timeout_at(None if age is None else loop.time() + self._max_delay - age):
                    await self._wake.wait()
            except asyncio.TimeoutError:
                pass

    async def _deliver(self, segment: Segment) -> None:
        if segment in self._held_back:
            await self._set_aside(segment)
            return
        try:
            content = await _on_disk(lambda: self._folder.read(segment))
        except FileNotFoundError:
            self._folder.lose(segment.count)
            await _on_disk(lambda: self._folder.remove(segment))
            return
        header, lines = content.header, content.lines
        if header is None or not content.whole:
            await self._save(segment, content)
            return
        try:
            await self._upload(header, lines, segment.digest)
        except APIError as error:
            cut = cut_for(error, segment.count)
            if cut is None:
                raise
            await self._divide(segment, header, lines, cut, _reason(error))
            return
        await _on_disk(lambda: self._folder.remove(segment))
        self.uploaded += segment.count
        self._writer.make_room()

    async def _upload(self, header: Header, lines: Sequence[memoryview], digest: str) -> None:
        receipt = await self._api.upload_batch(
            await in_thread(b"".join)(lines),
            f"sha256:{digest}",
            line_format=header.line_format,
            schema_version=header.schema_version,
            context=header.context,
            compress=self._compress,
        )
        if receipt.upload_id != digest:
            raise APIResponseError(
                f"the answer is the receipt of another upload, {receipt.upload_id!r}"
            )

    async def _save(self, segment: Segment, content: Content) -> None:
        """Divides a segment that the disk changed: what is intact is uploaded."""
        lines = [*content.lines, *content.damaged]
        good = len(content.lines) if content.header is not None else 0
        lost = max(segment.count, len(lines)) - good
        if good == len(lines):  # nothing is left of the others, but why is said all the same
            lines.append(memoryview(b""))
        cut = Cut((range(good),) if good else (), range(good, len(lines)))
        reason = Reason(DAMAGED, f"the disk changed or lost {lost} of {segment.count} records")
        await self._divide(segment, content.header, lines, cut, reason)

    async def _divide(
        self,
        segment: Segment,
        header: Header | None,
        lines: Sequence[memoryview],
        cut: Cut,
        reason: Reason,
    ) -> None:
        """Puts smaller segments in the place of one; without room on disk it uploads them."""
        groups = [[lines[index] for index in group] for group in cut.groups]
        rejected = [lines[index] for index in cut.rejected]
        try:
            await _on_disk(lambda: self._folder.cut(segment, header, groups, rejected, reason))
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
        else:
            self._say_rejected(segment, segment.count - sum(map(len, groups)), reason)
            return
        if header is not None:
            groups, more, reason = await self._upload_groups(header, groups, reason)
            rejected += more
        uploaded = sum(map(len, groups))
        self.uploaded += uploaded
        self._held_back[segment] = _HeldBack(header, rejected, reason, uploaded)
        await self._set_aside(segment)

    async def _upload_groups(
        self, header: Header, waiting: list[list[memoryview]], reason: Reason
    ) -> tuple[list[list[memoryview]], list[memoryview], Reason]:
        """Uploads records in groups that are not on disk as such.

        Should the process end meanwhile, the whole segment is refused and divided anew in the same
        way: what is stored already is sent under the same keys.

        Returns:
            The groups that were uploaded, the lines that were refused, and why.
        """
        uploaded: list[list[memoryview]] = []
        rejected: list[memoryview] = []
        while waiting:
            group, *waiting = waiting
            try:
                await self._upload(header, group, await in_thread(lines_digest)(group))
            except APIError as error:
                cut = cut_for(error, len(group))
                if cut is None:
                    raise
                waiting[:0] = [[group[index] for index in part] for part in cut.groups]
                rejected += [group[index] for index in cut.rejected]
                if cut.rejected:
                    reason = _reason(error)
            else:
                uploaded.append(group)
        return uploaded, rejected, reason

    async def _set_aside(self, segment: Segment) -> None:
        """Sets the refused records aside of a segment whose others are uploaded.

        Raises:
            SpoolFullError: there is no room for them; other segments may go first.
        """
        held = self._held_back[segment]
        try:
            await _on_disk(
                lambda: self._folder.cut(segment, held.header, (), held.rejected, held.reason)
            )
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise
            raise SpoolFullError(
                f"{self._folder.path} has no room to set {segment.count - held.uploaded} refused "
                f"records aside ({held.reason.message}): make some; all others go on"
            ) from error
        del self._held_back[segment]
        self._say_rejected(segment, segment.count - held.uploaded, held.reason)
        self._writer.make_room()

    def _say_rejected(self, segment: Segment, count: int, reason: Reason) -> None:
        if count:
            self.rejected += count
            logger.warning(
                "%d spooled records can't be uploaded and are now in %s/rejected/%s.jsonl: %s (%s)",
                count,
                self._folder.path,
                segment.place,
                reason.message,
                reason.code,
            )

    async def _pause(self, error: Exception) -> None:
        """Waits after a failure, or until it is asked to try now."""
        if self.error is None or type(self.error) is not type(error):
            logger.warning(
                "Spooled records in %s stay there for now: %s: %s",
                self._folder.path,
                type(error).__name__,
                error,
            )
        self.error = error
        if isinstance(error, _REFUSALS):
            self._refusals += 1
            pause = LONGEST_PAUSE
        elif isinstance(error, SpoolFullError):
            pause = ROOM_INTERVAL
        else:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
            pause *= random.uniform(0.5, 1.0)
        self._failures += 1
        asked = getattr(error, "retry_after", None)
        self._tell()
        if asked is not None:
            await asyncio.sleep(min(max(pause, asked), LONGEST_ASKED))
            return
        self._hurry.clear()
        try:
            async with timeout_at(asyncio.get_running_loop().time() + pause):
                await self._hurry.wait()
        except asyncio.TimeoutError:
            pass

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


def _reason(error: APIError) -> Reason:
    return Reason(error.code, str(error.args[0]) if error.args else "")


async def _on_disk(work: Callable[[], T]) -> T:
    """Does something in a thread; a cancellation waits for its end.

    The directory's lock must not be given up while a thread changes its files.
    """
    task = asyncio.ensure_future(in_thread(work)())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # what was done is seen when the spool is next opened
        raise
