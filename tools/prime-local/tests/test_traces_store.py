"""The store of traces: transactions, reads beside writes, and its end."""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from prime_local.errors import PlatformError
from prime_local.traces.schema import TABLES
from prime_local.traces.store import TracesStore

pytestmark = pytest.mark.timeout(30)

INSERT = "INSERT INTO uploads VALUES ('o', ?, 'trace', 1, '{}', 'u', 1.0)"


def insert(connection: sqlite3.Connection, digest: str = "d") -> None:
    connection.execute(INSERT, (digest,))


def count(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("SELECT count(*) FROM uploads").fetchone()
    return int(found)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[TracesStore]:
    store = TracesStore(tmp_path / "traces.sqlite3")
    await store.open()
    yield store
    await store.close()


async def test_a_write_is_read_by_the_next_read(store: TracesStore) -> None:
    await store.write(insert)
    assert await store.read(count) == 1


async def test_a_write_that_fails_leaves_nothing(store: TracesStore) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        insert(connection)
        raise KeyError("no")

    with pytest.raises(KeyError):
        await store.write(fail)
    assert await store.read(count) == 0
    await store.write(insert)


async def test_reads_change_nothing(store: TracesStore) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await store.read(insert)


async def test_neither_reads_nor_writes_wait_for_the_other(store: TracesStore) -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> tuple[int, int]:
        before = count(connection)
        reading.set()
        assert go_on.wait(10)
        return before, count(connection)

    slow_read = asyncio.create_task(store.read(slow))
    await asyncio.to_thread(reading.wait, 10)
    await store.write(insert)
    assert await store.read(count) == 1
    go_on.set()
    assert await slow_read == (0, 0), "one read sees one state"


async def test_closing_interrupts_what_runs(store: TracesStore) -> None:
    started = threading.Event()

    def endless(connection: sqlite3.Connection) -> None:
        started.set()
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        ).fetchone()

    running = asyncio.create_task(store.read(endless))
    await asyncio.to_thread(started.wait, 10)
    await asyncio.sleep(0.05)
    await asyncio.wait_for(store.close(), 5)
    with pytest.raises(PlatformError, match="stopping"):
        await running
    with pytest.raises(PlatformError, match="stopping"):
        await store.write(insert)


async def test_closing_ends_a_write_of_many_steps(store: TracesStore, tmp_path: Path) -> None:
    started = threading.Event()

    def endless(connection: sqlite3.Connection) -> None:
        for number in itertools.count():
            insert(connection, str(number))
            started.set()

    running = asyncio.create_task(store.write(endless))
    await asyncio.to_thread(started.wait, 10)
    await asyncio.wait_for(store.close(), 5)
    with pytest.raises(PlatformError, match="stopping"):
        await running
    again = TracesStore(tmp_path / "traces.sqlite3")
    await again.open()
    assert await again.read(count) == 0
    await again.close()


async def test_it_remembers_and_forgets(store: TracesStore, tmp_path: Path) -> None:
    await store.write(insert)
    await store.close()
    assert os.listdir(tmp_path) == ["traces.sqlite3"]
    again = TracesStore(tmp_path / "traces.sqlite3")
    await again.open()
    try:
        assert await again.read(count) == 1
        await again.clear()
        assert await again.read(count) == 0
    finally:
        await again.close()


async def test_clearing_knows_every_table(store: TracesStore) -> None:
    names = await store.read(
        lambda connection: [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
    )
    assert sorted(names) == sorted(TABLES)


async def test_only_its_owner_can_read_the_file(store: TracesStore, tmp_path: Path) -> None:
    await store.write(insert)
    modes = {name: (tmp_path / name).stat().st_mode & 0o077 for name in os.listdir(tmp_path)}
    assert set(modes.values()) == {0}, modes


@pytest.mark.parametrize("content", [b"x" * 100_000, None])
async def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "traces.sqlite3"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(OSError, match=r"traces\.sqlite3"):
        await TracesStore(path).open()


async def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(OSError, match="another version"):
        await TracesStore(path).open()


async def test_reads_that_wait_their_turn_learn_that_the_store_closes(store: TracesStore) -> None:
    begun, go_on = threading.Barrier(3), threading.Event()

    def hold(connection: sqlite3.Connection) -> None:
        begun.wait(10)
        go_on.wait(10)

    # As many as there are readers, and one that waits for them.
    held = [asyncio.create_task(store.read(hold)) for _ in range(2)]
    waiting = asyncio.create_task(store.read(count))
    await asyncio.to_thread(begun.wait, 10)
    closing = asyncio.create_task(store.close())
    await asyncio.sleep(0)
    go_on.set()
    await closing
    with pytest.raises(PlatformError, match="stopping"):
        await asyncio.wait_for(waiting, 10)
    await asyncio.gather(*held)
