"""A log that is read again and again, each time from some line on to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["LogWindows", "Placed"]

# So many lines in common are hardly by chance, even if each of them repeats.
LONG = 200


@dataclass(frozen=True)
class Placed:
    """A window, and where it begins in what was read before.

    Attributes:
        lines: its lines. One that may go on is left out.
        known: how many of them were read before.
        joins: whether it has something in common with what was read before, or goes on with the
            line that was held back, or nothing was read before.
        sure: whether that is beyond doubt: what they have in common holds a line that came only
            once, or is long. Lines that repeat are found at wrong places, too.
        rest: a last line without its line feed.
        settled: whether ``rest`` is the last of ``lines``, too: it has not gone on since the last
            look.
    """

    lines: list[str]
    known: int
    joins: bool
    sure: bool
    rest: str
    settled: bool

    @property
    def size(self) -> int:
        """How many lines the window has, with one that may go on."""
        return len(self.lines) + bool(self.rest and not self.settled)


class LogWindows:
    """Finds the lines that are new in each window of a growing log.

    A window has no position. Where it begins is found by the longest end of what was read before
    that it begins with; a window that has nothing in common with that is all new. A last line
    without its line feed is held back: it may go on. It comes when the next window ends with it
    all the same.

    Args:
        depth: how many lines of what was read are kept, at least: windows of up to so many lines
            find their place, whatever the size of the one before.
    """

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._known: list[str] = []
        # Whether the last of them came without its line feed, and may have gone on.
        self._open = False
        self._rest = ""

    def place(self, text: str) -> Placed:
        """Finds where a window begins, without taking it for read."""
        *lines, rest = text.split("\n")
        if (
            self._open
            and rest == self._known[-1]
            and overlap(self._known[:-1], lines) == len(lines)
        ):
            return self._settled([*lines, rest], len(lines) + 1)
        known = overlap(self._known, lines)
        if rest and rest == self._rest and known == len(lines):
            return self._settled([*lines, rest], known)
        if not known and self._open:  # its last line has gone on
            known = overlap(self._known[:-1], lines)
        if not lines or not (self._known or self._rest):
            return Placed(lines, known, joins=True, sure=True, rest=rest, settled=False)
        common = lines[:known]
        if self._rest and not known and lines[0].startswith(self._rest):
            common = lines[:1]
        return Placed(
            lines, known, joins=bool(common), sure=self._tells(common), rest=rest, settled=False
        )

    @staticmethod
    def _settled(lines: list[str], known: int) -> Placed:
        return Placed(lines, known, joins=True, sure=True, rest=lines[-1], settled=True)

    def _tells(self, common: Sequence[str]) -> bool:
        """Whether lines that two windows have in common tell their place."""
        if len(common) >= LONG:
            return True
        counts = Counter(self._known)
        return any(counts[line] <= 1 for line in common)

    def take(self, placed: Placed) -> list[str]:
        """Takes a window for read: its new lines, without line feeds.

        A line that was held back, and that the window does not go on with, comes first.
        """
        if not placed.lines:
            self._rest = placed.rest or self._rest
            return []
        known, new = placed.lines[: placed.known], placed.lines[placed.known :]
        before = self._known if placed.joins else self.finish()
        self._rest = "" if placed.settled else placed.rest
        if self._open and placed.known and known[-1] != before[-1]:
            before = before[:-1]
        self._known = (before + new)[-max(self._depth, len(placed.lines)) :]
        self._open = placed.settled
        return new if placed.joins else before + new

    def feed(self, text: str) -> list[str]:
        """The lines of a window that were not read before, without line feeds."""
        return self.take(self.place(text))

    @property
    def holds_back(self) -> bool:
        """Whether a last line is held back."""
        return bool(self._rest)

    def finish(self) -> list[str]:
        """What was held back, once no more windows come."""
        rest, self._rest = self._rest, ""
        return [rest] if rest else []


def overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines the longest end of ``before`` has that ``after`` begins with.

    It takes time in proportion to the lines (Knuth, Morris and Pratt).
    """
    borders = [0] * len(after)
    length = 0
    for place in range(1, len(after)):
        while length and after[place] != after[length]:
            length = borders[length - 1]
        if after[place] == after[length]:
            length += 1
        borders[place] = length
    length = 0
    for line in before[-len(after) :] if after else ():
        while length and (length == len(after) or line != after[length]):
            length = borders[length - 1]
        if line == after[length]:
            length += 1
    return length
