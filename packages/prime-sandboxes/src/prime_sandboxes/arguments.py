"""Checks of arguments that several methods take."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from prime_sandboxes.models import VOLUME_NAME

__all__ = [
    "check_checkpoint_id",
    "check_count",
    "check_id",
    "check_ids",
    "check_labels",
    "check_path",
    "check_seconds",
    "check_volume_name",
    "check_window",
]


def check_ids(sandbox_ids: Sequence[str]) -> list[str]:
    """Ids without repeats; a lone string, whose letters would be taken for ids, is refused."""
    if isinstance(sandbox_ids, str):
        raise ValueError("sandbox_ids is a list of ids, not one string")
    return list(dict.fromkeys(check_id(sandbox_id) for sandbox_id in sandbox_ids))


def check_labels(labels: Sequence[str] | None) -> list[str] | None:
    """Labels as a list, each a non-empty string."""
    if isinstance(labels, str):
        raise ValueError("labels is a list of labels, not one string")
    found = None if labels is None else list(labels)
    for label in found or ():
        if not isinstance(label, str) or not label:
            raise ValueError(f"a label is a non-empty string, not {label!r}")
    return found


def check_id(value: str, name: str = "sandbox_id", example: str = "sbx_7f3k2m") -> str:
    """An id that can be sent; a wrong one must not spoil the batch that it travels in."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    if not value or not value.isprintable():
        raise ValueError(f"{name} is an id such as {example}, not {value!r}")
    return value


def check_checkpoint_id(checkpoint_id: str) -> str:
    """An id of a checkpoint that can be sent."""
    if not isinstance(checkpoint_id, str):
        raise TypeError(f"checkpoint_id is a string, not {type(checkpoint_id).__name__}")
    if not 1 <= len(checkpoint_id) <= 64 or not checkpoint_id.isprintable():
        raise ValueError(f"checkpoint_id is an id of 1 to 64 characters, not {checkpoint_id!r}")
    return checkpoint_id


def check_volume_name(name: str) -> str:
    """A name that a volume can have."""
    if not isinstance(name, str):
        raise TypeError(f"name is a string, not {type(name).__name__}")
    if not re.fullmatch(VOLUME_NAME, name):
        raise ValueError(
            "name is 1 to 40 lowercase letters, digits and hyphens, and starts and ends with "
            f"a letter or a digit, not {name!r}"
        )
    return name


def check_count(name: str, value: int, *, least: int) -> int:
    """A whole number of at least so much, and at most a million."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    if not least <= value <= 1_000_000:
        raise ValueError(f"{name} is at least {least} and at most 1,000,000, not {value!r}")
    return value


def check_seconds(name: str, value: float) -> float:
    """A finite number of seconds above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is a number of seconds, not {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} is a number of seconds above 0, not {value!r}")
    return value


def check_path(file_path: str, *, folder: bool = False) -> str:
    """A path in a sandbox that can be sent and can name a file, or a folder.

    Any character but NUL may stand in it; what is no UTF-8 text can't be sent.
    """
    if not isinstance(file_path, str):
        raise TypeError(f"a path in a sandbox is a string, not {type(file_path).__name__}")
    if not file_path or "\0" in file_path:
        raise ValueError(f"a path in a sandbox is not empty and holds no NUL, not {file_path!r}")
    try:
        file_path.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a path in a sandbox is UTF-8 text, not {file_path!r}") from None
    if not folder and file_path.rpartition("/")[2] in ("", ".", ".."):
        raise ValueError(f"{file_path!r} names a folder: name the file")
    return file_path


def check_window(offset: int | None, length: int | None) -> None:
    """A part of a file: where it begins, negative from the end, and its bytes."""
    for name, value in (("offset", offset), ("length", length)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} is a number of bytes, not {value!r}")
    if length is not None and length < 0:
        raise ValueError(f"length is at least 0, not {length!r}")
