"""Pages: which part of a list a request wants, and the cursor to the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from prime_local.errors import PlatformError
from prime_local.traces.cursors import Position, make_cursor, read_cursor
from prime_local.traces.errors import traces_error

T = TypeVar("T")


@dataclass(frozen=True)
class Page:
    """Part of a list.

    Args:
        scope: what its cursors are bound to.
        limit: how many rows it may have.
        position: where it begins; None for the beginning of the list.
    """

    scope: Sequence[object]
    limit: int
    position: Position | None

    @classmethod
    def read(cls, scope: Sequence[object], limit: int, cursor: str | None) -> Page:
        """Read a request's page.

        Raises:
            PlatformError: 400 `invalid_cursor`.
        """
        try:
            position = None if cursor is None else read_cursor(scope, cursor)
        except ValueError as error:
            raise invalid_cursor(str(error)) from None
        return cls(scope, limit, position)

    def cut(self, rows: Sequence[T]) -> tuple[Sequence[T], T | None]:
        """Return the page's rows, of one more than it may have, and the last if there are more."""
        if len(rows) <= self.limit:
            return rows, None
        return rows[: self.limit], rows[self.limit - 1]

    def cursor(self, position: Sequence[object]) -> str:
        """Return the cursor for a position in this list."""
        return make_cursor(self.scope, position)


def invalid_cursor(message: str) -> PlatformError:
    return traces_error(400, "invalid_cursor", message)
