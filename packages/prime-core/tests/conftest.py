"""What the core's tests share: a clean environment, a scripted server, a transport to it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

# The test folders are no packages; this one's helpers are modules of their own.
sys.path.insert(0, str(Path(__file__).parent / "support"))

from raw_server import RawServer
from transports import Connect, transport_to

from prime_core.transport import AsyncTransport


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith(("PRIME_", "SSL_CERT")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


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
