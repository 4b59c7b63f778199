"""Pytest fixtures; nothing of the platform is imported before a test asks for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from prime_local.platform import LocalPlatform
    from prime_local.subprocess_server import PlatformProcess

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:
    # Without an async plugin pytest itself explains what a test of `prime_platform` lacks.
    async_fixture = pytest.fixture  # type: ignore[assignment]


@async_fixture
async def prime_platform() -> AsyncIterator[LocalPlatform]:
    """A platform of the test's own in its event loop, without creation limits.

    Leaving it fails the test if the platform broke the contract.
    """
    from prime_local.platform import LocalPlatform

    async with LocalPlatform(limits=False) as platform:
        yield platform


@pytest.fixture(scope="session")
def _prime_platform_process() -> Iterator[PlatformProcess]:
    from prime_local.subprocess_server import PlatformProcess

    with PlatformProcess(["--no-limits"]) as server:
        yield server


@pytest.fixture
def prime_platform_server(_prime_platform_process: PlatformProcess) -> Iterator[PlatformProcess]:
    """One platform process for the whole test session, without creation limits.

    Tests share it: call its `reset()` first where an earlier test's sandboxes would matter.
    Whichever test makes the platform break the contract fails.
    """
    yield _prime_platform_process
    _prime_platform_process.check_contract()
