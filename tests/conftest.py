"""What the tests across packages share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from certificates import Authority, make_authority
from environment import clean_environment as clean_environment

from prime_local.subprocess_server import PlatformProcess


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority that only the tests trust."""
    return make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def platform_process() -> Iterator[PlatformProcess]:
    """A platform in a process of its own, so that the test's own end can't take it along."""
    with PlatformProcess(["--no-limits"]) as platform:
        yield platform


@pytest.fixture
def program_environment(platform_process: PlatformProcess) -> dict[str, str]:
    """The environment of a program that talks to that platform."""
    return {**os.environ, **platform_process.env, "PYTHONUNBUFFERED": "1"}
