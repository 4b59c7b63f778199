"""A local platform, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from environment import clean_environment as clean_environment

from prime_local import LocalPlatform
from prime_train import AsyncTrainClient

StartPlatform = Callable[..., Awaitable[LocalPlatform]]


@pytest.fixture
async def start_platform(
    clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[StartPlatform]:
    """Starts platforms; the environment names the last."""
    async with AsyncExitStack() as stack:

        async def start(**options: Any) -> LocalPlatform:
            platform = LocalPlatform(**{"limits": False, "seed": 7, **options})
            await stack.enter_async_context(platform)
            for name, value in platform.env.items():
                monkeypatch.setenv(name, value)
            return platform

        yield start


@pytest.fixture
async def platform(start_platform: StartPlatform) -> LocalPlatform:
    return await start_platform()


@pytest.fixture
async def client(platform: LocalPlatform) -> AsyncIterator[AsyncTrainClient]:
    async with AsyncTrainClient() as client:
        yield client


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, for the journals of transfers."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
async def volume(client: AsyncTrainClient, home: Path) -> str:
    """The name of a volume."""
    await client.volumes.create("research", "1Ti")
    return "research"


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has files be moved in parts of 5 MiB, which are as small as a store allows."""
    monkeypatch.setattr("prime_train.transfers.hashing.PART", 5 * 1024 * 1024)


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has waits ask twenty times a second."""
    monkeypatch.setattr("prime_core.polling.TICK", 0.05)
    monkeypatch.setattr("prime_core.polling.TICK_JITTER", 0.005)
    monkeypatch.setattr("prime_core.polling.FIRST_INTERVAL", 0.05)
    monkeypatch.setattr("prime_core.polling.LONGEST_INTERVAL", 0.1)
    monkeypatch.setattr("prime_train.log_following.START_PAUSE", 0.05)
    monkeypatch.setattr("prime_train.log_following.THROTTLED_PAUSES", (0.05,))
    monkeypatch.setattr("prime_train.log_pace.LOG_PAUSE", 0.05)
    monkeypatch.setattr("prime_train.run_waiting.FIRST_PAUSE", 0.05)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the search for what a create without an answer has made."""
    monkeypatch.setattr("prime_core.creation.FIRST_LOOKS", (0.01, 0.05))
    monkeypatch.setattr("prime_core.creation.LATE_PATIENCE", 0.5)
    monkeypatch.setattr("prime_core.creation.LATE_PAUSE", 0.05)
