"""A log that is read again and again, each time from some line on to its end."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["LogWindows"]


class LogWindows:
    """Finds the lines that are new in each window of a growing log.

    A window has no position. Where it begins is found by the longest end of the window before it
    that it begins with; a window that has nothing in common with that one is all new. A last line
    without its line feed is held back: it may go on.
    """

    def __init__(self) -> None:
        self._window: list[str] = []
        self._rest = ""

    def feed(self, text: str) -> list[str]:
        """The whole lines of a window that were not in the one before, without line feeds."""
        *lines, self._rest = text.split("\n")
        if not lines:
            return []
        known = overlap(self._window, lines)
        self._window = lines
        return lines[known:]

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
