"""An uploaded build context: taking the archive apart, safely."""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
import threading
from pathlib import Path, PurePosixPath

_MOST_BYTES = 4 * 1024**3
_MOST_ENTRIES = 200_000
_CHUNK_BYTES = 1024 * 1024
_DOCKERFILE_BYTES = 1024 * 1024
# A Dockerfile under the name that clients pack it as is no part of the context itself.
_PACKED_DOCKERFILE = ".__prime_dockerfile__"


class ContextError(Exception):
    """The context is of no use; the text says why."""


def unpack(archive: Path, target: Path, stop: threading.Event) -> None:
    """Take a gzip tar apart into a new folder; blocks.

    Nothing is written outside of the folder: names with `..` and absolute ones are refused, and
    no link is followed. Links themselves are kept as they are.

    Raises:
        ContextError: it is no such archive, too large, or would leave the folder.
    """
    target.mkdir(parents=True)
    left, entries = _MOST_BYTES, 0
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                entries += 1
                left -= member.size
                if left < 0 or entries > _MOST_ENTRIES:
                    raise ContextError("the context is too large")
                _check(stop)
                _unpack_member(tar, member, target, stop)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ContextError(f"the context is no gzip tar: {error}") from error


def read_dockerfile(context: Path, name: str) -> str:
    """Read the Dockerfile of a context; one that was packed in under a special name is removed.

    Raises:
        ContextError: it is not there, or no text.
    """
    path = _place(context, name, make=False)
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > _DOCKERFILE_BYTES:
            raise ContextError(f"{name} is no Dockerfile")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContextError(f"no Dockerfile at {name}") from error
    if name == _PACKED_DOCKERFILE:
        path.unlink()
    return text


def _unpack_member(
    tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, stop: threading.Event
) -> None:
    path = _place(target, member.name, make=True)
    if path == target:
        return
    if member.isdir():
        if not path.is_dir() or path.is_symlink():
            _clear(path)
            path.mkdir()
        path.chmod(stat.S_IMODE(member.mode) | 0o700)
        return
    _clear(path)
    if member.issym():
        path.symlink_to(member.linkname)
    elif member.islnk():
        os.link(_place(target, member.linkname, make=False), path, follow_symlinks=False)
    elif member.isfile():
        _write(tar, member, path, stop)
    else:
        raise ContextError(f"{member.name} is neither file, folder nor link")


def _check(stop: threading.Event) -> None:
    if stop.is_set():
        raise ContextError("the build was ended")


def _place(target: Path, name: str, *, make: bool) -> Path:
    """Return where a member belongs; no folder on the way is a link."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise ContextError(f"{name!r} leads out of the context")
    path = target
    for part in pure.parts[:-1]:
        path /= part
        if path.is_symlink():
            raise ContextError(f"{name!r} leads through a link")
        if make and not path.is_dir():
            _clear(path)
            path.mkdir()
    return path / pure.name if pure.name else path


def _clear(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _write(
    tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, stop: threading.Event
) -> None:
    source = tar.extractfile(member)
    assert source is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with source, open(os.open(path, flags, 0o600), "wb") as file:
        while piece := source.read(_CHUNK_BYTES):
            _check(stop)
            file.write(piece)
        os.fchmod(file.fileno(), stat.S_IMODE(member.mode) & 0o777 | 0o400)
    os.utime(path, (member.mtime, member.mtime))
