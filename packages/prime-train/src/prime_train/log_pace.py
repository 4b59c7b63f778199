"""How often a log is looked at, and how much of it, so that no line passes by unseen."""

from __future__ import annotations

import math

from prime_train.models.run_logs import MOST_LINES

__all__ = ["LinePace"]

# Seconds between two looks: at first, while it is not known how fast lines come, and at most.
FIRST_PAUSE = 1.0
LOG_PAUSE = 5.0
# A look is due when so much of what a window can hold may have come.
SHARE = 0.5
# A window is so many times what is expected, and has so many lines at least: what it has in common
# with the one before tells where it belongs, and lines repeat.
SURPLUS = 4
FEWEST_LINES = 1000
# Lines that came fast may do so again; that is forgotten by and by.
FADING = 0.7
GROWTH = 1.5


class LinePace:
    """Learns how fast a log grows.

    Args:
        whole: whether each look brings the whole log, so that nothing passes by.
    """

    def __init__(self, *, whole: bool) -> None:
        # The most lines that a window can hold. Some platforms hold less than is asked for.
        self.capacity = math.inf if whole else MOST_LINES
        self._rate = 0.0
        self._most = 0.0
        self._longest = FIRST_PAUSE

    @property
    def interval(self) -> float:
        """Seconds from one look to the next."""
        longest = min(self._longest, LOG_PAUSE)
        return min(longest, SHARE * self.capacity / self._rate) if self._rate else longest

    @property
    def lines(self) -> int:
        """How many lines to ask for."""
        expected = max(self._rate * self.interval, self._most)
        return max(FEWEST_LINES, min(math.ceil(SURPLUS * expected), MOST_LINES))

    def grown(self, lines: int, seconds: float) -> None:
        """Notes how many lines came, at least, since the last look."""
        self._rate = max(lines / max(seconds, 1e-3), FADING * self._rate)
        self._most = max(lines, FADING * self._most)
        self._longest = min(GROWTH * self._longest, LOG_PAUSE)

    def surprised(self) -> None:
        """Notes that lines passed by: it looks soon, as at first."""
        self._longest = FIRST_PAUSE
