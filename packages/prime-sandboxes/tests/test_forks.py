"""Forks: a checkpoint and a new sandbox, or nothing at all."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_core.reaper import reaper
from prime_local import FaultRule, LocalPlatform, PlatformProcess
from prime_sandboxes import (
    APIResponseError,
    AsyncSandboxClient,
    CheckpointFailedError,
    CheckpointTimeoutError,
    ConflictError,
    CreateSandboxRequest,
    NotFoundError,
    PaymentRequiredError,
    Sandbox,
    SandboxClient,
)

if TYPE_CHECKING:
    from conftest import Requested, Running, StartPlatform

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.usefixtures("quick_polls", "quick_discards"),
]


PROGRAM = """
import sys
from prime_sandboxes import APIClient, SandboxClient

SandboxClient(APIClient()).fork(sys.argv[1])
"""


@pytest.fixture
def quick_discards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_sandboxes._async.checkpoints.DISCARD_PAUSE", 0.05)


async def nothing_left(client: AsyncSandboxClient, source: Sandbox) -> bool:
    """Whether a fork left neither a sandbox nor a checkpoint, once the clean-up is over."""
    await reaper.drain(client._transport)
    live = [each.id async for each in client.iter(exclude_terminated=True)]
    return live == [source.id] and await client.list_checkpoints(source.id) == []


async def test_a_fork_starts_with_the_files_of_its_source(
    either: AsyncSandboxClient, running: Running
) -> None:
    source = await running(
        either,
        name="web",
        cpu_cores=2,
        memory_gb=3,
        timeout_minutes=90,
        labels=["team-a", "prime-fleet:1"],
        region="us",
        network_allowlist=["example.com"],
    )
    await either.execute_command(source.id, "echo hello > note")
    fork = await either.fork(source.id)
    made = fork.sandbox
    assert (fork.checkpoint.sandbox_id, fork.checkpoint.state) == (source.id, "DURABLE")
    assert (made.name, made.docker_image) == ("web-fork", source.docker_image)
    assert (made.cpu_cores, made.memory_gb, made.timeout_minutes) == (2, 3, 90)
    assert (made.labels, made.region, made.team_id) == (["team-a"], "us", None)
    assert made.network_allowlist == ["example.com"]
    await either.wait_for_creation(made.id)
    assert (await either.execute_command(made.id, "cat note")).stdout == "hello\n"
    with pytest.raises(ConflictError):
        await either.delete_checkpoint(fork.checkpoint.id)
    await either.delete(made.id)
    await either.delete_checkpoint(fork.checkpoint.id)


async def test_what_is_named_goes_before_the_source(
    client: AsyncSandboxClient, running: Running
) -> None:
    source = await running(client, memory_gb=2, name="n" * 100)
    fork = await client.fork(source.id, "mine", cpu_cores=4, memory_gb=8, timeout_minutes=-1)
    made = fork.sandbox
    assert (made.name, made.cpu_cores, made.memory_gb) == ("mine", 4, 8)
    assert made.timeout_minutes == -1
    assert (await client.fork(source.id)).sandbox.name == "n" * 95 + "-fork"


@pytest.mark.parametrize("team", [None, "team-b"])
async def test_a_fork_belongs_to_whom_its_source_belongs(
    platform: LocalPlatform,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    team: str | None,
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-a")
    async with AsyncSandboxClient() as client:
        source = await running(client, team_id=team or "")
        fork = await client.fork(source.id)
    assert (source.team_id, fork.sandbox.team_id, fork.checkpoint.team_id) == (team, team, team)


async def test_a_fork_cancelled_while_its_checkpoint_is_made_leaves_nothing(
    start_platform: StartPlatform, running: Running, requested: Requested
) -> None:
    platform = await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        source = await running(client)
        call = asyncio.ensure_future(client.fork(source.id))
        await requested(platform, "batch_get_checkpoints")
        await _cancelled(call)
        await requested(platform, "delete_checkpoint")
        await platform.advance(60)
        assert await nothing_left(client, source)
    assert platform.ledger()["sandboxes"]["created"] == 1


@pytest.mark.parametrize("operation", ["create_checkpoint", "create_sandbox"])
async def test_a_fork_cancelled_while_a_request_is_under_way_leaves_nothing(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    requested: Requested,
    operation: str,
) -> None:
    source = await running(client)
    before = platform.ledger()["requests"].get(operation, 0)
    platform.add_faults(FaultRule(operation, delay_after=0.3, times=1))
    call = asyncio.ensure_future(client.fork(source.id))
    while platform.ledger()["requests"].get(operation, 0) == before:
        assert not call.done()
        await asyncio.sleep(0.01)
    await _cancelled(call)
    assert await nothing_left(client, source)


async def test_a_fork_whose_sandbox_is_refused_leaves_no_checkpoint(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    source = await running(client)
    platform.add_faults(FaultRule("create_sandbox", status=402))
    with pytest.raises(PaymentRequiredError):
        await client.fork(source.id)
    assert await nothing_left(client, source)


async def test_a_fork_whose_sandbox_was_made_without_an_answer_leaves_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    source = await running(client)
    platform.add_faults(FaultRule("create_sandbox", garbage=True, times=3))
    with pytest.raises(APIResponseError):
        await client.fork(source.id)
    assert await nothing_left(client, source)
    assert platform.ledger()["sandboxes"]["created"] == 2


async def test_a_fork_whose_checkpoint_fails_leaves_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    source = await running(client)
    platform.add_faults(FaultRule("create_checkpoint", fails="the disk broke"))
    with pytest.raises(CheckpointFailedError, match="the disk broke"):
        await client.fork(source.id)
    assert await nothing_left(client, source)


async def test_a_checkpoint_that_is_late_is_left_to_the_caller(
    start_platform: StartPlatform, running: Running
) -> None:
    platform = await start_platform(checkpoint_time=60)
    async with AsyncSandboxClient() as client:
        source = await running(client)
        with pytest.raises(CheckpointTimeoutError) as caught:
            await client.fork(source.id, wait_timeout=0.2)
        await platform.advance(60)
        await reaper.drain(client._transport)
        late = await client.wait_for_checkpoint(caught.value.checkpoint_id)
        assert await client.list_checkpoints(source.id) == [late]


def test_a_program_that_is_interrupted_in_a_fork_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PlatformProcess(["--no-limits", "--checkpoint-time", "60"]) as platform:
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        with SandboxClient() as client:
            source = client.create(CreateSandboxRequest(name="a", docker_image="python"))
            client.wait_for_creation(source.id)
            program = subprocess.Popen([sys.executable, "-c", PROGRAM, source.id])
            try:
                _wait_for_request(platform, "batch_get_checkpoints")
                assert len(client.list_checkpoints(source.id)) == 1
                program.send_signal(signal.SIGINT)
                _wait_for_request(platform, "delete_checkpoint")
                platform.advance(60)
                assert program.wait(15) != 0
            finally:
                program.kill()
                program.wait()
            assert client.list_checkpoints(source.id) == []
            assert platform.ledger()["sandboxes"]["created"] == 1


async def test_a_fork_of_what_is_not_there_makes_nothing(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    with pytest.raises(NotFoundError):
        await client.fork("sbx_none")
    assert "create_checkpoint" not in platform.ledger()["requests"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sandbox_id", {"sandbox_id": ""}),
        ("name", {"name": "n" * 101}),
        ("cpu_cores", {"cpu_cores": 17}),
        ("memory_gb", {"memory_gb": 0}),
        ("timeout_minutes", {"timeout_minutes": 0}),
        ("wait_timeout", {"wait_timeout": 0}),
    ],
)
async def test_wrong_input_is_refused_before_anything_is_sent(
    client: AsyncSandboxClient, platform: LocalPlatform, name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=name):
        await client.fork(**{"sandbox_id": "sbx_1", **arguments})
    assert platform.ledger()["requests"] == {}


async def _cancelled(call: asyncio.Future[Any]) -> None:
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


def _wait_for_request(platform: PlatformProcess, operation: str) -> None:
    deadline = time.monotonic() + 15
    while not platform.ledger()["requests"].get(operation):
        assert time.monotonic() < deadline, f"no request to {operation}"
        time.sleep(0.02)
