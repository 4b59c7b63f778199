"""All items of a paged list, whatever comes and goes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.errors import APIResponseError
from prime_core.pagination import CursorPage, Page, iterate_cursors, iterate_pages


async def collect(pages: Sequence[Sequence[int]], more: Sequence[bool]) -> tuple[list[int], int]:
    asked = 0

    async def fetch(number: int) -> Page[int]:
        nonlocal asked
        asked += 1
        assert number == asked
        return Page(pages[number - 1], 100, more[number - 1])

    return [item async for item in iterate_pages(fetch, 6, lambda item: item)], asked


@given(st.lists(st.lists(st.integers(0, 20), max_size=6), min_size=1, max_size=6))
def test_every_item_comes_once_in_order_until_a_page_is_empty_or_the_last(
    pages: list[list[int]],
) -> None:
    more = [True] * (len(pages) - 1) + [False]
    items, asked = asyncio.run(collect(pages, more))
    read = pages[: pages.index([]) + 1] if [] in pages else pages
    assert items == list(dict.fromkeys(item for page in read for item in page))
    assert asked == len(read)


async def test_pages_are_read_only_as_they_are_needed() -> None:
    asked: list[int] = []

    async def fetch(number: int) -> Page[int]:
        asked.append(number)
        return Page([number * 10, number * 10 + 1], 100, True)

    async for item in iterate_pages(fetch, 2, lambda item: item):
        if item == 20:
            break
    assert asked == [1, 2]


@given(
    st.integers(0, 40), st.integers(1, 6), st.lists(st.integers(0, 12), max_size=12), st.booleans()
)
def test_items_that_stay_are_found_while_others_come(
    count: int, size: int, coming: list[int], told: bool
) -> None:
    async def run() -> None:
        listed = list(range(count))
        arrivals = iter(coming)

        async def fetch(number: int) -> Page[int]:
            place = next(arrivals, None)
            if place is not None:
                listed.insert(place, len(listed))
            start = (number - 1) * size
            page = listed[start : start + size]
            return Page(page, len(listed), start + size < len(listed) if told else None)

        found = [item async for item in iterate_pages(fetch, size, lambda item: item)]
        assert len(set(found)) == len(found)
        assert set(found) >= set(range(count))

    asyncio.run(run())


@given(
    st.integers(0, 40), st.integers(1, 6), st.lists(st.integers(0, 40), max_size=12), st.booleans()
)
def test_items_that_stay_are_found_while_others_vanish(
    count: int, size: int, vanishing: list[int], told: bool
) -> None:
    async def run() -> None:
        listed = list(range(count))
        leaving = iter(vanishing)

        async def fetch(number: int) -> Page[int]:
            gone = next(leaving, None)
            if gone in listed:
                listed.remove(gone)
            start = (number - 1) * size
            page = listed[start : start + size]
            return Page(page, len(listed), start + size < len(listed) if told else None)

        found = [item async for item in iterate_pages(fetch, size, lambda item: item)]
        assert len(set(found)) == len(found)
        assert set(found) >= set(listed)

    asyncio.run(run())


@given(st.integers(0, 20), st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_pages_smaller_than_asked_for_are_all_read(
    count: int, size: int, given: int, counted: bool
) -> None:
    async def run() -> None:
        async def fetch(number: int) -> Page[int]:
            start = (number - 1) * min(size, given)
            page = range(count)[start : start + min(size, given)]
            return Page(page, count if counted else None)

        found = [item async for item in iterate_pages(fetch, size, lambda item: item)]
        assert found == list(range(count))

    asyncio.run(run())


@pytest.mark.parametrize("total", [5, 2])
async def test_a_list_ends_with_its_total(total: int) -> None:
    asked = 0

    async def fetch(number: int) -> Page[int]:
        nonlocal asked
        asked += 1
        return Page(range(5)[number * 2 - 2 : number * 2], total)

    assert [item async for item in iterate_pages(fetch, 2, lambda item: item)] == [*range(total)]
    assert asked == (total + 1) // 2


async def test_a_list_without_a_total_that_repeats_itself_ends() -> None:
    async def fetch(number: int) -> Page[int]:
        return Page([1, 2], None)

    assert [item async for item in iterate_pages(fetch, 2, lambda item: item)] == [1, 2]


async def test_a_list_that_repeats_itself_and_claims_more_is_an_error() -> None:
    async def fetch(number: int) -> Page[int]:
        return Page([1, 2], 100_000)

    found = []

    async def read() -> None:
        async for item in iterate_pages(fetch, 2, lambda item: item):
            found.append(item)

    with pytest.raises(APIResponseError, match="same items on every page"):
        await read()
    assert found == [1, 2]


async def test_a_list_whose_items_come_and_go_all_the_time_comes_to_an_end() -> None:
    asked = 0

    async def fetch(number: int) -> Page[int]:
        nonlocal asked
        asked += 1
        return Page([number], 20 - asked % 2, number < 20)

    found = [item async for item in iterate_pages(fetch, 1, lambda item: item)]
    assert found == list(range(1, 21))
    assert asked < 300


@dataclass
class Listed:
    """A page that names the next."""

    items: Sequence[int]
    next_cursor: str | None


@given(st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=6), st.data())
def test_cursors_are_followed_past_empty_pages_to_the_last(
    pages: list[list[int]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(pages) - 1))

    async def fetch(cursor: str | None) -> CursorPage[int]:
        number = 0 if cursor is None else int(cursor)
        last = number == len(pages) - 1
        return Listed(pages[number], None if last else str(number + 1))

    async def read() -> list[int]:
        return [item async for item in iterate_cursors(fetch, str(first) if first else None)]

    assert asyncio.run(read()) == [item for page in pages[first:] for item in page]


async def test_a_list_that_names_the_same_page_again_comes_to_an_end() -> None:
    async def fetch(cursor: str | None) -> CursorPage[int]:
        return Listed([1], "stuck")

    found: list[int] = []

    async def read() -> None:
        async for item in iterate_cursors(fetch):
            found.append(item)

    with pytest.raises(APIResponseError, match="does not move on"):
        await read()
    assert found == [1, 1]
