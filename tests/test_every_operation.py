"""Each current operation of the contract is served, and a client method comes to call it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator
from pathlib import Path

import pytest
import reaching
import reaching_compute
import reaching_inference
import reaching_training

from prime_compute import AsyncComputeClient
from prime_core import AsyncLogin
from prime_inference import AsyncInferenceClient
from prime_local import PlatformProcess
from prime_local.contract import load_contract
from prime_sandboxes import AsyncImageClient, AsyncSandboxClient
from prime_train import AsyncTrainClient

# Areas whose every operation is reached.
AREAS: dict[str, Collection[str]] = {
    "sandboxes": reaching.REACH,
    "compute": reaching_compute.REACH,
    "inference": reaching_inference.REACH,
    "training": reaching_training.REACH,
}

pytestmark = pytest.mark.timeout(60)


def current(area: str) -> set[str]:
    return {
        operation.id
        for operation in load_contract().operations.values()
        if operation.area == area and operation.spec.get("x-status") not in ("legacy", "removed")
    }


@pytest.fixture(scope="module")
def platform() -> Iterator[PlatformProcess]:
    options = ["--no-limits", "--rollout-time", "60"]
    with PlatformProcess(options, isolation="auto") as platform:
        yield platform


@pytest.fixture
def account(
    platform: PlatformProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The environment of a program that uses the platform, on which nothing has happened yet."""
    platform.reset()
    for name in ("PRIME_TEAM_ID", "PRIME_USER_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in platform.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    yield
    platform.reset()
    platform.check_contract()


@pytest.fixture
async def ground(account: None, tmp_path: Path) -> AsyncIterator[reaching.Ground]:
    folder = tmp_path / "folder"
    folder.mkdir()
    async with AsyncSandboxClient() as client, AsyncImageClient() as images:
        box = await client.create(reaching.request("ground"))
        await client.wait_for_creation(box.id)
        yield reaching.Ground(client, images, box.id, folder)


@pytest.fixture
async def compute_ground(
    account: None, platform: PlatformProcess
) -> AsyncIterator[reaching_compute.Ground]:
    async with AsyncComputeClient() as client, AsyncLogin() as login:
        team = (await client.teams.list()).data[0].team_id
        yield reaching_compute.Ground(client, login, platform, team)


@pytest.mark.parametrize("area", AREAS)
def test_how_each_current_operation_is_reached_is_known(area: str) -> None:
    assert set(AREAS[area]) == current(area)


@pytest.mark.parametrize("operation_id", sorted(reaching.REACH))
async def test_an_operation_is_served_and_reached_by_a_method(
    operation_id: str, ground: reaching.Ground, platform: PlatformProcess
) -> None:
    if operation_id in reaching.MOUNTING and platform.isolation == "process":
        reason = "isolation is process: nothing can be mounted"
        if os.environ.get("PRIME_REQUIRE_ISOLATION"):
            pytest.fail(reason)
        pytest.skip(reason)
    await check_reached(platform, operation_id, reaching.REACH[operation_id](ground))


@pytest.mark.parametrize("operation_id", sorted(reaching_compute.REACH))
async def test_an_operation_of_compute_is_served_and_reached_by_a_method(
    operation_id: str, compute_ground: reaching_compute.Ground, platform: PlatformProcess
) -> None:
    reach = reaching_compute.REACH[operation_id]
    await check_reached(platform, operation_id, reach(compute_ground))


@pytest.mark.parametrize("operation_id", sorted(reaching_inference.REACH))
async def test_an_operation_of_inference_is_served_and_reached_by_a_method(
    operation_id: str, account: None, platform: PlatformProcess
) -> None:
    reach = reaching_inference.REACH[operation_id]
    async with AsyncInferenceClient() as client:
        await check_reached(platform, operation_id, reach(client))


@pytest.mark.parametrize("operation_id", sorted(reaching_training.REACH))
async def test_an_operation_of_training_is_served_and_reached_by_a_method(
    operation_id: str, account: None, platform: PlatformProcess, tmp_path: Path
) -> None:
    reach = reaching_training.REACH[operation_id]
    folder = tmp_path / "folder"
    folder.mkdir()
    async with AsyncTrainClient() as client, AsyncComputeClient() as compute:
        ground = reaching_training.Ground(client, compute, folder, platform)
        await check_reached(platform, operation_id, reach(ground))


async def check_reached(
    platform: PlatformProcess, operation_id: str, reach: Awaitable[object]
) -> None:
    before = platform.ledger()["requests"].get(operation_id, 0)
    await reach
    seen = platform.ledger()
    assert seen["requests"].get(operation_id, 0) > before
    assert "501" not in seen["responses"]
