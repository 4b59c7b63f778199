"""Creating, reading and deleting single sandboxes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    CreateSandboxRequest,
    NotFoundError,
    PaymentRequiredError,
    QuotaExceededError,
    StartCommand,
    ValidationError,
)

if TYPE_CHECKING:
    from conftest import Running, StartPlatform

pytestmark = pytest.mark.timeout(30)


def wanted(**fields: object) -> CreateSandboxRequest:
    return CreateSandboxRequest.model_validate(
        {"name": "box", "docker_image": "python:3.11-slim", **fields}
    )


async def test_a_created_sandbox_is_what_was_asked_for(either: AsyncSandboxClient) -> None:
    created = await either.create(
        wanted(
            name="analytics-lab",
            cpu_cores=2,
            memory_gb=4,
            disk_size_gb=20,
            timeout_minutes=240,
            idle_timeout_minutes=15,
            labels=["a", "b"],
            environment_vars={"COLOUR": "blue"},
            secrets={"KEY": "sesame"},
        )
    )
    assert created.status == "PENDING"
    read = await either.get(created.id)
    assert (read.id, read.name, read.docker_image) == (
        created.id,
        "analytics-lab",
        "python:3.11-slim",
    )
    assert (read.cpu_cores, read.memory_gb, read.disk_size_gb) == (2, 4, 20)
    assert (read.timeout_minutes, read.idle_timeout_minutes) == (240, 15)
    assert read.labels == ["a", "b"]
    assert read.environment_vars == {"COLOUR": "blue"}
    assert not read.secrets
    assert read.created_at.tzinfo is not None


async def test_a_request_without_a_key_makes_a_new_sandbox_each_time_and_stays_as_it_is(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    request = wanted()
    before = request.model_dump()
    first, second = await either.create(request), await either.create(request)
    assert first.id != second.id
    assert request.model_dump() == before
    assert request.idempotency_key is None
    creates = platform.ledger()["creates_per_key"]
    assert sorted(creates.values()) == [1, 1]
    assert all(len(key) == 32 for key in creates)


async def test_requests_with_one_key_make_one_sandbox(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    request = wanted(idempotency_key="batch-1")
    first, second = await either.create(request), await either.create(request)
    assert first.id == second.id
    assert platform.ledger()["creates_per_key"] == {"batch-1": 1}
    assert platform.ledger()["sandboxes"]["created"] == 1


@pytest.mark.parametrize(
    ("asked", "made_for"), [(None, "team-configured"), ("team-other", "team-other"), ("", None)]
)
async def test_the_team_of_a_request_goes_before_the_configured_one(
    platform: LocalPlatform,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    made_for: str | None,
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-configured")
    async with AsyncSandboxClient() as client:
        created = await client.create(wanted(team_id=asked))
        assert created.team_id == made_for
        mine = await client.list(team_id=asked)
        assert [sandbox.id for sandbox in mine.sandboxes] == [created.id]


async def test_a_request_that_the_platform_refuses_names_its_problems(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    with pytest.raises(ValidationError, match=r"^HTTP 422: ") as caught:
        await either.create(wanted(docker_image="registry.example.com/app:v1"))
    (path, message), *_ = caught.value.problems
    assert path == "docker_image"
    assert "transfer" in message
    assert caught.value.operation == "create_sandbox"
    assert platform.ledger()["requests"]["create_sandbox"] == 1


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (402, "Insufficient balance", PaymentRequiredError),
        (429, "Active sandbox limit reached (1024)", QuotaExceededError),
    ],
)
async def test_a_refusal_that_no_retry_cures_is_raised_at_once(
    either: AsyncSandboxClient,
    platform: LocalPlatform,
    status: int,
    detail: str,
    expected: type[APIError],
) -> None:
    platform.add_faults(
        FaultRule("create_sandbox", status=status, body=f'{{"detail": "{detail}"}}')
    )
    with pytest.raises(expected) as caught:
        await either.create(wanted())
    assert str(caught.value).startswith(f"HTTP {status}: {detail}")
    assert caught.value.status_code == status
    assert platform.ledger()["requests"]["create_sandbox"] == 1


async def test_the_documented_burst_is_paced_so_that_nothing_is_refused(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(limits=True)
    async with AsyncSandboxClient() as client:
        began = time.monotonic()
        await asyncio.gather(*(client.create(wanted()) for _ in range(24)))
        elapsed = time.monotonic() - began
    assert platform.ledger()["responses"] == {"201": 24}
    # 192 per 10 s, at 95 %, after a burst of about four.
    assert 0.9 < elapsed < 3


async def test_an_unknown_sandbox_is_not_found(either: AsyncSandboxClient) -> None:
    for call in (
        either.get("sbx_nobody"),
        either.delete("sbx_nobody"),
        either.get_logs("sbx_nobody"),
        either.get_error_context("sbx_nobody"),
    ):
        with pytest.raises(NotFoundError, match=r"^HTTP 404: Sandbox not found") as caught:
            await call
        assert caught.value.request_id
        assert caught.value.operation
        assert caught.value.attempts == 1


@pytest.mark.parametrize("odd", ["a/b", "a?page=1", "a#b", "a b", "ü", "%2F", "sbx_1/logs"])
async def test_an_odd_id_is_looked_up_as_it_is(
    client: AsyncSandboxClient, platform: LocalPlatform, odd: str
) -> None:
    with pytest.raises(NotFoundError, match="Sandbox not found"):
        await client.get(odd)
    assert platform.ledger()["requests"] == {"get_sandbox": 1}


@pytest.mark.parametrize("wrong", ["", ".", ".."])
async def test_an_id_that_would_change_the_route_is_refused_before_sending(
    client: AsyncSandboxClient, platform: LocalPlatform, wrong: str
) -> None:
    with pytest.raises(ValueError, match="sandbox_id"):
        await client.delete(wrong)
    assert platform.ledger()["requests"] == {}


async def test_a_sandbox_can_be_deleted_twice(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    sandbox = await running(either)
    assert (await either.delete(sandbox.id))["success"] is True
    assert (await either.get(sandbox.id)).status == "TERMINATED"
    await either.delete(sandbox.id)
    assert platform.ledger()["sandboxes"] == {"live": 0, "peak": 1, "created": 1, "deleted": 1}


async def test_a_delete_that_finds_what_its_lost_attempt_deleted_is_done(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    created = await client.create(wanted())
    platform.add_faults(
        FaultRule("delete_sandbox", nth=1, reset="after_commit"),
        FaultRule("delete_sandbox", status=404),
    )
    assert await client.delete(created.id) == {}
    assert platform.ledger()["sandboxes"]["live"] == 0
    # Without a lost attempt the same answer means that there is no such sandbox.
    with pytest.raises(NotFoundError):
        await client.delete(created.id)


async def test_logs_hold_what_the_start_command_wrote(
    either: AsyncSandboxClient, running: Running
) -> None:
    start = StartCommand(executable="/bin/sh", args=["-c", "echo grüße; exec sleep 60"])
    sandbox = await running(either, start_command=start)
    deadline = time.monotonic() + 10
    while not (logs := await either.get_logs(sandbox.id)):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert logs == "grüße\n"
    assert sandbox.start_command == start


async def test_the_error_context_says_why_a_sandbox_failed(either: AsyncSandboxClient) -> None:
    created = await either.create(wanted(docker_image="nobody/nothing:v9"))
    deadline = time.monotonic() + 10
    while (context := await either.get_error_context(created.id)).status != "ERROR":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert context.error_type == "IMAGE_PULL_FAILED"
    assert "nobody/nothing:v9" in (context.error_message or "")
