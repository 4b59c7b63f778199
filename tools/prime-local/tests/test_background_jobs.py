"""The batch look at background jobs, and what jobs leave behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform, PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform, PlatformOfMode, RawClient

LOOK = "/api/v1/sandbox/background-jobs/status:batchGet"


async def look(client: RawClient, *jobs: tuple[str, str]) -> dict[str, Any]:
    body = {"jobs": [{"sandbox_id": box, "job_id": job} for box, job in jobs]}
    answer = await client.call("POST", LOOK, body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.body
    return found


async def code_of(client: RawClient, *jobs: tuple[str, str]) -> list[str]:
    answer = await look(client, *jobs)
    assert not answer["statuses"]
    return [error["code"] for error in answer["errors"]]


@pytest.fixture(params=["process", "bwrap", "full"])
async def anywhere(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode, helpers: Any
) -> AsyncIterator[RawClient]:
    """A client of a platform in each mode."""
    server: PlatformProcess = platform_of_mode(request.param)
    async with helpers.client_of(server) as client:
        yield client
    server.reset()


async def test_the_exit_file_in_the_sandbox_is_the_state(anywhere: RawClient) -> None:
    first, second = await anywhere.running(), await anywhere.running()
    await anywhere.run(first, "echo 7 >/tmp/job_deadbeef.exit; : >/tmp/job_0000000a.exit")
    await anywhere.run(second, "echo 0 >/tmp/job_0000000b.exit")
    asked = [
        (first["id"], "deadbeef"),
        (second["id"], "0000000b"),
        (first["id"], "0000000a"),
        (first["id"], "0000000c"),
    ]
    answer = await look(anywhere, *asked)
    assert answer["errors"] == []
    rows = [(row["sandbox_id"], row["job_id"]) for row in answer["statuses"]]
    assert rows == asked
    ends = [(row["completed"], row["exit_code"]) for row in answer["statuses"]]
    assert ends == [(True, 7), (True, 0), (False, None), (False, None)]
    await anywhere.run(first, "rm -f /tmp/job_*")


async def test_each_obstacle_has_its_code(client: RawClient, prime_platform: LocalPlatform) -> None:
    box, container = await client.running(), await client.running(vm=False)
    paused, deleted = await client.running(), await client.running()
    prime_platform.pause(paused["id"])
    await client.call("DELETE", f"/api/v1/sandbox/{deleted['id']}")
    ids = ["sbx_unknown", container["id"], paused["id"], deleted["id"]]
    codes = await code_of(client, *((sandbox_id, "0000000a") for sandbox_id in ids))
    assert codes == ["NOT_FOUND", "NOT_VM", "NOT_RUNNING", "NOT_RUNNING"]
    assert len((await look(client, (box["id"], "0000000a")))["statuses"]) == 1


async def test_an_unreachable_sandbox_or_a_strange_file_is_a_runtime_error(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(gateway_delay=60)
    box = await client.running()
    assert await code_of(client, (box["id"], "0000000a")) == ["RUNTIME_ERROR"]
    await platform.advance(60)
    await client.run(box, "echo text >/tmp/job_0000000d.exit")
    try:
        assert await code_of(client, (box["id"], "0000000d")) == ["RUNTIME_ERROR"]
    finally:
        await client.run(box, "rm -f /tmp/job_0000000d.exit")


@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [{"sandbox_id": "sbx_1", "job_id": "xyz"}],
        [{"sandbox_id": "sbx_1"}],
        [{"sandbox_id": "sbx_1", "job_id": f"{number:08x}"} for number in range(101)],
    ],
)
async def test_a_wrong_question_is_refused(client: RawClient, jobs: list[dict[str, str]]) -> None:
    assert (await client.call("POST", LOOK, {"jobs": jobs})).status == 422


async def test_a_look_puts_off_no_idle_time_and_is_in_no_list(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    box = await client.running(idle_timeout_minutes=1)
    await prime_platform.advance(50)
    await look(client, (box["id"], "0000000a"))
    await prime_platform.advance(11)
    ended = await client.get(box)
    assert (ended["status"], ended["terminationReason"]) == ("TERMINATED", "idle_timeout")


def job_files() -> set[str]:
    return {name for name in os.listdir("/tmp") if name.startswith("job_5ca1ab1e")}


async def test_files_of_jobs_go_with_their_sandbox(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    """Without isolation they are in this machine's folder."""
    box = await client.running()
    stem = "/tmp/job_5ca1ab1e"
    await client.run(
        box, f"mkdir {stem}.launch; echo 1 >{stem}.launch/pid; touch {stem}.stdout.log {stem}.exit"
    )
    assert job_files() == {"job_5ca1ab1e.launch", "job_5ca1ab1e.stdout.log", "job_5ca1ab1e.exit"}
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    assert not job_files()


async def test_a_detached_job_outlives_its_command(anywhere: RawClient) -> None:
    box = await anywhere.running()
    script = "set -m; (sleep 600) </dev/null >/dev/null 2>&1 & echo $!"
    pid = (await anywhere.run(box, script)).stdout.strip()
    await asyncio.sleep(0.3)
    assert (await anywhere.run(box, f"kill -0 {pid}")).exit_code == 0
