"""The source of an environment: which files belong to it, their hash, archive and wheel."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import IO, Any

__all__ = ["MAX_ARCHIVE_BYTES", "Wheel", "content_hash", "file_hash", "pack_source", "read_wheel"]

MAX_ARCHIVE_BYTES = 250 * 1000 * 1000
_CHUNK = 1024 * 1024
_TOP_FILES = ("README.md", "pyproject.toml")
_LEFT_OUT = frozenset({"dist", "build", "outputs", "__pycache__"})
_GIT_SECONDS = 30
# The same tree makes the same archive on every machine.
_MODIFIED = 315_619_200  # 1980-01-02


@dataclass(frozen=True)
class Wheel:
    """A built wheel and what it says about itself.

    Attributes:
        path: the file.
        name: of the package.
        version: likewise.
        sha256: of the file.
        size: bytes of the file.
        metadata: for the hub.
        runtime_hint: the generation of verifiers that it needs.
    """

    path: Path
    name: str
    version: str
    sha256: str
    size: int
    metadata: dict[str, Any]
    runtime_hint: str


def read_wheel(folder: Path, wheel: str | os.PathLike[str] | None) -> Wheel:
    """Reads a wheel; it blocks.

    Args:
        folder: the source, whose ``dist`` holds the wheel where none is named.
        wheel: the file.

    Raises:
        FileNotFoundError: there is none.
        ValueError: there are several, or it is none.
    """
    path = _only_wheel(folder) if wheel is None else Path(wheel)
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.count("/") == 1]
            (name,) = [name for name in names if name.endswith(".dist-info/METADATA")]
            told = HeaderParser().parsestr(archive.read(name).decode("utf-8", "replace"))
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"wheel: {path} is no wheel: {error}") from None
    if not told["Name"] or not told["Version"]:
        raise ValueError(f"wheel: {path} names no package and version")
    requires = [str(each) for each in told.get_all("Requires-Dist") or ()]
    return Wheel(
        path=path,
        name=str(told["Name"]),
        version=str(told["Version"]),
        sha256=file_hash(path),
        size=path.stat().st_size,
        metadata=_metadata(told, path.name, requires),
        runtime_hint="VERIFIERS_V1" if _needs_v1(requires) else "VERIFIERS_V0",
    )


def _only_wheel(folder: Path) -> Path:
    found = sorted((folder / "dist").glob("*.whl"))
    if not found:
        raise FileNotFoundError(
            f"wheel: {folder / 'dist'} holds none; build it first, e.g. with `uv build --wheel`"
        )
    if len(found) > 1:
        raise ValueError(f"wheel: {folder / 'dist'} holds {len(found)} of them; name one")
    return found[0]


def _metadata(told: Message, filename: str, requires: list[str]) -> dict[str, Any]:
    keywords = str(told["Keywords"] or "").replace(",", " ").split()
    return {
        "description": str(told["Summary"] or ""),
        "tags": keywords,
        "license": str(told["License-Expression"] or told["License"] or ""),
        "dependencies": requires,
        "python_requires": str(told["Requires-Python"] or ""),
        "original_filename": filename,
        "requires_dist": requires,
    }


def _needs_v1(requires: list[str]) -> bool:
    """Whether verifiers is needed from 0.2.0 on."""
    for requirement in requires:
        text = requirement.split(";")[0].replace(" ", "")
        name, floor, version = text.partition(">=")
        if floor and name.split("[")[0].lower() == "verifiers":
            numbers = version.split(",")[0].split(".")[:2]
            if all(part.isdigit() for part in numbers):
                return [int(part) for part in numbers] >= [0, 2]
    return False


def source_files(folder: Path) -> list[str]:
    """The files of a source, by their paths with slashes, sorted.

    At the top these are the readme, ``pyproject.toml`` and Python files; of folders, all files.
    Hidden ones, links, what builds and runs leave behind, and what git ignores are left out.

    Raises:
        FileNotFoundError: there is no ``pyproject.toml``.
    """
    if not (folder / "pyproject.toml").is_file():
        raise FileNotFoundError(f"{folder} holds no pyproject.toml")
    ignored = _ignored(folder)
    return sorted(path for path in _walk(folder, "") if not _is_ignored(path, ignored))


def _walk(folder: Path, within: str) -> Iterator[str]:
    with os.scandir(folder / within) as entries:
        for entry in entries:
            path = f"{within}/{entry.name}".lstrip("/")
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            if entry.is_dir():
                if entry.name not in _LEFT_OUT and not entry.name.endswith(".egg-info"):
                    yield from _walk(folder, path)
            elif stat.S_ISREG(entry.stat().st_mode) and (
                within or entry.name in _TOP_FILES or entry.name.endswith(".py")
            ):
                yield path


def _ignored(folder: Path) -> set[str]:
    """What git ignores in a folder; nothing without git or outside of a repository."""
    command = ["git", "-C", str(folder), "ls-files", "-z", "--others", "--ignored"]
    try:
        done = subprocess.run(
            [*command, "--exclude-standard", "--directory"],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return set()
    return {os.fsdecode(path).rstrip("/") for path in done.stdout.split(b"\0") if path}


def _is_ignored(path: str, ignored: set[str]) -> bool:
    parts = path.split("/")
    return any("/".join(parts[: count + 1]) in ignored for count in range(len(parts)))


def content_hash(folder: Path, files: list[str]) -> str:
    """SHA-256 of a source: of each file its path and its bytes."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"file:{path}".encode())
        _digest_file(digest, folder / path)
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    _digest_file(digest, path)
    return digest.hexdigest()


def _digest_file(digest: hashlib._Hash, path: Path) -> None:
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)


def pack_source(folder: Path, files: list[str], archive: IO[bytes]) -> int:
    """Writes the gzip tar of a source, and returns its size; it blocks.

    Raises:
        ValueError: it is too large for the hub.
    """
    with (
        gzip.GzipFile("", "wb", 6, archive, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in files:
            info = tarfile.TarInfo(path)
            found = (folder / path).stat()
            info.size, info.mtime = found.st_size, _MODIFIED
            info.mode = 0o755 if found.st_mode & 0o100 else 0o644
            with open(folder / path, "rb") as file:
                tar.addfile(info, file)
            if archive.tell() > MAX_ARCHIVE_BYTES:
                raise ValueError(f"{folder} is too large: its archive has more than 250 MB")
    return archive.tell()
