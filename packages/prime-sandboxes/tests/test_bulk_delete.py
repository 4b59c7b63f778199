"""Deleting many sandboxes with one call."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    AsyncAPIClient,
    AsyncSandboxClient,
    BadRequestError,
    CreateSandboxRequest,
    ForbiddenError,
    Sandbox,
    ServerError,
)

if TYPE_CHECKING:
    from conftest import ScriptedServer

pytestmark = pytest.mark.timeout(30)


async def make(client: AsyncSandboxClient, **fields: object) -> Sandbox:
    return await client.create(
        CreateSandboxRequest.model_validate(
            {"name": "box", "docker_image": "python:3.11-slim", **fields}
        )
    )


async def test_many_ids_are_deleted_in_chunks_of_a_hundred(platform: LocalPlatform) -> None:
    connections = AsyncAPIClient(limits={"sandbox-create": None})
    async with connections, AsyncSandboxClient(client=connections) as client:
        boxes = await asyncio.gather(*(make(client) for _ in range(230)))
        ids = [box.id for box in boxes] + [f"sbx_unknown{number}" for number in range(20)]
        result = await client.bulk_delete(ids)
    ledger = platform.ledger()
    assert ledger["requests"]["bulk_delete_sandboxes"] == 3
    assert ledger["sandboxes"]["live"] == 0
    assert result.succeeded == ids[:230]
    assert [entry["sandbox_id"] for entry in result.failed] == ids[230:]
    assert {entry["error"] for entry in result.failed} == {"Sandbox not found"}
    assert result.message == "Deleted 100 of 100; Deleted 100 of 100; Deleted 30 of 50"


async def test_an_id_that_is_repeated_is_deleted_once(either: AsyncSandboxClient) -> None:
    box = await make(either)
    result = await either.bulk_delete([box.id, box.id])
    assert result.succeeded == [box.id]
    assert result.message == "Deleted 1 of 1"


async def test_labels_delete_what_carries_all_of_them(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    both = await make(either, labels=["experiment", "staging"])
    await make(either, labels=["experiment"])
    result = await either.bulk_delete(labels=["experiment", "staging"])
    assert result.succeeded == [both.id]
    assert platform.ledger()["sandboxes"]["live"] == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "needs sandbox_ids or labels"),
        ({"labels": []}, "needs sandbox_ids or labels"),
        ({"team_id": "team-1", "all_users": True}, "needs sandbox_ids or labels"),
        ({"sandbox_ids": ["sbx_1"], "labels": ["x"]}, "not both"),
        ({"sandbox_ids": "sbx_1"}, "not one string"),
        ({"labels": "experiment"}, "not one string"),
        ({"labels": [str(number) for number in range(51)]}, "50"),
    ],
)
async def test_a_call_that_might_delete_too_much_is_refused_before_sending(
    either: AsyncSandboxClient, platform: LocalPlatform, arguments: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        await either.bulk_delete(**arguments)  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_no_ids_delete_nothing_and_send_nothing(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    result = await either.bulk_delete([])
    assert (result.succeeded, result.failed) == ([], [])
    assert platform.ledger()["requests"] == {}


async def test_the_scope_travels_as_it_was_given(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_BASE_URL", scripted.url)
    monkeypatch.setenv("PRIME_API_KEY", "key-1")
    monkeypatch.setenv("PRIME_TEAM_ID", "team-configured")
    answer = {"succeeded": ["sbx_1"], "failed": [], "message": "Deleted 1 of 1"}
    for _ in range(3):
        scripted.answer_json(200, answer)
    async with AsyncSandboxClient() as client:
        await client.bulk_delete(["sbx_1"])
        await client.bulk_delete(labels=["x"], team_id="team-1", user_id="usr_2", all_users=True)
        await client.sweep("x")
    mine, scoped, swept = scripted.received
    assert {request.method for request in scripted.received} == {"DELETE"}
    assert json.loads(mine.body) == {"sandbox_ids": ["sbx_1"], "all_users": False}
    assert json.loads(scoped.body) == {
        "labels": ["x"],
        "team_id": "team-1",
        "user_id": "usr_2",
        "all_users": True,
    }
    assert scoped.headers["x-prime-team-id"] == "team-1"
    assert json.loads(swept.body) == {
        "labels": ["x"],
        "team_id": "team-configured",
        "all_users": False,
    }
    assert swept.headers["x-prime-team-id"] == "team-configured"


async def test_a_scope_without_rights_is_refused_by_the_platform(
    either: AsyncSandboxClient,
) -> None:
    with pytest.raises(ForbiddenError):
        await either.bulk_delete(labels=["x"], user_id="usr_other")
    with pytest.raises(BadRequestError, match="all_users needs team_id"):
        await either.bulk_delete(labels=["x"], all_users=True)


async def test_a_chunk_that_fails_leaves_those_before_it_deleted(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    box = await make(either)
    platform.add_faults(FaultRule("bulk_delete_sandboxes", nth=(2, 3, 4), status=500))
    with pytest.raises(ServerError) as caught:
        await either.bulk_delete([box.id, *(f"sbx_{number}" for number in range(120))])
    assert caught.value.operation == "bulk_delete_sandboxes"
    assert (await either.get(box.id)).status == "TERMINATED"


async def test_a_sweep_deletes_what_carries_the_label(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    stray = await make(either, labels=["prime-fleet:1"])
    await make(either, labels=["prime-fleet:2"])
    assert (await either.sweep("prime-fleet:1")).succeeded == [stray.id]
    assert (await either.sweep("prime-fleet:1")).succeeded == []
    assert platform.ledger()["sandboxes"]["live"] == 1


async def test_a_sweep_without_a_label_is_refused(
    either: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    with pytest.raises(ValueError, match="label"):
        await either.sweep("")
    assert platform.ledger()["requests"] == {}
