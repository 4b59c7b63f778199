"""The traces store: one SQLite file, written by one thread and read by others."""

from __future__ import annotations

import asyncio
import errno
import os
import queue
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from prime_local.traces.errors import traces_error
from prime_local.traces.schema import SCHEMA, TABLES, VERSION

T = TypeVar("T")

_READERS = 2
_PAGE_BYTES = 16 * 1024
_CACHE_KIB = 32 * 1024
_WAIT_SECONDS = 10.0
_INTERRUPT_SECONDS = 0.02


class TracesStore:
    """Holds what was uploaded, in a file; nothing of it runs on the event loop.

    One thread writes, a transaction at a time. Reads have threads and connections of their own
    that see the last commit, so that neither waits for the other.

    Args:
        path: the file. Whoever opens it sees to it that no other platform does.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="prime-local-traces-write")
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="prime-local-traces-read")
        self._writer: _Connection | None = None
        self._readers: list[_Connection] = []
        self._idle: queue.SimpleQueue[_Connection] = queue.SimpleQueue()
        self._closing = False

    async def open(self) -> None:
        """Open or make the file.

        Raises:
            OSError: another version made it, or it cannot be used.
        """
        try:
            await asyncio.wrap_future(self._writing.submit(self._open))
        except BaseException:
            await self.close()
            raise

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction, and return what it returns once that is committed.

        Writes happen one after another, in the order of the calls. When `work` raises, nothing
        of it is kept.

        Raises:
            PlatformError: 503 once the store is closing.
        """
        return await self._run(self._writing, self._write, work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a read-only connection; it sees one state, at least the last commit.

        Raises:
            PlatformError: 503 once the store is closing.
        """
        return await self._run(self._reading, self._read, work)

    async def clear(self) -> None:
        """Forget everything."""
        await self.write(_clear)

    async def close(self) -> None:
        """Interrupt what is running, undo an unfinished write, and let go of the file."""
        self._closing = True
        # What waits its turn is not cancelled: a request would be left without an answer.
        self._reading.shutdown(wait=False)
        self._writing.shutdown(wait=False)
        with ThreadPoolExecutor(1) as waiting:
            ended = asyncio.wrap_future(waiting.submit(self._wait))
            while not ended.done():
                # Again and again: the last statement that was let through may begin only now.
                for connection in self._connections():
                    connection.stopped = True
                    connection.interrupt()
                await asyncio.wait({ended}, timeout=_INTERRUPT_SECONDS)
            for connection in self._connections():
                await asyncio.wrap_future(waiting.submit(_close, connection))
        self._readers.clear()
        self._writer = None

    def _connections(self) -> list[_Connection]:
        return [*self._readers, *([self._writer] if self._writer is not None else [])]

    def _wait(self) -> None:
        self._reading.shutdown()
        self._writing.shutdown()

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        run: Callable[[Callable[[sqlite3.Connection], T]], T],
        work: Callable[[sqlite3.Connection], T],
    ) -> T:
        try:
            return await asyncio.wrap_future(pool.submit(self._begin, run, work))
        except (sqlite3.OperationalError, RuntimeError):
            # Interrupted, or too late to begin.
            if self._closing:
                message = "prime-local is stopping"
                raise traces_error(503, "storage_unavailable", message) from None
            raise

    def _begin(
        self,
        run: Callable[[Callable[[sqlite3.Connection], T]], T],
        work: Callable[[sqlite3.Connection], T],
    ) -> T:
        if self._closing:
            raise RuntimeError("the store is closing")
        return run(work)

    def _open(self) -> None:
        try:
            # It holds what users wrote.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._writer = _connect(self._path.as_uri())
            _prepare(self._writer, self._path)
            for _ in range(_READERS):
                reader = _connect(self._path.as_uri() + "?mode=ro")
                self._readers.append(reader)
                self._idle.put(reader)
        except sqlite3.Error as error:
            text = f"cannot be used: {error}"
            raise OSError(errno.EIO, text, str(self._path)) from error

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._writer
        assert connection is not None
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        finally:
            connection.rollback()
        return result

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._idle.get(timeout=_WAIT_SECONDS)
        try:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.rollback()
        finally:
            self._idle.put(connection)


class _Connection(sqlite3.Connection):
    """A connection that can be told from another thread to begin no more statements.

    An interrupt meets only a statement that runs just then, which of short ones hardly any does.
    """

    stopped = False

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self._check()
        return super().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self._check()
        return super().executemany(*arguments)

    def cursor(self, factory: Any = None) -> Any:
        self._check()
        return super().cursor(factory or sqlite3.Cursor)

    def _check(self) -> None:
        if self.stopped:
            raise sqlite3.OperationalError("interrupted")


def _connect(uri: str) -> _Connection:
    # Each connection serves one thread at a time; only `interrupt` comes from another.
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=_WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, VERSION):
        raise OSError(errno.EINVAL, "made by another version of prime-local", str(path))
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _close(connection: _Connection) -> None:
    connection.stopped = False
    # An interrupt that met nothing would meet the tidying up of the log.
    connection.execute("SELECT 1")
    connection.close()


def _clear(connection: sqlite3.Connection) -> None:
    for table in TABLES:
        connection.execute(f"DELETE FROM {table}")
