"""Every fault of the table, met by a safe, a keyed and two unsafe calls, once and for ever."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cells import ROWS, Cell, FirstFailure, Names, run_async, run_sync
from certificates import Authority, make_authority
from table import FAULTS

# Cells wait most of their time; more at once would only wait for the processor.
AT_ONCE = 40


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"))


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


def agree(found: Iterable[list[str]]) -> None:
    problems = [problem for problems in found for problem in problems]
    assert not problems, "\n".join(["not as the table says:", *problems])


Cells = Callable[[str, bool], list[Cell]]


@pytest.fixture
def cells(names: Names, authority: Authority) -> Cells:
    """Every cell of a side, for a fault that strikes once or for ever."""

    def make(side: str, lasting: bool) -> list[Cell]:
        return [
            Cell(row, fault, lasting, side, names, authority) for fault in FAULTS for row in ROWS
        ]

    return make


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
async def test_the_async_client_does_what_the_table_says(lasting: bool, cells: Cells) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cell: Cell) -> list[str]:
        async with places:
            return await run_async(cell)

    found = await asyncio.gather(*map(one, cells("async", lasting)))
    agree(found)


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for ever"])
def test_the_sync_client_does_what_the_table_says(lasting: bool, cells: Cells) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(run_sync, cells("sync", lasting)))
    agree(found)


def test_the_names_of_the_cells_differ(cells: Cells) -> None:
    named = [str(cell) for cell in cells("async", True)]
    assert len(set(named)) == len(named)
