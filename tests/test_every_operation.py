"""Each current operation of the contract is served, and a client method comes to call it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from reaching import MOUNTING, REACH, Ground, request

from prime_local import PlatformProcess
from prime_local.contract import load_contract
from prime_sandboxes import AsyncImageClient, AsyncSandboxClient

CURRENT = {
    operation.id
    for operation in load_contract().operations.values()
    if operation.area == "sandboxes" and operation.spec.get("x-status") != "legacy"
}

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def platform() -> Iterator[PlatformProcess]:
    with PlatformProcess(["--no-limits"], isolation="auto") as platform:
        yield platform


@pytest.fixture
async def ground(
    platform: PlatformProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Ground]:
    platform.reset()
    for name in ("PRIME_TEAM_ID", "PRIME_USER_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in platform.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "folder"
    folder.mkdir()
    async with AsyncSandboxClient() as client, AsyncImageClient() as images:
        box = await client.create(request("ground"))
        await client.wait_for_creation(box.id)
        yield Ground(client, images, box.id, folder)
    platform.reset()
    platform.check_contract()


def test_how_each_current_operation_is_reached_is_known() -> None:
    assert REACH.keys() == CURRENT


@pytest.mark.parametrize("operation_id", sorted(CURRENT))
async def test_an_operation_is_served_and_reached_by_a_method(
    operation_id: str, ground: Ground, platform: PlatformProcess
) -> None:
    if operation_id in MOUNTING and platform.isolation == "process":
        reason = "isolation is process: nothing can be mounted"
        if os.environ.get("PRIME_REQUIRE_ISOLATION"):
            pytest.fail(reason)
        pytest.skip(reason)
    before = platform.ledger()["requests"].get(operation_id, 0)
    await REACH[operation_id](ground)
    seen = platform.ledger()
    assert seen["requests"].get(operation_id, 0) > before
    assert "501" not in seen["responses"]
