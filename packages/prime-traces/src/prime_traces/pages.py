"""All pages of a list, by the filters of the first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from prime_core.encoding import Query
from prime_core.pagination import CursorPage, iterate_cursors
from prime_traces.filters import MOST_PER_PAGE

__all__ = ["iterate"]

T = TypeVar("T")


def iterate(fetch: Callable[[Query], Awaitable[CursorPage[T]]], query: Query) -> AsyncIterator[T]:
    """All items of a list from where its query begins, in pages as large as they can be.

    Args:
        fetch: reads the page of a query.
        query: the filters; a limit of their own is the size of the pages.
    """
    filters = {"limit": MOST_PER_PAGE, **query}
    first = filters.pop("cursor", None)
    start = filters.pop("after", None)
    assert first is None or isinstance(first, str)

    async def page(cursor: str | None) -> CursorPage[T]:
        # A cursor knows its place, and is not taken together with another.
        place: Query = {"after": start} if cursor is None else {"cursor": cursor}
        return await fetch({**filters, **place})

    return iterate_cursors(page, first)
