"""How much is measured, and on which cores."""

from __future__ import annotations

from dataclasses import dataclass

from bench.workers import cores

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """How much is measured: in full, or so little that it only shows that the bench works.

    Attributes:
        short: the latter.
        rounds: how often the two sides of a comparison take turns.
        measured: the core of what is measured, or None.
        servers: the core of the servers, or None.
    """

    short: bool
    rounds: int
    measured: int | None
    servers: int | None

    @classmethod
    def of(cls, *, short: bool) -> Plan:
        measured, servers = cores()
        return cls(short, 1 if short else 9, measured, servers)

    def size(self, full: int, short: int) -> int:
        return short if self.short else full
