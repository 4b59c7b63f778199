"""The states of a sandbox that a platform shows only when asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

STATUSES = "/api/v1/sandbox/status:batchGet"


async def test_first_use_of_an_image_waits_for_its_build(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(image_build_time=300)
    first = await client.create(docker_image="python:3.11")
    build = first["pendingImageBuildId"]
    assert (first["status"], bool(build)) == ("PENDING", True)
    await platform.advance(200)
    second = await client.create(docker_image="python:3.11")
    other = await client.create(docker_image="python:3.12")
    assert second["pendingImageBuildId"] == build
    assert other["pendingImageBuildId"] not in (build, None)
    answer = await client.call("POST", STATUSES, {"sandbox_ids": [first["id"]]})
    assert answer.body["statuses"][0]["pending_image_build_id"] == build

    await platform.advance(101)
    for sandbox in (first, second):
        found = await client.until(sandbox, "RUNNING")
        assert found["pendingImageBuildId"] is None
    assert (await client.get(other))["status"] == "PENDING"
    assert (await client.create(docker_image="python:3.11"))["pendingImageBuildId"] is None


async def test_sandbox_can_be_deleted_while_its_image_is_built(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(image_build_time=300)
    box = await client.create()
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    await platform.advance(400)
    found = await client.get(box)
    assert (found["status"], found["pendingImageBuildId"]) == ("TERMINATED", None)


async def test_reset_makes_the_next_use_of_an_image_its_first(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(image_build_time=300)
    await client.create()
    await platform.advance(301)
    await platform.reset()
    assert (await client.create())["pendingImageBuildId"] is not None


async def test_image_that_cannot_be_pulled_fails_after_its_build(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(image_build_time=300)
    box = await client.create(docker_image="acme/app:v1")
    await platform.advance(301)
    found = await client.until(box, "ERROR")
    assert (found["errorType"], found["pendingImageBuildId"]) == ("IMAGE_PULL_FAILED", None)


async def test_gateway_answers_some_time_after_running(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(gateway_delay=30)
    box = await client.running()
    early = await client.run(box, "echo x")
    assert (early.status, early.body["code"]) == (503, "unavailable")
    await platform.advance(31)
    assert (await client.run(box, "echo x")).stdout == "x\n"


async def test_paused_sandbox_closes_its_gateway_and_counts_as_alive(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    box = await client.running(timeout_minutes=10)
    prime_platform.pause(box["id"])
    assert (await client.get(box))["status"] == "PAUSED"
    assert (await client.run(box, "echo x")).body["code"] == "unavailable"
    answer = await client.call("POST", f"/api/v1/sandbox/{box['id']}/auth")
    assert answer.status == 409
    listed = await client.call("GET", "/api/v1/sandbox?status=PAUSED&is_active=true")
    assert [found["id"] for found in listed.body["sandboxes"]] == [box["id"]]
    prime_platform.resume(box["id"])
    assert (await client.run(box, "echo x")).stdout == "x\n"
    prime_platform.pause(box["id"])
    await prime_platform.advance(601)
    assert (await client.get(box))["status"] == "TIMEOUT"


async def test_only_a_running_sandbox_pauses_and_only_a_paused_one_resumes(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    box = await client.running()
    with pytest.raises(ValueError, match="not PAUSED"):
        prime_platform.resume(box["id"])
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    with pytest.raises(ValueError, match="not RUNNING"):
        prime_platform.pause(box["id"])
    for path in ("pause", "resume"):
        answer = await client.call("POST", f"/_local/{path}", {"sandbox_id": "sbx_nope"})
        assert answer.status == 409


async def test_pausing_over_http(prime_platform_server: PlatformProcess, helpers: Any) -> None:
    server = prime_platform_server
    server.reset()
    async with helpers.client_of(server) as client:
        box = await client.running()
        server.pause(box["id"])
        assert (await client.get(box))["status"] == "PAUSED"
        server.resume(box["id"])
        assert (await client.get(box))["status"] == "RUNNING"


async def test_every_way_to_end_says_how(client: RawClient, prime_platform: LocalPlatform) -> None:
    def start(script: str) -> dict[str, Any]:
        return {"start_command": {"executable": "/bin/sh", "args": ["-c", script]}}

    ended = {
        "deleted": await client.running(),
        "exited": await client.create(**start("exit 3")),
        "killed": await client.create(**start("kill -KILL $$")),
        "idle": await client.running(idle_timeout_minutes=1),
        "old": await client.running(timeout_minutes=2),
    }
    await client.call("DELETE", f"/api/v1/sandbox/{ended['deleted']['id']}")
    for name in ("exited", "killed"):
        await client.until(ended[name], "TERMINATED")
    await prime_platform.advance(61)
    await prime_platform.advance(60)
    found = {name: await client.get(box) for name, box in ended.items()}
    told = ("status", "terminationReason", "exitCode", "errorType")
    assert {name: tuple(box[key] for key in told) for name, box in found.items()} == {
        "deleted": ("TERMINATED", None, None, None),
        "exited": ("TERMINATED", None, 3, None),
        "killed": ("TERMINATED", None, 137, None),
        "idle": ("TERMINATED", "idle_timeout", None, None),
        "old": ("TIMEOUT", None, None, "TIMEOUT"),
    }
    assert all(box["terminatedAt"] >= box["startedAt"] for box in found.values())


async def test_secrets_reach_the_start_command_and_no_answer(client: RawClient) -> None:
    start = {"executable": "/bin/sh", "args": ["-c", 'test "$TOKEN" = hu""sh && echo knows']}
    box = await client.create(secrets={"TOKEN": "hush"}, start_command=start)
    await client.until(box, "TERMINATED")
    path = f"/api/v1/sandbox/{box['id']}"
    answers = [
        await client.call("GET", where)
        for where in (path, "/api/v1/sandbox", f"{path}/logs", f"{path}/error-context")
    ]
    assert answers[2].body["logs"] == "knows\n"
    assert "hush" not in str([box, *(answer.body for answer in answers)])
