"""Where fetched files land: no link is followed, and a file takes its place when it is whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.errors import VolumePathError
from prime_train.transfers.planning import DownloadPlan, PlannedDownload

__all__ = ["Landing", "Place", "make_folder", "places"]


@dataclass(frozen=True)
class Place:
    """Where an object goes.

    Attributes:
        download: the object.
        root: what the caller named.
        parts: names below that; none for a file that takes the root's place.
    """

    download: PlannedDownload
    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """Its path here."""
        return os.path.join(self.root, *self.parts)

    @property
    def key(self) -> str:
        """Its path on the volume."""
        return self.download.stored.key


def places(plan: DownloadPlan, destination: str | os.PathLike[str]) -> tuple[str, Sequence[Place]]:
    """Gives each object its place, and looks whether it can go there. Runs in a thread.

    Returns:
        What the caller named, absolute, and the places.

    Raises:
        VolumePathError: a link is in the way, or a folder where a file goes, or a file where a
            folder goes.
    """
    text = os.fspath(destination)
    if not isinstance(text, str):
        raise TypeError(f"destination is a path as a string, not {type(text).__name__}")
    if not text:
        raise VolumePathError("destination is empty: name a file or a folder")
    whole = os.path.abspath(text)
    # What leads to the destination is the caller's own; the destination is checked.
    root = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
    inside = not plan.is_file or text[-1] in (os.sep, os.altsep) or os.path.isdir(root)
    found = [Place(download, root, download.parts if inside else ()) for download in plan.downloads]
    known: set[str] = set()
    for place in found:
        _check(place, known)
    return root, found


def _check(place: Place, known: set[str]) -> None:
    """Looks at what is there already, from the root on.

    Args:
        place: which.
        known: folders that were looked at.
    """
    path = place.root
    for part in (*place.parts, None):
        is_last = part is None
        if path not in known:
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                return
            if stat.S_ISLNK(mode):
                raise VolumePathError(f"{path!r} is a symbolic link, which is not written through")
            wants_folder = not is_last or place.download.is_folder
            if wants_folder and not stat.S_ISDIR(mode):
                raise VolumePathError(f"{path!r} is a file, and no folder can be there")
            if not wants_folder and not stat.S_ISREG(mode):
                raise VolumePathError(f"{path!r} is no file, and none can be there")
            if wants_folder:
                known.add(path)
        if part is not None:
            path = _below(path, part)


def _below(path: str, part: str) -> str:
    """A path one further down; on some systems a key's name is no name."""
    below = os.path.join(path, part)
    if os.path.dirname(below) != path or os.path.basename(below) != part:
        raise VolumePathError(f"{part!r} can't be a file's name on this system")
    return below


def make_folder(root: str, parts: Sequence[str]) -> str:
    """Makes a folder and those that it is in, through no link. Runs in a thread."""
    os.makedirs(os.path.dirname(root), exist_ok=True)
    path = root
    for part in (*parts, None):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise VolumePathError(f"{path!r} is no folder any more")
        if part is not None:
            path = _below(path, part)
    return path


class Landing:
    """A temporary file beside its place. Its methods run in threads.

    Args:
        place: which.
        token: tells the temporary file from those of other transfers.
    """

    def __init__(self, place: Place, token: str) -> None:
        self._place = place
        folder, name = os.path.split(place.path)
        mark = hashlib.sha256(place.key.encode()).hexdigest()[:8]  # of a name that is cut short
        self._part = os.path.join(folder, f".{name[:200]}.{token}{mark}.part")
        self._descriptor: int | None = None
        self._is_there = False
        self._is_over = False
        self._lock = threading.Lock()
        self.inode = 0

    @property
    def path(self) -> str:
        """The temporary file's path."""
        return self._part

    def open(self, size: int, inode: int) -> bool:
        """Makes the file, or opens the one that an earlier call has left.

        Args:
            size: bytes that it will have.
            inode: of that one.

        Returns:
            Whether it is that one.
        """
        if self._place.parts:
            make_folder(self._place.root, self._place.parts[:-1])
        else:
            os.makedirs(os.path.dirname(self._place.root), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        with self._lock:
            if self._is_over:
                raise ValueError("the transfer was cancelled meanwhile")
            self._descriptor = os.open(self._part, flags, 0o666)
            self._is_there = True
            found = os.fstat(self._descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise VolumePathError(f"{self._part!r} is no file")
            self.inode = found.st_ino
            left = inode == found.st_ino and found.st_size == size
            if not left:
                os.ftruncate(self._descriptor, 0)
                os.ftruncate(self._descriptor, size)
            return left

    def write(self, offset: int, data: bytearray) -> None:
        """Writes bytes from an offset on; nothing once it is closed."""
        with self._lock, memoryview(data) as view:
            done = 0
            if self._descriptor is not None:
                os.lseek(self._descriptor, offset, os.SEEK_SET)
            while self._descriptor is not None and done < len(view):
                done += os.write(self._descriptor, view[done:])

    def keep(self, mtime_ns: int) -> tuple[int, int]:
        """Puts the file in its place, whose mode a file that is there passes on.

        Returns:
            Its size, and its time as the file system keeps it.
        """
        with self._lock:
            assert self._descriptor is not None  # it is open until it is kept
            path = self._place.path
            with contextlib.suppress(FileNotFoundError):
                mode = os.lstat(path).st_mode
                if not stat.S_ISREG(mode):
                    raise VolumePathError(f"{path!r} is no file any more")
                with contextlib.suppress(OSError):
                    os.chmod(self._part, stat.S_IMODE(mode))
            os.close(self._descriptor)
            self._descriptor = None
            os.utime(self._part, ns=(mtime_ns, mtime_ns))
            found = os.lstat(self._part)
            os.replace(self._part, path)
            self._is_there = False
            return found.st_size, found.st_mtime_ns

    def close(self) -> None:
        """Leaves the temporary file as it is."""
        with self._lock:
            self._is_over = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def discard(self) -> None:
        """Removes the temporary file."""
        with self._lock:
            self._is_over = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            if self._is_there:
                self._is_there = False
                with contextlib.suppress(OSError):
                    os.unlink(self._part)
