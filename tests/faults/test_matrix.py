"""Every fault of the table, met by a safe, a keyed and two unsafe calls, once and for ever."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from cells import ROWS, SECRETS, Cell, FirstFailure, Names
from certificates import Authority
from table import FAULTS
from verdicts import problems

from prime_core import APIClient, AsyncAPIClient
from prime_sandboxes import AsyncSandboxClient, SandboxClient

pytestmark = pytest.mark.usefixtures("clean_environment")

# Cells wait most of their time; more at once would only wait for the processor.
AT_ONCE = 25


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    return names


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Everybody logs at DEBUG; nobody logs a secret."""
    caplog.set_level(logging.DEBUG)
    logger, handler = logging.getLogger("prime_core"), FirstFailure()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    lines = [record.getMessage() for record in caplog.get_records("call")]
    assert len(lines) > len(FAULTS)
    assert [line for line in lines if any(secret in line for secret in SECRETS)] == []


@pytest.fixture(autouse=True)
def short_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command's client waits a moment longer than the platform, not 15 s."""
    monkeypatch.setattr("prime_sandboxes.command_streams.DEADLINE_MARGIN", 0.1)


def agree(found: Iterable[list[str]]) -> None:
    every = [problem for problems_of_cell in found for problem in problems_of_cell]
    assert not every, "\n".join(["not as the table says:", *every])


async def run_async(cell: Cell) -> list[str]:
    """Makes a cell's call with the async client; what is not as it must be."""
    with cell.serving() as config:
        connections = AsyncAPIClient(config=config, **cell.settings())
        async with AsyncSandboxClient(client=connections) as client:
            started = time.monotonic()
            error = None
            try:
                await asyncio.wait_for(cell.row.make(client, cell), 30)
            except Exception as raised:
                error = raised
            return problems(cell, error, time.monotonic() - started)


def run_sync(cell: Cell) -> list[str]:
    """Makes a cell's call with the sync client; what is not as it must be."""
    with cell.serving() as config:
        connections = APIClient(config=config, **cell.settings())
        with SandboxClient(connections) as client:
            started = time.monotonic()
            error = None
            try:
                cell.row.make_sync(client, cell)
            except Exception as raised:
                error = raised
            return problems(cell, error, time.monotonic() - started)


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
