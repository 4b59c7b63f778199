"""What a transfer moves, and where to: decided before any byte moves."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.errors import VolumePathError
from prime_train.transfers.paths import (
    MOST_ENTRIES,
    SourcePath,
    VolumePath,
    ancestors,
    check_name,
    check_writable,
    is_ignored,
)
from prime_train.transfers.store import StoredObject

__all__ = [
    "DownloadPlan",
    "LocalFile",
    "PlannedDownload",
    "PlannedUpload",
    "Source",
    "UploadPlan",
    "check_clashes",
    "plan_download",
    "plan_upload",
    "scan",
]


@dataclass(frozen=True)
class LocalFile:
    """A file that is to be put, as it was found."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Source:
    """What there is to put.

    Attributes:
        path: of the file or folder, absolute.
        name: its name.
        is_folder: whether it is a folder.
        contents: whether the folder's contents are meant.
        files: by their path below the source, in order; a lone file's is its name.
        empty: paths of folders with nothing in them.
        links: how many symbolic links were left out.
    """

    path: str
    name: str
    is_folder: bool
    contents: bool
    files: Sequence[tuple[str, LocalFile]]
    empty: Sequence[str]
    links: int


def scan(source: SourcePath) -> Source:
    """Looks at a file, or at all that is in a folder. Runs in a thread.

    Raises:
        FileNotFoundError: there is no such path.
        VolumePathError: it is a link, or something in it can't be on a volume.
    """
    found = os.lstat(source.path)
    if stat.S_ISLNK(found.st_mode):
        raise VolumePathError(f"{source.path!r} is a symbolic link: name what it points to")
    path = os.path.abspath(source.path)
    name = os.path.basename(path)
    if stat.S_ISDIR(found.st_mode):
        files: list[tuple[str, LocalFile]] = []
        empty: list[str] = []
        links = _walk(source.path, files, empty)
        if not source.contents:
            check_name(name)
        files.sort()
        return Source(path, name, True, source.contents, files, sorted(empty), links)
    if source.contents:
        raise VolumePathError(f"{source.path!r} is no folder, so it has no contents")
    file = _file(source.path, found)
    return Source(path, name, False, False, [(check_name(name), file)], (), 0)


def _walk(root: str, files: list[tuple[str, LocalFile]], empty: list[str]) -> int:
    links = 0
    folders = [(root, "")]
    while folders:
        folder, prefix = folders.pop()
        anything = False
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    links += 1
                    continue
                anything = True
                path = prefix + check_name(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, f"{path}/"))
                else:
                    files.append((path, _file(entry.path, entry.stat(follow_symlinks=False))))
        if not anything and prefix:
            empty.append(prefix.rstrip("/"))
    return links


