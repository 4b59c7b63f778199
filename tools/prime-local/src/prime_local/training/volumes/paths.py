"""Paths on volumes, and what keys to them may reach."""

from __future__ import annotations

import re

from prime_local.errors import PlatformError

_PART = re.compile(r"[A-Za-z0-9._@%+=,:-]+")
_PART_BYTES = 255
_KEY_BYTES = 1024
_READ_ONLY = "runs/ holds run outputs and is read-only; put elsewhere."


def clean_path(path: str, prefix: str) -> str:
    """Return a path from the volume's root on, which is empty; a slash at its end stays.

    Raises:
        PlatformError: 400.
    """
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise PlatformError(400, "The path leads out of the volume")
            parts.pop()
        elif part not in ("", "."):
            parts.append(check_part(part))
    cleaned = "/".join(parts)
    if cleaned and path.endswith(("/", "/.", "/..")):
        cleaned += "/"
    if len((prefix + cleaned).encode()) > _KEY_BYTES:
        raise PlatformError(400, f"A path with its prefix has at most {_KEY_BYTES} bytes")
    return cleaned


def check_part(part: str) -> str:
    """Return a part of a path.

    Raises:
        PlatformError: 400.
    """
    if not _PART.fullmatch(part) or len(part) > _PART_BYTES:
        raise PlatformError(
            400, f"A part of a path is at most {_PART_BYTES} of letters, digits and ._-@%+=,:"
        )
    return part


def destinations(path: str, entries: list[str] | None) -> list[str]:
    """Return what an upload to a path writes: paths, those of folders with a slash.

    Args:
        path: where to, cleaned.
        entries: of an upload to the root, the names that it writes there.

    Raises:
        PlatformError: 400.
    """
    if path:
        found = [path]
    elif entries:
        found = [check_part(entry) for entry in entries]
    else:
        raise PlatformError(400, "An upload to the root names its entries")
    check_writable(found)
    if "." in found or ".." in found:
        raise PlatformError(400, "An entry is a name")
    return found


def check_writable(paths: list[str]) -> None:
    """Refuse to write where runs do.

    Raises:
        PlatformError: 400.
    """
    if any(path.partition("/")[0] == "runs" for path in paths):
        raise PlatformError(400, _READ_ONLY)


def reach(prefix: str, paths: list[str]) -> tuple[list[str], list[str]]:
    """Return the objects and the prefixes that a key to some paths reaches."""
    files = [prefix + path for path in paths if path and not path.endswith("/")]
    folders = [prefix + path for path in paths if not path or path.endswith("/")]
    return files, [*folders, *(file + "/" for file in files)]
