"""Records on their way: encoded once, when they are logged, and never changed afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = ["Parcel", "ParcelKind", "Refusal"]

ParcelKind = Literal["trace", "episode", "metrics"]


@dataclass(frozen=True)
class Parcel:
    """Lines of JSON of one kind, each with its line feed."""

    kind: ParcelKind
    lines: tuple[bytes, ...]

    @cached_property
    def size(self) -> int:
        """Its bytes."""
        return sum(map(len, self.lines))

    @property
    def data(self) -> bytes:
        """Its lines as one body."""
        return b"".join(self.lines)

    def halves(self) -> tuple[Parcel, Parcel]:
        """The first and the second half of its lines, of which it has at least two."""
        middle = len(self.lines) // 2
        return Parcel(self.kind, self.lines[:middle]), Parcel(self.kind, self.lines[middle:])

    def joined(self, other: Parcel) -> Parcel:
        """This one's lines, then the other's."""
        return Parcel(self.kind, self.lines + other.lines)


@dataclass(frozen=True)
class Refusal:
    """A record that can't be sent, with the reason; its text is as near as JSON comes to it."""

    error: Exception
    parcel: Parcel