def _file(path: str, found: os.stat_result) -> LocalFile:
    if not stat.S_ISREG(found.st_mode):
        raise VolumePathError(f"{path!r} is neither a file nor a folder: leave it out")
    return LocalFile(path, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class PlannedUpload:
    """An object to store: a file, or the marker of an empty folder."""

    key: str
    file: LocalFile | None


@dataclass(frozen=True)
class UploadPlan:
    """What a put stores.

    Attributes:
        route: the path to ask for keys with.
        entries: of a put into the root, the top-level names that it writes.
        looked_at: files and folders whose place the put takes or goes into: what is stored
            there must be known before it begins.
        uploads: the objects.
        links: symbolic links that are left out.
    """

    route: str
    entries: Sequence[str] | None
    looked_at: Sequence[str]
    uploads: Sequence[PlannedUpload]
    links: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(upload.file.size for upload in self.uploads if upload.file)


def plan_upload(
    source: Source, target: VolumePath, *, target_is_folder: bool, prefix: str = ""
) -> UploadPlan:
    """Decides where a source's files go.

    Args:
        source: what there is.
        target: where to.
        target_is_folder: whether a folder of that path is on the volume; asked of files only.
        prefix: the volume's own in its store, which counts for the longest key.

    Raises:
        VolumePathError: something would go to ``runs/``, is too long, or is too much.
    """
    into = target.inside or source.is_folder or target_is_folder
    folder = "".join(f"{part}/" for part in target.parts) if into else ""
    markers: list[str] = []
    if not source.is_folder:
        keys = [folder + source.name if into else str(target)]
    else:
        base = folder if source.contents else f"{folder}{source.name}/"
        keys = [base + path for path, _ in source.files]
        markers = [f"{base}{path}/" for path in source.empty]
        if not keys and not markers and base:
            markers = [base]
    uploads = [
        PlannedUpload(check_writable(key, prefix), file)
        for key, (_, file) in zip(keys, source.files, strict=True)
    ]
    uploads += [PlannedUpload(check_writable(marker, prefix), None) for marker in markers]
    entries = None
    if into and not target.parts:
        entries = sorted({upload.key.split("/", 1)[0] for upload in uploads})
        if len(entries) > MOST_ENTRIES:
            raise VolumePathError(
                f"{len(entries)} names would be put into the volume's root, where at most "
                f"{MOST_ENTRIES} go at once: put them into a folder"
            )
    if not source.is_folder:
        looked_at = keys
    else:
        looked_at = [base.rstrip("/")] if base else list(entries or ())
    return UploadPlan(
        route=folder if into else str(target),
        entries=entries,
        looked_at=looked_at,
        uploads=uploads,
        links=source.links,
    )


def check_clashes(wanted: Iterable[str], stored: Iterable[str]) -> None:
    """Refuses to store a file where a folder is, and the other way round.

    Args:
        wanted: keys that are to be stored; one that ends in a slash is a folder's.
        stored: keys that are stored.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for key in stored:
        if key.endswith("/"):
            folders.add(key.rstrip("/"))
        else:
            files.add(key)
        folders.update(ancestors(key))
    for key in wanted:
        if not key.endswith("/") and key in folders:
            raise VolumePathError(f"{key!r} is a folder on the volume, and no file can be there")
        for folder in (*ancestors(key), *([key.rstrip("/")] if key.endswith("/") else [])):
            if folder in files:
                raise VolumePathError(f"{folder!r} is a file on the volume, and no folder")


@dataclass(frozen=True)
class PlannedDownload:
    """An object to fetch, and its place below the destination."""

    stored: StoredObject
    parts: tuple[str, ...]

    @property
    def is_folder(self) -> bool:
        """Whether it is the marker of an empty folder."""
        return self.stored.key.endswith("/")


@dataclass(frozen=True)
class DownloadPlan:
    """What a get fetches.

    Attributes:
        downloads: files and markers.
        is_file: whether it is one file, whose place is the destination itself or in it.
        ignored: objects that are left out.
    """

    downloads: Sequence[PlannedDownload]
    is_file: bool
    ignored: int

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(download.stored.size for download in self.downloads)


def plan_download(source: VolumePath, stored: Sequence[StoredObject]) -> DownloadPlan:
    """Decides where what is stored under a path goes.

    Args:
        source: the path.
        stored: its object, if there is one, and all that is in its folder.

    Raises:
        VolumePathError: something is a file and a folder at once.
    """
    path = "/".join(source.parts)
    lone = [found for found in stored if found.key == path]
    base = f"{path}/" if path else ""
    inside = [found for found in stored if found.key.startswith(base) and found.key != base]
    markers = [found for found in stored if found.key == base and base]
    if lone and not inside and not markers and not source.inside:
        downloads = [PlannedDownload(lone[0], (source.parts[-1],))]
        return DownloadPlan(downloads, is_file=True, ignored=0)
    if lone and (inside or markers) and not source.inside:
        raise VolumePathError(f"{path!r} is a file and a folder on the volume: get what is in it")
    kept = [found for found in inside if not is_ignored(found.key)]
    above = () if source.inside else source.parts[-1:]
    downloads = [
        PlannedDownload(found, (*above, *PurePosixPath(found.key[len(base) :]).parts))
        for found in kept
    ]
    if markers and not kept:
        downloads = [PlannedDownload(markers[0], above)]
    _check_tree(downloads)
    return DownloadPlan(downloads, is_file=False, ignored=len(inside) - len(kept))


def _check_tree(downloads: Sequence[PlannedDownload]) -> None:
    files = {download.parts for download in downloads if not download.is_folder}
    for download in downloads:
        for length in range(1, len(download.parts) + download.is_folder):
            if download.parts[:length] in files:
                raise VolumePathError(
                    f"{'/'.join(download.parts[:length])!r} is a file and a folder on the volume"
                )
