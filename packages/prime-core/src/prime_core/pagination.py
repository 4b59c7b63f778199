"""All items of a paged list, a page at a time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from prime_core.errors import APIResponseError

__all__ = ["CursorPage", "Page", "iterate_cursors", "iterate_pages"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# A list whose items come and go all the time would otherwise be walked up and down for ever.
MOST_TURNS = 100


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list.

    Attributes:
        items: what it holds.
        total: how many items all pages hold; None where the answer doesn't say.
        more: whether another page follows; None where the answer doesn't say. Pages are then
            read until all of the total are there, or one is empty; without a total, until one
            brings nothing new.
    """

    items: Sequence[T]
    total: int | None
    more: bool | None = None


async def iterate_pages(
    fetch: Callable[[int], Awaitable[Page[T]]], size: int, identity: Callable[[T], Hashable]
) -> AsyncIterator[T]:
    """Yields every item of a numbered-page list once, whatever comes and goes meanwhile.

    After a hundred steps back, an item that moves up may be missed.

    Args:
        fetch: reads the page of a number, from 1.
        size: items a page.
        identity: what tells two items apart.

    Raises:
        APIResponseError: a hundred pages brought nothing new.
    """
    seen: set[Hashable] = set()
    number, total, turns, stale = 1, 0, 0, 0
    while True:
        page = await fetch(number)
        known = len(seen)
        for item in page.items:
            key = identity(item)
            if key not in seen:
                seen.add(key)
                yield item
        gone, total = total - (page.total or 0), page.total or 0
        more = page.more
        if more is None:
            stale = 0 if len(seen) > known else stale + 1
            if stale > MOST_TURNS:
                raise APIResponseError("The list has the same items on every page.")
            # Seen ones may have gone, and pages may be smaller than was asked for.
            least = min(number * size, len(seen))
            more = not stale if page.total is None else least < page.total
        if gone > 0 and turns < MOST_TURNS:
            # Unread items have moved up, onto pages that were read before.
            turns += 1
            number = max(1, number - math.ceil(gone / size))
        elif page.items and more:
            number += 1
        else:
            return


class CursorPage(Protocol[T_co]):
    """One page of a list whose pages name the next: the answers of such routes fit as they are.

    Attributes:
        items: what it holds; none at all does not mean that it is the last.
        next_cursor: what the next page is asked for by, or None on the last one.
    """

    @property
    def items(self) -> Sequence[T_co]: ...

    @property
    def next_cursor(self) -> str | None: ...


async def iterate_cursors(
    fetch: Callable[[str | None], Awaitable[CursorPage[T]]], cursor: str | None = None
) -> AsyncIterator[T]:
    """Yields every item of a list whose pages name the next.

    Args:
        fetch: reads the page of a cursor; None is the first. It asks by the same filters each
            time, since a cursor is bound to them.
        cursor: where to begin.

    Raises:
        APIResponseError: a page names itself as the next: the list would never end.
    """
    while True:
        page = await fetch(cursor)
        for item in page.items:
            yield item
        if page.next_cursor is None:
            return
        if page.next_cursor == cursor:
            raise APIResponseError("The platform's list does not move on from a page; try later.")
        cursor = page.next_cursor
