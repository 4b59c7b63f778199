"""All items of a paged list, a page at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["iterate_pages"]

T = TypeVar("T")


async def iterate_pages(
    fetch: Callable[[int], Awaitable[tuple[Sequence[T], bool]]],
    identity: Callable[[T], Hashable],
) -> AsyncIterator[T]:
    """Yields every item of a numbered-page list once.

    Pages shift while items come and go, so an item that was seen on an earlier page is left
    out. An empty page ends the list whatever the platform says of a next one.

    Args:
        fetch: reads the page of a number, from 1: its items, and whether there is a next.
        identity: what tells two items apart.
    """
    seen: set[Hashable] = set()
    page = 1
    while True:
        items, more = await fetch(page)
        for item in items:
            key = identity(item)
            if key not in seen:
                seen.add(key)
                yield item
        if not items or not more:
            return
        page += 1
