"""A local platform, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from environment import clean_environment as clean_environment

from prime_compute import AsyncComputeClient, GpuOffer
from prime_local import LocalPlatform

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
async def client(platform: LocalPlatform) -> AsyncIterator[AsyncComputeClient]:
    async with AsyncComputeClient() as client:
        yield client


@pytest.fixture
async def offer(client: AsyncComputeClient) -> GpuOffer:
    """The documentation's offer: one H100 whose disk and vCPUs can be chosen."""
    page = await client.availability.list_gpus(
        gpu_type="H100_80GB", gpu_count=1, data_center_id="CANADA-1", cloud_id="n3-H100x1"
    )
    return page.items[0]


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has waits ask twenty times a second."""
    monkeypatch.setattr("prime_core.polling.TICK", 0.05)
    monkeypatch.setattr("prime_core.polling.TICK_JITTER", 0.005)
    monkeypatch.setattr("prime_core.polling.FIRST_INTERVAL", 0.05)
    monkeypatch.setattr("prime_core.polling.LONGEST_INTERVAL", 0.1)
    monkeypatch.setattr("prime_compute._async.pods.DISCARD_PAUSE", 0.05)
    monkeypatch.setattr("prime_compute._async.disks.DETACH_PAUSE", 0.05)


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the search for what a create without an answer has made."""
    monkeypatch.setattr("prime_core.creation.FIRST_LOOKS", (0.01, 0.05))
    monkeypatch.setattr("prime_core.creation.LATE_PATIENCE", 0.5)
    monkeypatch.setattr("prime_core.creation.LATE_PAUSE", 0.05)
