"""Reading many states at once, also where the platform has no route for it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    BatchStatusUnsupportedError,
    ForbiddenError,
    SandboxNotRunningError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)


async def test_each_id_stands_in_one_of_the_two_lists(
    either: AsyncSandboxClient, running: Running
) -> None:
    first, second = await running(either), await running(either)
    await either.delete(second.id)
    answer = await either.get_sandbox_statuses([first.id, "sbx_nobody", second.id])
    assert [(row.sandbox_id, row.status) for row in answer.statuses] == [
        (first.id, "RUNNING"),
        (second.id, "TERMINATED"),
    ]
    assert [(row.sandbox_id, row.code) for row in answer.errors] == [("sbx_nobody", "NOT_FOUND")]


@pytest.mark.parametrize(
    "wrong", [[], "sbx_1", [f"sbx_{number}" for number in range(101)]], ids=["none", "text", "101"]
)
async def test_a_question_that_the_platform_would_refuse_is_not_sent(
    either: AsyncSandboxClient, platform: LocalPlatform, wrong: list[str]
) -> None:
    with pytest.raises(ValueError, match="sandbox_ids"):
        await either.get_sandbox_statuses(wrong)
    assert platform.ledger()["requests"] == {}


@pytest.mark.parametrize("status", [404, 405])
async def test_a_platform_without_the_route_is_told_apart(
    either: AsyncSandboxClient, platform: LocalPlatform, status: int
) -> None:
    platform.add_faults(FaultRule("batch_get_sandbox_statuses", status=status))
    with pytest.raises(BatchStatusUnsupportedError, match=rf"^HTTP {status}: ") as caught:
        await either.get_sandbox_statuses(["sbx_1"])
    error = caught.value
    assert isinstance(error, APIError)
    assert (error.status_code, error.attempts) == (status, 1)
    assert error.operation == "batch_get_sandbox_statuses"
    assert error.host == platform.url.removeprefix("http://")
    assert error.request_id


@pytest.mark.parametrize("status", [404, 405])
async def test_waits_ask_one_by_one_where_the_route_is_missing_and_remember_it(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, status: int
) -> None:
    platform.add_faults(FaultRule("batch_get_sandbox_statuses", status=status))
    boxes = [await running(client) for _ in range(3)]
    asked = platform.ledger()["requests"]["get_sandbox"]
    ids = [box.id for box in boxes]
    assert await client.bulk_wait_for_creation(ids) == dict.fromkeys(ids, "RUNNING")
    await client.wait_for_creation(ids[0])
    requests = platform.ledger()["requests"]
    assert requests["batch_get_sandbox_statuses"] == 1
    assert requests["get_sandbox"] == asked + 4


async def test_single_look_ups_tell_the_same_failures(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    platform.add_faults(FaultRule("batch_get_sandbox_statuses", status=405))
    box = await running(client)
    await client.delete(box.id)
    ended, unknown = await asyncio.gather(
        client.bulk_wait_for_creation([box.id]),
        client.wait_for_creation("sbx_nobody"),
        return_exceptions=True,
    )
    assert isinstance(ended, SandboxNotRunningError)
    assert ended.status == "TERMINATED"
    assert isinstance(unknown, SandboxNotRunningError)
    assert unknown.error_type == "SANDBOX_NOT_FOUND"
    platform.add_faults(FaultRule("get_sandbox", status=403))
    with pytest.raises(ForbiddenError):
        await client.bulk_wait_for_creation([box.id])


@pytest.mark.parametrize("code", ["FORBIDDEN", "MANAGED", "NEWER_WORD"])
async def test_a_state_that_may_not_be_read_ends_the_wait_with_its_reason(
    client: AsyncSandboxClient, platform: LocalPlatform, code: str
) -> None:
    row = {"sandbox_id": "sbx_1", "code": code, "message": "No."}
    body = json.dumps({"statuses": [], "errors": [row]})
    platform.add_faults(FaultRule("batch_get_sandbox_statuses", status=200, body=body))
    with pytest.raises(SandboxNotRunningError, match=f"sbx_1.*{code}.*No") as caught:
        await client.wait_for_creation("sbx_1")
    assert caught.value.error_type == code


async def test_states_and_fields_that_are_not_known_yet_simply_work(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    row = {"sandbox_id": box.id, "status": "HIBERNATING", "mood": {"is": ["good"]}}
    body = json.dumps({"statuses": [row], "errors": [], "took_ms": 3})
    platform.add_faults(FaultRule("batch_get_sandbox_statuses", times=2, status=200, body=body))
    statuses = await client.get_sandbox_statuses([box.id])
    assert statuses.statuses[0].status == "HIBERNATING"
    # A state that is not known is neither running nor an end: the wait goes on.
    await client.bulk_wait_for_creation([box.id])
