"""The parts of SQL statements that depend on a request, and running them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

SqlValue = str | int | float | None


@dataclass
class Where:
    """Conditions that all must hold, with the values of their question marks."""

    clauses: list[str] = field(default_factory=list)
    values: list[SqlValue] = field(default_factory=list)

    def add(self, clause: str, *values: SqlValue) -> None:
        self.clauses.append(clause)
        self.values += values

    def __str__(self) -> str:
        return " AND ".join(f"({clause})" for clause in self.clauses)


@dataclass(frozen=True)
class Order:
    """Rows from the highest to the lowest: by `key` if there is one, nulls last, then by the ties.

    Args:
        time: column of times, never null.
        identity: column that tells any two rows apart.
        key: column that goes before both and may be null.
    """

    time: str
    identity: str
    key: str | None = None

    @property
    def columns(self) -> list[str]:
        """Whose values are a row's position, in this order."""
        return [*([self.key] if self.key else []), self.time, self.identity]

    def __str__(self) -> str:
        # To SQLite null is less than anything, so it comes last.
        return ", ".join(f"{column} DESC" for column in self.columns)

    def begin_after(self, where: Where, position: Sequence[SqlValue]) -> None:
        """Leave out the rows up to a position."""
        ties = f"({self.time}, {self.identity}) < (?, ?)"
        if self.key is None:
            where.add(ties, *position)
            return
        value, *rest = position
        if value is None:
            where.add(f"{self.key} IS NULL AND {ties}", *rest)
        else:
            where.add(
                f"{self.key} < ? OR {self.key} IS NULL OR ({self.key} = ? AND {ties})",
                value,
                value,
                *rest,
            )


def select(
    connection: sqlite3.Connection, statement: str, values: Sequence[SqlValue]
) -> sqlite3.Cursor:
    """Run a statement; its rows come one by one and are read by column name."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(statement, values)
