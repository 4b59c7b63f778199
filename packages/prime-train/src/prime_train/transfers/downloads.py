"""Files fetched from a volume, in parts where they are large, and checked before they are kept."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial

from prime_core.concurrency import run_each
from prime_core.errors import APIError, APIResponseError
from prime_core.local_files import SLICE_CHUNK, LocalFailure, close_in_thread, locally
from prime_core.sync import in_thread
from prime_train.errors import VolumeChecksumError, VolumeTransferError
from prime_train.transfers.hashing import (
    base64_of,
    digest,
    goes_in_parts,
    is_md5,
    is_small,
    part_size,
)
from prime_train.transfers.journals import Journal
from prime_train.transfers.landing import Landing, Place, make_folder
from prime_train.transfers.meters import Meter
from prime_train.transfers.store import VolumeStore

__all__ = ["Downloads"]

PARTS_AT_ONCE = 4
_SECONDS = re.compile(r"-?\d{1,12}(\.\d{1,9})?")


@dataclass
class _Known:
    """What is known of a file that is being fetched, or was.

    Attributes:
        inode: of its temporary file.
        parts: those that are in that.
        md5: what the volume says that the file's is.
        mtime: when it was changed, as the volume says it.
        kept: size and time of the file that was kept.
    """

    inode: int = 0
    parts: set[int] = field(default_factory=set)
    md5: str | None = None
    mtime: str | None = None
    kept: tuple[int, int] | None = None


class Downloads:
    """Fetches the files of one get.

    Args:
        store: where from.
        journal: of this get.
        meter: is told of the bytes.
    """

    def __init__(self, store: VolumeStore, journal: Journal, meter: Meter) -> None:
        self._store = store
        self._journal = journal
        self._meter = meter
        self._known: dict[tuple[str, str], _Known] = {}
        for line in journal.lines:
            self._recall(line)

    def _recall(self, line: Mapping[str, object]) -> None:
        known = self._of(str(line.get("key")), str(line.get("etag")))
        match line:
            case {"inode": int(inode)}:
                known.inode = inode
                known.parts = set()
            case {"part": int(part), "md5": str() | None as md5, "mtime": str() | None as mtime}:
                known.parts.add(part)
                known.md5, known.mtime = md5, mtime
            case {"kept": [int(size), int(mtime_ns)]}:
                known.kept = size, mtime_ns

    def _of(self, key: str, etag: str) -> _Known:
        """What is known of this version of an object."""
        return self._known.setdefault((key, etag), _Known())

    async def fetch(self, place: Place) -> None:
        """Fetches a file to its place, or makes an empty folder.

        Raises:
            VolumeChecksumError: it did not arrive as it was stored; nothing of it is kept.
            VolumeTransferError: it is another on the volume meanwhile.
            VolumePathError: something is in its way that was not when the transfer began.
            APIError: any other failure.
        """
        stored = place.download.stored
        if place.download.is_folder:
            await in_thread(make_folder)(place.root, place.parts)
            return
        known = self._of(stored.key, stored.etag)
        if known.kept is not None and await in_thread(_is_there)(place.path, known.kept):
            self._meter.resume(stored.size)
            return
        landing = Landing(place, self._journal.token)
        if is_small(stored.size):
            content = bytearray()

            async def fill(at: int, data: bytearray) -> None:
                content[at:] = data  # an attempt that is repeated begins at 0

            await self._fetch_range(place, known, fill, 0, None)
            await in_thread(self._keep_small)(place, landing, known, content)
            return
        in_parts = goes_in_parts(stored.size)
        leave = landing.discard
        try:
            resumed = await in_thread(landing.open)(stored.size, known.inode if in_parts else 0)
            if in_parts:
                if not resumed:
                    known.parts = set()
                    await in_thread(self._note)(place, {"inode": landing.inode})
                leave = landing.close  # another call goes on with it
                await self._fetch_parts(place, landing, known)
            else:
                await self._fetch_range(place, known, _writing(landing), 0, None)
            leave = landing.discard
            await _check(place, landing, known)
            await in_thread(self._keep)(place, landing, known)
        except BaseException:
            await close_in_thread(leave)
            raise

    def _keep(self, place: Place, landing: Landing, known: _Known) -> None:
        kept = landing.keep(_mtime_ns(known.mtime, place.download.stored.modified))
        self._note(place, {"kept": kept})

    def _keep_small(
        self, place: Place, landing: Landing, known: _Known, content: bytearray
    ) -> None:
        """All that is done with a small file once it has come, in one thread."""
        md5 = hashlib.md5(content, usedforsecurity=False).digest()
        _compare(place, known, md5)
        try:
            landing.open(len(content), 0)
            landing.write(0, content)
            self._keep(place, landing, known)
        finally:
            landing.discard()

    async def _fetch_parts(self, place: Place, landing: Landing, known: _Known) -> None:
        whole = place.download.stored.size
        size = part_size(whole)

        async def fetch(number: int) -> None:
            start = (number - 1) * size
            await self._fetch_range(
                place, known, _writing(landing), start, min(size, whole - start)
            )
            await in_thread(self._note)(
                place, {"part": number, "md5": known.md5, "mtime": known.mtime}
            )

        missing: list[int] = []
        for number in range(1, -(-whole // size) + 1):
            if number in known.parts:
                self._meter.resume(min(size, whole - (number - 1) * size))
            else:
                missing.append(number)
        await run_each(fetch, missing, limit=PARTS_AT_ONCE)

    async def _fetch_range(
        self,
        place: Place,
        known: _Known,
        write: Callable[[int, bytearray], Awaitable[None]],
        start: int,
        size: int | None,
    ) -> None:
        """Fetches a range; without a size the whole.

        Args:
            place: of the file.
            known: learns what the store says of the file.
            write: takes the bytes of an attempt, with their offset.
            start: where the range begins.
            size: its bytes.
        """
        stored = place.download.stored
        end = stored.size if size is None else start + size
        moved = self._meter.part()

        async def receive(chunks: AsyncIterable[bytes], headers: Mapping[str, str]) -> None:
            if size is not None and not headers.get("Content-Range", "").startswith(
                f"bytes {start}-{end - 1}/"
            ):
                raise APIResponseError("The store answered with another range of the file.")
            known.md5 = headers.get("x-amz-meta-md5chksum")
            known.mtime = headers.get("x-amz-meta-mtime")
            at = start
            waiting = bytearray()

            async def flush() -> None:
                nonlocal at, waiting
                await write(at, waiting)
                at += len(waiting)
                waiting = bytearray()
                try:
                    moved(at - start)
                except Exception as error:
                    raise LocalFailure(error) from error

            async for chunk in chunks:
                waiting += chunk
                if at + len(waiting) > end:
                    raise APIResponseError("The store answered with more than the file.")
                if len(waiting) >= SLICE_CHUNK:
                    await flush()
            await flush()
            if at < end:
                raise APIResponseError("The store answered with less than the file.")

        try:
            await self._store.get(stored.key, receive, etag=stored.etag, start=start, size=size)
        except APIError as error:
            if error.status_code in (404, 412):
                raise VolumeTransferError(
                    f"{stored.key!r} changed on the volume while it was fetched"
                ) from error
            raise

    def _note(self, place: Place, facts: Mapping[str, object]) -> None:
        stored = place.download.stored
        self._journal.add({"key": stored.key, "etag": stored.etag, **facts})


def _writing(landing: Landing) -> Callable[[int, bytearray], Awaitable[None]]:
    return partial(locally, landing.write)


async def _check(place: Place, landing: Landing, known: _Known) -> None:
    """Compares what has come with what the volume says of it, where it does."""
    stored = place.download.stored
    if known.md5 is not None or is_md5(stored.etag):
        _compare(place, known, (await digest(landing.path, stored.size, stored.size)).whole)


def _compare(place: Place, known: _Known, md5: bytes) -> None:
    stored = place.download.stored
    if known.md5 is not None:
        expected, actual = known.md5, base64_of(md5)
    elif is_md5(stored.etag):
        expected, actual = stored.etag, md5.hex()
    else:
        return
    if expected != actual:
        raise VolumeChecksumError(stored.key, expected, actual)


def _is_there(path: str, kept: tuple[int, int]) -> bool:
    """Whether the file that an earlier call has kept is as it was."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and (found.st_size, found.st_mtime_ns) == kept


def _mtime_ns(text: str | None, modified: datetime) -> int:
    """When a file was changed: as its metadata say, else when it was stored."""
    if text is not None and _SECONDS.fullmatch(text):
        return int(Decimal(text).scaleb(9))
    return int(modified.timestamp()) * 10**9 + modified.microsecond * 1000
