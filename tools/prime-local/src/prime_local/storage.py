"""Storage: the records of sandboxes in a SQLite file, so that a restart knows them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_local.sandboxes.record import Sandbox
from prime_local.sandboxes.rows import dump_record, load_record
from prime_local.tasks import TaskSet

logger = logging.getLogger("prime_local")

_VERSION = 1
_CLOSE_SECONDS = 2.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS sandboxes"
    " (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS objects (number INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
    " id TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (kind, id))",
)
# By kind and id, oldest first.
Objects = Mapping[str, Mapping[str, Mapping[str, Any]]]
_Opened = tuple[sqlite3.Connection, dict[str, str], list[Sandbox], Objects]
_SAVE_FACT = (
    "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SAVE_RECORD = (
    "INSERT INTO sandboxes (id, record) VALUES (?, ?)"
    " ON CONFLICT (id) DO UPDATE SET record = excluded.record"
)
_SAVE_OBJECT = (
    "INSERT INTO objects (kind, id, record) VALUES (?, ?, ?)"
    " ON CONFLICT (kind, id) DO UPDATE SET record = excluded.record"
)


@dataclass
class _Batch:
    """Changes that are written in one transaction."""

    done: asyncio.Future[None]
    clear: bool = False
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    # By kind and id; None for what is deleted.
    objects: dict[tuple[str, str], str | None] = field(default_factory=dict)

    def carry(self, failed: _Batch) -> None:
        """Take over earlier changes that could not be written."""
        if not self.clear:
            self.clear = failed.clear
            self.records = {**failed.records, **self.records}
            self.objects = {**failed.objects, **self.objects}
        self.facts = {**failed.facts, **self.facts}


class Storage:
    """What a platform remembers beyond its end: without a data directory, nothing.

    The platform works on what it holds in memory, and only tells the storage. `facts` and
    `records`, oldest first, and `objects` of other kinds are what an earlier platform told.
    """

    def __init__(
        self, facts: Mapping[str, str], records: Sequence[Sandbox], objects: Objects
    ) -> None:
        self.facts = facts
        self.records = records
        self.objects = objects

    def save(self, record: Sandbox) -> None:
        """Note the present state of a sandbox, to be written soon."""

    def save_object(self, kind: str, object_id: str, row: Mapping[str, Any] | None) -> None:
        """Note the present state of anything else, as JSON; None when it is deleted."""

    def save_facts(self, **facts: str) -> None:
        """Note facts about the platform itself, to be written soon."""

    def clear(self) -> None:
        """Drop every record noted or written until now; facts stay."""

    async def written(self) -> None:
        """Wait until what was noted so far would survive the end of this process."""

    async def close(self) -> None:
        """Write what is left and let go of the data directory."""


class SqliteStorage(Storage):
    """A SQLite file that one platform at a time writes to, in batches, from a thread of its own."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        thread: ThreadPoolExecutor,
        facts: Mapping[str, str],
        records: Sequence[Sandbox],
        objects: Objects,
    ) -> None:
        super().__init__(facts, records, objects)
        self._connection = connection
        self._thread = thread
        self._tasks = TaskSet()
        self._next: _Batch | None = None
        self._last: asyncio.Future[None] | None = None
        self._failed: _Batch | None = None
        self._running = False

    @classmethod
    async def open(cls, path: Path) -> SqliteStorage:
        """Open or make the file.

        Raises:
            OSError: it belongs to a running platform or to another version, or cannot be used.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="prime-local-storage")
        opening = thread.submit(_open, path)
        try:
            connection, facts, records, objects = await asyncio.wrap_future(opening)
        except BaseException:
            thread.submit(_close_opened, opening)  # a callback may run in another thread
            thread.shutdown(wait=False)
            raise
        return cls(connection, thread, facts, records, objects)

    def save(self, record: Sandbox) -> None:
        # A copy: the record may change again while a thread writes it.
        self._batch().records[record.id] = dict(vars(record))

    def save_object(self, kind: str, object_id: str, row: Mapping[str, Any] | None) -> None:
        text = None if row is None else json.dumps(row, separators=(",", ":"))
        self._batch().objects[kind, object_id] = text

    def save_facts(self, **facts: str) -> None:
        self._batch().facts.update(facts)

    def clear(self) -> None:
        batch = self._batch()
        batch.records.clear()
        batch.objects.clear()
        batch.clear = True

    async def written(self) -> None:
        """Wait until what was noted so far would survive the end of this process.

        Raises:
            sqlite3.Error: it could not be written, e.g. for lack of space.
        """
        if self._last is not None:
            await asyncio.shield(self._last)

    async def close(self) -> None:
        """Write what is left and close the file; takes at most 2 s."""
        try:
            with contextlib.suppress(sqlite3.Error, asyncio.TimeoutError):
                await asyncio.wait_for(self.written(), _CLOSE_SECONDS / 2)
        finally:
            closed = asyncio.wrap_future(self._thread.submit(self._connection.close))
            self._thread.shutdown(wait=False)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(closed), _CLOSE_SECONDS / 2)
            await self._tasks.close(0.1)

    def _batch(self) -> _Batch:
        if self._next is None:
            self._last = asyncio.get_running_loop().create_future()
            self._next = _Batch(self._last)
            if not self._running:
                self._running = True
                self._tasks.start(self._write_batches())
        return self._next

    async def _write_batches(self) -> None:
        try:
            while self._next is not None:
                batch, self._next = self._next, None
                await self._write(batch)
        finally:
            self._running = False

    async def _write(self, batch: _Batch) -> None:
        if self._failed is not None:
            batch.carry(self._failed)
        self._failed = batch
        try:
            writing = self._thread.submit(_write, self._connection, batch)
            await asyncio.wrap_future(writing)
        except Exception as error:
            logger.error("cannot write to the storage, until the next change: %s", error)
            batch.done.set_exception(error)
            batch.done.exception()  # It need not have anybody who waits for it.
        else:
            self._failed = None
            batch.done.set_result(None)
        finally:
            # Whoever waits must not wait for ever, even when this was cancelled.
            batch.done.cancel()


def _open(path: Path) -> _Opened:
    # It holds the API key.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        # Exclusive: the lock lasts as long as the process, however that ends.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            raise OSError(errno.EINVAL, "made by another version of prime-local", str(path))
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
        facts = dict(connection.execute("SELECT name, value FROM facts"))
        rows = connection.execute("SELECT record FROM sandboxes ORDER BY number")
        records = [load_record(text) for (text,) in rows]
        objects: dict[str, dict[str, Any]] = {}
        for kind, key, text in connection.execute(
            "SELECT kind, id, record FROM objects ORDER BY number"
        ):
            objects.setdefault(kind, {})[key] = json.loads(text)
        return connection, facts, records, objects
    except sqlite3.Error as error:
        connection.close()
        busy = "locked" in str(error)
        text = "in use by another prime-local" if busy else f"cannot be used: {error}"
        raise OSError(errno.EBUSY if busy else errno.EIO, text, str(path)) from error
    except BaseException:
        connection.close()
        raise


def _close_opened(opening: Future[_Opened]) -> None:
    """Close what nobody waits for any more; runs in the thread that opened it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].close()


def _write(connection: sqlite3.Connection, batch: _Batch) -> None:
    rows = [(name, dump_record(values)) for name, values in batch.records.items()]
    connection.execute("BEGIN IMMEDIATE")
    try:
        if batch.clear:
            connection.execute("DELETE FROM sandboxes")
            connection.execute("DELETE FROM objects")
        connection.executemany(_SAVE_RECORD, rows)
        for (kind, key), text in batch.objects.items():
            if text is None:
                connection.execute("DELETE FROM objects WHERE kind = ? AND id = ?", (kind, key))
            else:
                connection.execute(_SAVE_OBJECT, (kind, key, text))
        connection.executemany(_SAVE_FACT, batch.facts.items())
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
