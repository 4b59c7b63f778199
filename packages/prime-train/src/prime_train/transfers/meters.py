"""How far a transfer is."""

from __future__ import annotations

from prime_core.uploads import Progress

__all__ = ["Meter", "PartMeter"]


class Meter:
    """Counts the bytes of a transfer and tells how many are done.

    Args:
        progress: who is told, if anybody.
        total: bytes in all.

    Attributes:
        resumed: bytes that an earlier call had moved.
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self.resumed = 0

    def begin(self) -> None:
        """Tells that nothing is done yet."""
        self.add(0)

    def add(self, size: int) -> None:
        """Counts bytes that are moved, or takes back those of an attempt that failed."""
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)

    def resume(self, size: int) -> None:
        """Counts bytes that were moved by an earlier call."""
        self.resumed += size
        self.add(size)

    def part(self) -> PartMeter:
        """Counts one request's bytes."""
        return PartMeter(self)


class PartMeter:
    """Counts one request's bytes; an attempt that is repeated begins at 0 again."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._done = 0

    def __call__(self, done: int, size: int | None = None) -> None:
        """Notes how much of the request is done."""
        self._meter.add(done - self._done)
        self._done = done
