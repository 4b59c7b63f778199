"""A local platform, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from environment import clean_environment as clean_environment
from prime_compute import AsyncComputeClient

from prime_local import LocalPlatform


@pytest.fixture
async def platform(
    clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalPlatform]:
    async with LocalPlatform(limits=False, seed=7) as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        yield platform


@pytest.fixture
async def client(platform: LocalPlatform) -> AsyncIterator[AsyncComputeClient]:
    async with AsyncComputeClient() as client:
        yield client
