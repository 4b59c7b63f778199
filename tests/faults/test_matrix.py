"""Every fault of the table, met by a safe, a keyed and two unsafe calls, once and for ever."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cells import ROWS, Cell, FirstFailure, Names, run_async, run_sync
from table import FAULTS

# Cells wait most of their time; more at once would only wait for the processor.
AT_ONCE = 40


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    return names


@pytest.fixture(autouse=True)
def first_failures() -> Iterator[None]:
    logger, handler = logging.getLogger("prime_core"), FirstFailure()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def short_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command's client waits a moment longer than the platform, not 15 s."""
    monkeypatch.setattr("prime_sandboxes.gateway.DEADLINE_MARGIN", 0.1)


def cells(side: str, lasting: bool, names: Names) -> list[Cell]:
    return [Cell(row, fault, lasting, side, names) for fault in FAULTS for row in ROWS]


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
async def test_the_async_client_does_what_the_table_says(lasting: bool, names: Names) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cell: Cell) -> list[str]:
        async with places:
            return await run_async(cell)

    found = await asyncio.gather(*map(one, cells("async", lasting, names)))
    assert [problem for problems in found for problem in problems] == []


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
def test_the_sync_client_does_what_the_table_says(lasting: bool, names: Names) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(run_sync, cells("sync", lasting, names)))
    assert [problem for problems in found for problem in problems] == []


def test_the_names_of_the_cells_differ(names: Names) -> None:
    named = [str(cell) for cell in cells("async", True, names)]
    assert len(set(named)) == len(named)
