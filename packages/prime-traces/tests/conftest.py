"""Clients of a server that a test scripts byte by byte, and of a local platform."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from environment import clean_environment as clean_environment
from raw_server import RawServer
from spools import arrived as arrived

from prime_local import LocalPlatform
from prime_traces import AsyncTracesClient, TracesClient

T = TypeVar("T")

KEY = "pit_c0ffee-0123456789-secret"


@pytest.fixture(autouse=True)
def in_a_clean_environment(clean_environment: None) -> None:
    pass


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pauses between attempts, for tests of what is sent rather than when."""
    monkeypatch.setattr("prime_core.retries.BASE_DELAY", 0.01)


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has waits ask twenty times a second."""
    monkeypatch.setattr("prime_core.polling.TICK", 0.05)
    monkeypatch.setattr("prime_core.polling.TICK_JITTER", 0.005)
    monkeypatch.setattr("prime_core.polling.FIRST_INTERVAL", 0.05)
    monkeypatch.setattr("prime_core.polling.LONGEST_INTERVAL", 0.1)


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        yield server


@pytest.fixture
async def client(server: RawServer) -> AsyncIterator[AsyncTracesClient]:
    async with AsyncTracesClient(api_key=KEY, base_url=server.url) as client:
        yield client


class InThread:
    """A sync client with the async one's face: each call runs in a thread."""

    def __init__(self, client: TracesClient) -> None:
        self._client = client

    async def _steps(self, items: Iterator[T]) -> AsyncIterator[T]:
        assert isinstance(items, Generator)
        try:
            while (item := await asyncio.to_thread(next, items, None)) is not None:
                yield item
        finally:
            await asyncio.to_thread(items.close)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **options: Any) -> AsyncIterator[Any] | Awaitable[Any]:
            if name.startswith("iter"):
                return self._steps(method(*args, **options))
            return asyncio.to_thread(method, *args, **options)

        return call


@pytest.fixture(params=["async", "sync"])
async def either(
    request: pytest.FixtureRequest, server: RawServer
) -> AsyncIterator[AsyncTracesClient]:
    """The async client, then the sync one; tests see one face."""
    if request.param == "async":
        async with AsyncTracesClient(api_key=KEY, base_url=server.url) as client:
            yield client
        return
    sync = TracesClient(api_key=KEY, base_url=server.url)
    try:
        yield cast(AsyncTracesClient, InThread(sync))
    finally:
        await asyncio.to_thread(sync.close)


@pytest.fixture
async def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalPlatform]:
    """A local platform that the environment names; `Stored` reads what it has stored."""
    async with LocalPlatform(data_dir=tmp_path / "platform") as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        yield platform


@pytest.fixture
async def uploader(platform: LocalPlatform) -> AsyncIterator[AsyncTracesClient]:
    async with AsyncTracesClient() as client:
        yield client


class Stored:
    """What the platform has stored, read from its file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self._path)) as connection:
            return connection.execute(query).fetchall()

    def copies(self) -> Counter[str]:
        """How often each trace is stored, by its id."""
        return Counter(row[0] for row in self._rows("SELECT trace_id FROM traces"))

    def uploads(self) -> list[str]:
        """The ids of the uploads, sorted."""
        return sorted(row[0] for row in self._rows("SELECT digest FROM uploads"))

    def episodes(self) -> list[str]:
        return [row[0] for row in self._rows("SELECT episode_id FROM episodes")]


@pytest.fixture
def stored(platform: LocalPlatform, tmp_path: Path) -> Stored:
    return Stored(next((tmp_path / "platform").rglob("traces.sqlite3")))


MakeRecord = Callable[..., dict[str, Any]]


@pytest.fixture
def make_record() -> MakeRecord:
    """Makes small traces that the platform takes; further fields by name."""
    start = time.time()

    def make(number: int, **fields: object) -> dict[str, Any]:
        return {"id": f"tr-{number:06}", "timing": {"start": start}, "ok": True, **fields}

    return make
