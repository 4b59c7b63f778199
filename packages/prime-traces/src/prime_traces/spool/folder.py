"""A spool's directory: what waits in it, how much it takes, and how it comes to after a crash."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import threading
import time
from bisect import insort
from collections.abc import Sequence, Set
from dataclasses import dataclass

from prime_traces.errors import SpoolError
from prime_traces.spool.framing import Header, read_header, scan
from prime_traces.spool.lock import FolderLock
from prime_traces.spool.segments import (
    Content,
    OpenSegment,
    Place,
    Segment,
    read_sealed,
    sync_folder,
    write_file,
    write_sealed,
)

__all__ = ["Reason", "SpoolFolder"]

logger = logging.getLogger("prime_traces")

_OPEN = re.compile(r"\d{10}\.open")


@dataclass(frozen=True)
class Reason:
    """Why the platform refused records.

    Attributes:
        code: the platform's code, None without one.
        message: its words.
    """

    code: str | None
    message: str


class SpoolFolder:
    """The files of one spool. All methods block; each may be called from any thread.

    Args:
        path: the directory, made if missing.
        team: id of the team that the client sends for, empty for none.

    Raises:
        SpoolLockedError: another process uses it.
        SpoolError: another version wrote it, or it holds another team's records.
        OSError: it can't be used.
    """

    def __init__(self, path: str, team: str) -> None:
        self.path = path
        self._rejects = os.path.join(path, "rejected")
        os.makedirs(self._rejects, mode=0o700, exist_ok=True)
        self._lock = threading.Lock()
        self._segments: list[Segment] = []
        self._rejected_bytes = 0
        self._lost = 0
        self._last = 0
        self._folder_lock = FolderLock(path)
        try:
            self._recover(team)
        except BaseException:
            self._folder_lock.release()
            raise

    def close(self) -> None:
        """Lets go of the directory."""
        self._folder_lock.release()

    def abandon(self) -> None:
        """Lets go of a forked child's part in it."""
        self._folder_lock.abandon()

    @property
    def used(self) -> int:
        """Bytes of all its files, without the open segment."""
        with self._lock:
            return sum(segment.size for segment in self._segments) + self._rejected_bytes

    @property
    def segments(self) -> list[Segment]:
        """The sealed segments in their order."""
        with self._lock:
            return list(self._segments)

    @property
    def last(self) -> int:
        """The number of the newest place."""
        return self._last

    @property
    def lost(self) -> int:
        """Records whose files somebody removed before they were uploaded."""
        return self._lost

    def lose(self, count: int) -> None:
        """Takes note of such records."""
        logger.error("Somebody removed %d records from %s that were not uploaded", count, self.path)
        with self._lock:
            self._lost += count

    def next_place(self) -> Place:
        """A place behind all others."""
        with self._lock:
            self._last += 1
            return Place([self._last])

    def add(self, segment: Segment) -> None:
        """Takes note of a segment that has been sealed."""
        with self._lock:
            insort(self._segments, segment)

    def read(self, segment: Segment) -> Content:
        """As `read_sealed`."""
        return read_sealed(self.path, segment)

    def remove(self, segment: Segment) -> None:
        """Removes a segment that the platform has.

        Should the removal not survive a power cut, it is sent again, under the same key.
        """
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, segment.name))
        self._drop(segment)

    def _drop(self, segment: Segment) -> None:
        with self._lock:
            self._segments.remove(segment)

    def cut(
        self,
        segment: Segment,
        header: Header | None,
        groups: Sequence[Sequence[memoryview]],
        rejected: Sequence[memoryview],
        reason: Reason,
    ) -> None:
        """Puts smaller segments in the place of one that can't be uploaded whole.

        A crash leaves either the one or the others, whose names are on disk before the first
        of them can be sent.

        Args:
            segment: that one.
            header: its header, if that is known.
            groups: the lines of each new one, in order.
            rejected: lines to be set aside.
            reason: why.

        Raises:
            OSError: it can't be done now; it can be tried again.
        """
        try:
            parts = []
            for number, lines in enumerate(groups, 1):
                assert header is not None
                parts.append(write_sealed(self.path, segment.place.part(number), header, lines))
            if rejected:
                self._set_aside(segment.place, header, rejected, reason)
            sync_folder(self.path)
        except OSError:
            with contextlib.suppress(OSError):  # it takes space, of which there may be none
                self._undo({segment.place})
            raise
        with contextlib.suppress(FileNotFoundError):  # when this is tried again
            os.unlink(os.path.join(self.path, segment.name))
        # Were the whole one there again after a power cut, its parts would be removed, though
        # one might have been sent.
        sync_folder(self.path)
        self._drop(segment)
        for part in parts:
            self.add(part)

    def _set_aside(
        self, place: Place, header: Header | None, lines: Sequence[memoryview], reason: Reason
    ) -> None:
        why = {
            "code": reason.code,
            "message": reason.message,
            "line_format": header and header.line_format,
            "schema_version": header and header.schema_version,
            "context": header and dict(header.context),
            "rejected_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        explanation = json.dumps(why, ensure_ascii=False, indent=2).encode() + b"\n"
        write_file(os.path.join(self._rejects, f"{place}.json"), explanation)
        write_file(os.path.join(self._rejects, f"{place}.jsonl"), _as_lines(lines))
        sync_folder(self._rejects)
        self.weigh_rejected()

    def weigh_rejected(self) -> None:
        """Looks how much the records take that were set aside; their owner may remove them."""
        with os.scandir(self._rejects) as entries:
            sizes = [entry.stat().st_size for entry in entries]
        with self._lock:
            self._rejected_bytes = sum(sizes)

    def _undo(self, places: Set[Place]) -> None:
        """Removes what was made of segments that still exist."""
        for name in os.listdir(self.path):
            found = Segment.parse(name, 0)
            if found and not places.isdisjoint(found.place.wholes):
                os.unlink(os.path.join(self.path, name))
        stems = set(map(str, places))
        for name in os.listdir(self._rejects):
            stem, _, ending = name.partition(".")
            if ending in ("json", "jsonl") and stem in stems:
                os.unlink(os.path.join(self._rejects, name))

    # What follows runs once, when the spool is opened.

    def _recover(self, team: str) -> None:
        segments = filter(None, (Segment.parse(name, 0) for name in os.listdir(self.path)))
        self._undo({segment.place for segment in segments})
        for name in sorted(os.listdir(self.path)):
            if _OPEN.fullmatch(name):
                self._seal_left(Place.parse(name.removesuffix(".open")))
            elif segment := Segment.parse(name, os.path.getsize(os.path.join(self.path, name))):
                self.add(segment)
            elif name.endswith((".open", ".sealed")):
                logger.warning("%s is no file of a spool's, and is left alone", name)
        places = [segment.place[0] for segment in self._segments]
        # The numbers of what is set aside are not given again: the names would be the same.
        places += map(int, filter(str.isdigit, (name[:10] for name in os.listdir(self._rejects))))
        self._last = max(places, default=0)
        self.weigh_rejected()
        for segment in self._segments:
            self._check(segment, team)

    def _seal_left(self, place: Place) -> None:
        """Seals the segment that a crash left open, without its torn end."""
        path = os.path.join(self.path, f"{place}.open")
        with open(path, "rb") as file:
            data = file.read()
        found = scan(data)
        if found.end < len(data):
            self._keep_torn(place, data[found.end :])
        if found.lines or found.damaged:
            self.add(OpenSegment.left(self.path, place, found).seal())
        else:
            os.unlink(path)

    def _keep_torn(self, place: Place, data: bytes) -> None:
        path = os.path.join(self._rejects, f"{place}.torn")
        logger.warning(
            "The end of %s is torn: no append had returned for it, or the disk is damaged. Its "
            "%d bytes are kept in %s.",
            os.path.join(self.path, f"{place}.open"),
            len(data),
            path,
        )
        with contextlib.suppress(OSError):  # a full disk is no reason to send nothing any more
            write_file(path, data)

    def _check(self, segment: Segment, team: str) -> None:
        with open(os.path.join(self.path, segment.name), "rb") as file:
            header = read_header(file)
        if header is not None and header.team != team:
            raise SpoolError(
                f"{self.path} holds records that were spooled for {_whose(header.team)}, and the "
                f"client sends for {_whose(team)}: upload them with a client of theirs first, or "
                "use another directory"
            )


def _as_lines(lines: Sequence[memoryview]) -> bytes:
    """One behind the other; a damaged one may have lost its line feed."""
    return b"".join(b"%b\n" % bytes(line).removesuffix(b"\n") for line in lines if line)


def _whose(team: str) -> str:
    return f"the team {team!r}" if team else "no team"
