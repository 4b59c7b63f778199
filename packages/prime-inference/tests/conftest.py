"""Clients of a server that a test scripts byte by byte."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from environment import clean_environment as clean_environment
from raw_server import RawServer
from rows import KEY

from prime_core import AsyncAPIClient, Config
from prime_inference import APIClient, AsyncInferenceClient, InferenceClient


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


def config_for(server: RawServer, api_key: str = KEY) -> Config:
    return Config(api_key, inference_url=f"{server.url}/api/v1", team_id="team-1")


@pytest.fixture
async def client(server: RawServer) -> AsyncIterator[AsyncInferenceClient]:
    async with AsyncInferenceClient(client=AsyncAPIClient(config=config_for(server))) as client:
        yield client


@pytest.fixture
def sync_client(server: RawServer) -> Iterator[InferenceClient]:
    with InferenceClient(client=APIClient(config=config_for(server))) as client:
        yield client
