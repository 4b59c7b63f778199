"""Lists that are read by offset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from prime_core.pagination import Page, iterate_pages

__all__ = ["check_window", "iterate_offsets"]

T = TypeVar("T")


def check_window(offset: int, limit: int, *, most: int | None = None) -> None:
    """Checks the part of a list that is asked for.

    Raises:
        TypeError: a value that is no whole number.
        ValueError: a number out of its range.
    """
    for name, value in (("offset", offset), ("limit", limit)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is a whole number, not {value!r}")
    if offset < 0:
        raise ValueError(f"offset is at least 0, not {offset}")
    if limit < 1 or (most is not None and limit > most):
        bounds = "at least 1" if most is None else f"1 to {most}"
        raise ValueError(f"limit is {bounds}, not {limit}")


def iterate_offsets(
    fetch: Callable[[int], Awaitable[tuple[Sequence[T], int]]],
    size: int,
    identity: Callable[[T], Hashable],
) -> AsyncIterator[T]:
    """Yields every item of a list by offset once, whatever comes and goes meanwhile.

    It ends at the total, or at an empty part.

    Args:
        fetch: reads the items from an offset on, and the list's total.
        size: items to ask for at once.
        identity: what tells two items apart.
    """

    async def page(number: int) -> Page[T]:
        offset = (number - 1) * size
        items, total = await fetch(offset)
        return Page(items, total, offset + len(items) < total)

    return iterate_pages(page, size, identity)
