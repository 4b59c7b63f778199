"""Where volumes can be mounted in a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.sandboxes.isolation.view import KERNEL_FOLDERS

_LONGEST_PATH = 1024


def mount_problems(mounts: Sequence[JsonObject]) -> list[Problem]:
    """Return what is wrong with the mounts of a create that its schema lets through."""
    problems = [
        _problem(number, "mount_path", text)
        for number, mount in enumerate(mounts)
        if (text := _path_problem(mount["mount_path"])) is not None
    ]
    paths = [PurePosixPath(mount["mount_path"]) for mount in mounts]
    for number, path in enumerate(paths):
        if path in paths[:number]:
            problems.append(_problem(number, "mount_path", "Must be unique"))
        if any(other in path.parents for other in paths):
            problems.append(_problem(number, "mount_path", "Must not be inside another mount"))
        # A publish names the volume, and could not tell two copies apart.
        if any(mounts[number]["name"] == other["name"] for other in mounts[:number]):
            problems.append(_problem(number, "name", "A volume can be attached once"))
    return problems


def _path_problem(text: str) -> str | None:
    path = PurePosixPath(text)
    if ".." in path.parts or "\0" in text or len(text) > _LONGEST_PATH:
        return f"Must be without .. and NUL, and at most {_LONGEST_PATH} characters long"
    if path == PurePosixPath("/") or text.startswith("//"):
        return "Must be a folder below /"
    # Whatever is mounted where these are, or above them, hides them.
    for folder in map(PurePosixPath, KERNEL_FOLDERS):
        if folder == path or folder in path.parents or path in folder.parents:
            return f"{folder} must stay as it is"
    return None


def _problem(number: int, name: str, text: str) -> Problem:
    return Problem(("body", "volumes", number, name), text, "value_error")
