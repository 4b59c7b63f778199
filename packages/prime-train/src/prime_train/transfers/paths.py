"""Paths on volumes, and what of them may be written. Follows "hosted-training/volumes"."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prime_train.errors import VolumePathError

__all__ = [
    "MOST_ENTRIES",
    "RUNS",
    "SourcePath",
    "VolumePath",
    "ancestors",
    "check_name",
    "check_writable",
    "is_ignored",
    "source_path",
    "volume_path",
]

_PART = re.compile(r"[A-Za-z0-9._@%+=,:-]+")
LONGEST_PART = 255
LONGEST_KEY = 1024
# Names that one put writes into the root.
MOST_ENTRIES = 256
RUNS = "runs"
SESSIONS = "runs/.sessions/"


@dataclass(frozen=True)
class VolumePath:
    """A path on a volume.

    Attributes:
        parts: its names, from the root on.
        inside: whether what is in a folder is meant: the root, or a trailing slash.
    """

    parts: tuple[str, ...]
    inside: bool

    def __str__(self) -> str:
        """As the platform and the store spell it: the root is empty."""
        text = "/".join(self.parts)
        return f"{text}/" if self.parts and self.inside else text


def volume_path(path: str) -> VolumePath:
    """Reads a path on a volume, whose root it starts at, with or without a slash.

    Raises:
        VolumePathError: it leaves the volume, or has a name that none on a volume can have.
    """
    if not isinstance(path, str):
        raise TypeError(f"a path on a volume is a string, not {type(path).__name__}")
    parts: list[str] = []
    names = path.split("/")
    for name in names:
        if name == "..":
            if not parts:
                raise VolumePathError(f"{path!r} leads out of the volume")
            parts.pop()
        elif name not in ("", "."):
            parts.append(check_name(name))
    return VolumePath(tuple(parts), inside=not parts or names[-1] in ("", ".", ".."))


def check_name(name: str) -> str:
    """The name of a file or folder on a volume."""
    if not _PART.fullmatch(name):
        raise VolumePathError(
            f"{name!r} is no name on a volume: it has letters, digits and ._-@%+=,: only; "
            "rename it, or use a shell on the volume"
        )
    if len(name) > LONGEST_PART:
        raise VolumePathError(f"{name[:40]!r}… is longer than {LONGEST_PART} bytes")
    return name


def check_writable(key: str, prefix: str = "") -> str:
    """A path that may be written to.

    Args:
        key: the path.
        prefix: the volume's own prefix in its store.
    """
    if key.split("/", 1)[0] == RUNS:
        raise VolumePathError("runs/ holds run outputs: choose another path on the volume")
    if len(prefix) + len(key) > LONGEST_KEY:
        raise VolumePathError(f"{key[:40]!r}… is longer than {LONGEST_KEY} bytes in the store")
    return key


def is_ignored(key: str) -> bool:
    """Whether a stored key can't be a file's path here, or is none of the user's files."""
    names = key.removesuffix("/").split("/")
    return any(name in ("", ".", "..") or "\\" in name for name in names) or key.startswith(
        SESSIONS
    )


def ancestors(key: str) -> Iterator[str]:
    """The folders that a path is in, without the root, the outermost first."""
    at = key.find("/")
    while 0 <= at < len(key) - 1:
        yield key[:at]
        at = key.find("/", at + 1)


@dataclass(frozen=True)
class SourcePath:
    """What is to be put.

    Attributes:
        path: without a trailing slash or dot.
        contents: whether what is in it is meant, not the folder itself.
    """

    path: str
    contents: bool


def source_path(source: str | os.PathLike[str], separators: Iterable[str] = "") -> SourcePath:
    """Reads a source; ``folder/`` and ``folder/.`` mean its contents.

    Args:
        source: a path. A `pathlib.Path` drops a trailing slash.
        separators: of this system's paths; by default what `os` says.
    """
    text = os.fspath(source)
    if not isinstance(text, str):
        raise TypeError(f"source is a path as a string, not {type(text).__name__}")
    if not text:
        raise VolumePathError("source is empty: name a file or a folder")
    marks = "".join(separators) or os.sep + (os.altsep or "")
    last = re.split(f"[{re.escape(marks)}]", text)[-1]
    path = text
    while len(path) > 1 and (path[-1] in marks or (path[-1] == "." and path[-2] in marks)):
        path = path[:-1]
    return SourcePath(path, contents=last in ("", ".", ".."))
