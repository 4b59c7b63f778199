"""What the core's tests share: a clean environment, a scripted server, a transport to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from environment import clean_environment as clean_environment
from raw_server import RawServer
from transports import Connect, transport_to

from prime_core.transport import AsyncTransport


@pytest.fixture(autouse=True)
def in_a_clean_environment(clean_environment: None) -> None:
    pass


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pauses between attempts, for tests of what is sent rather than when."""
    monkeypatch.setattr("prime_core.retries.BASE_DELAY", 0.01)


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        yield server


@pytest.fixture
async def connect(server: RawServer) -> AsyncIterator[Connect]:
    """Makes transports to the server, or to the base URL that is given."""
    transports: list[AsyncTransport] = []

    def make(base_url: str | None = None, **settings: Any) -> AsyncTransport:
        transports.append(transport_to(base_url or server.url, **settings))
        return transports[-1]

    yield make
    for transport in transports:
        await transport.aclose()


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_core.creation.FIRST_LOOKS", (0.01, 0.02))
    monkeypatch.setattr("prime_core.creation.LATE_PATIENCE", 0.3)
    monkeypatch.setattr("prime_core.creation.LATE_PAUSE", 0.05)
