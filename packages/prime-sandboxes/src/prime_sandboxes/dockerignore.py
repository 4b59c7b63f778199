"""What a ``.dockerignore`` leaves out of a build context.

The rules are Docker's, which differ from Git's: a pattern starts at the context's root, the last
pattern that matches a path or a folder above it decides, and ``**`` stands for any folders.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["DockerIgnore"]

_WILD = frozenset("*?[\\")


@dataclass(frozen=True)
class _Pattern:
    """One line: what it matches, whether it takes files back in, and how it starts."""

    regex: re.Pattern[str]
    keeps: bool
    fixed: str  # the folders before the first wild one


class DockerIgnore:
    """The patterns of one file.

    Args:
        lines: the file's lines.

    Raises:
        ValueError: a line is no pattern.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._patterns = [pattern for line in lines if (pattern := _read(line)) is not None]

    def ignores(self, path: str) -> bool:
        """Tells whether a file, folder or link is left out.

        Args:
            path: relative to the context, with ``/`` between its parts.
        """
        parts = path.split("/")
        places = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        ignored = False
        for pattern in self._patterns:
            if pattern.keeps == ignored and any(map(pattern.regex.fullmatch, places)):
                ignored = not pattern.keeps
        return ignored

    def ignores_all_in(self, folder: str) -> bool:
        """Tells whether nothing in a folder can be kept, so that it need not be looked at."""
        return self.ignores(folder) and not any(
            _one_lies_in_the_other(pattern.fixed, folder)
            for pattern in self._patterns
            if pattern.keeps
        )


def _one_lies_in_the_other(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or not one or f"{other}/".startswith(f"{one}/")


def _read(line: str) -> _Pattern | None:
    if line.startswith("#"):
        return None
    text = line.strip()
    keeps = text.startswith("!")
    if keeps:
        text = text[1:].strip()
    if not text:
        if keeps:
            raise ValueError(f"{line.strip()!r} takes nothing back: a path follows the '!'")
        return None
    # As Docker cleans it; '/' and '.' are the context itself, which is always there.
    text = posixpath.normpath(text).lstrip("/")
    if text in ("", "."):
        return None
    parts = text.split("/")
    wild = next((at for at, part in enumerate(parts) if _WILD & set(part)), len(parts))
    try:
        return _Pattern(re.compile(_translate(text), re.DOTALL), keeps, "/".join(parts[:wild]))
    except re.error as error:
        raise ValueError(f"{line.strip()!r} is no pattern: {error}") from None


def _translate(pattern: str) -> str:
    """A pattern as a regular expression."""
    words, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*" and pattern[at : at + 1] == "*":
            at += 1
            if pattern[at : at + 1] == "/":
                at += 1
                words.append("(?:.*/)?")
            else:
                words.append(".*" if at == len(pattern) else "(?:.*/)?")
        elif character == "*":
            words.append("[^/]*")
        elif character == "?":
            words.append("[^/]")
        elif character == "[":
            end = pattern.find("]", at + 1)
            if end < 0:
                raise ValueError(f"{pattern!r} is no pattern: its '[' has no ']'")
            words.append(_characters(pattern[at:end]))
            at = end + 1
        elif character == "\\" and at < len(pattern):
            words.append(re.escape(pattern[at]))
            at += 1
        else:
            words.append(re.escape(character))
    return "".join(words)


def _characters(text: str) -> str:
    """A set of characters, such as ``a-z`` or ``^0-9``."""
    negated = text.startswith("^")
    inner = re.sub(r"[\[&~|]", lambda found: "\\" + found[0], text[1:] if negated else text)
    return f"[{'^' if negated else ''}{inner}]"
