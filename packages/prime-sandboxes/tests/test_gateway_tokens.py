"""The tokens of gateways: where they come from, how long they serve, who gets to see them."""

from __future__ import annotations

import asyncio
import pickle
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    AsyncSandboxClient,
    CreateSandboxRequest,
    ServerError,
    UnauthorizedError,
)
from prime_sandboxes._proto import command_session_pb2 as pb

if TYPE_CHECKING:
    from conftest import Running, ScriptedServer, StartPlatform

pytestmark = pytest.mark.timeout(30)

START = "command_session_start"
AUTH = "create_sandbox_auth_token"


def asked(platform: LocalPlatform, operation: str = AUTH) -> int:
    return platform.ledger()["requests"].get(operation, 0)


async def test_the_token_of_the_create_serves_the_first_commands(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either)
    await either.wait_for_creation(box.id)
    await either.execute_command(box.id, "true")
    assert asked(platform) == 0


async def test_a_token_is_kept_until_it_is_cleared(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either)
    either.clear_auth_cache()
    for _ in range(3):
        await either.execute_command(box.id, "true")
    assert asked(platform) == 1


async def test_tokens_are_kept_in_memory_only(
    either: AsyncSandboxClient, running: Running, home: Path
) -> None:
    box = await running(either)
    either.clear_auth_cache()
    await either.execute_command(box.id, "true")
    assert list(home.rglob("*")) == []  # noqa: ASYNC240 - blocks nobody else


async def test_a_token_is_neither_shown_nor_pickled(
    client: AsyncSandboxClient, platform: LocalPlatform, scripted: ScriptedServer, running: Running
) -> None:
    created = await client.create(CreateSandboxRequest(name="box", docker_image="python:3"))
    assert b"gwt_" not in pickle.dumps(created)
    assert "gwt_" not in created.model_dump_json() + repr(created)
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    scripted.answer_json(500, {"code": "internal", "message": "oops"})
    with pytest.raises(APIError) as caught:
        await client.execute_command(box.id, "true")
    assert b"gwt_scripted" not in pickle.dumps((client, caught.value))
    assert "gwt_scripted" not in repr(client) + repr(caught.value) + str(caught.value)


async def test_fifty_commands_without_a_token_ask_for_one(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(FaultRule(AUTH, delay_after=0.1))
    results = await asyncio.gather(
        *(client.execute_command(box.id, f"echo {n}") for n in range(50))
    )
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(50)]
    assert asked(platform) == 1


async def test_each_sandbox_has_a_token_of_its_own(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    boxes = [await running(client) for _ in range(3)]
    client.clear_auth_cache()
    await asyncio.gather(*(client.execute_command(box.id, "true") for box in boxes * 2))
    assert asked(platform) == 3


async def test_who_waits_for_a_token_may_leave_without_harm_to_the_others(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(FaultRule(AUTH, delay_after=0.2))
    first = asyncio.create_task(client.execute_command(box.id, "echo first"))
    second = asyncio.create_task(client.execute_command(box.id, "echo second"))
    await asyncio.sleep(0.05)
    first.cancel()
    assert (await second).stdout == "second\n"
    assert asked(platform) == 1


async def test_a_failure_to_get_a_token_reaches_all_who_wait_and_is_forgotten(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(FaultRule(AUTH, status=500, times=3))
    results = await asyncio.gather(
        *(client.execute_command(box.id, "true") for _ in range(5)), return_exceptions=True
    )
    assert {type(result) for result in results} == {ServerError}
    assert asked(platform) == 3
    assert (await client.execute_command(box.id, "echo on")).stdout == "on\n"


@pytest.mark.parametrize(("lifetime", "fetched"), [(3600, 0), (59, 2)])
async def test_a_token_is_renewed_a_minute_before_its_end(
    start_platform: StartPlatform, running: Running, lifetime: float, fetched: int
) -> None:
    platform = await start_platform(token_lifetime=lifetime)
    async with AsyncSandboxClient() as client:
        box = await running(client)
        for _ in range(2):
            assert (await client.execute_command(box.id, "echo hi")).stdout == "hi\n"
    assert asked(platform) == fetched
    assert platform.ledger()["responses"].get("401", 0) == 0


async def test_a_token_that_ends_unexpectedly_is_replaced_once(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(either, timeout_minutes=-1)
    await platform.advance(1801)
    trace = tmp_path / "runs"
    result = await either.execute_command(box.id, f"echo run >> {trace}; echo hi")
    assert result.stdout == "hi\n"
    assert trace.read_text() == "run\n"
    assert (asked(platform), asked(platform, START)) == (1, 2)


async def test_a_running_command_outlives_its_token(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client, timeout_minutes=-1)
    begun = tmp_path / "begun"
    work = asyncio.create_task(
        client.execute_command(box.id, f"touch {begun}; sleep 0.3; echo done")
    )
    deadline = time.monotonic() + 5
    while not begun.exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await platform.advance(1801)
    assert (await work).stdout == "done\n"
    assert asked(platform) == 0


async def test_a_second_refusal_is_raised(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either)
    platform.add_faults(FaultRule(START, status=401, body='{"code": "unauthenticated"}'))
    with pytest.raises(UnauthorizedError, match=r"^HTTP 401: ") as caught:
        await either.execute_command(box.id, "true")
    assert (caught.value.operation, caught.value.status_code) == (START, 401)
    assert (asked(platform), asked(platform, START)) == (1, 2)


async def test_fifty_commands_whose_token_is_refused_ask_for_one_new_token(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client, timeout_minutes=-1)
    await platform.advance(1801)
    results = await asyncio.gather(
        *(client.execute_command(box.id, f"echo {n}") for n in range(50))
    )
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(50)]
    assert asked(platform) == 1


REFUSED = {"code": "unauthenticated", "message": "token expired"}


async def test_a_stream_that_begins_with_a_refusal_is_started_again(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    ended = pb.StartResponse(
        event=pb.CommandSessionEvent(end=pb.CommandSessionEvent.EndEvent(exit_code=4))
    )
    scripted.answer_stream(scripted.end(REFUSED))
    scripted.answer_stream(scripted.envelope(ended.SerializeToString()), scripted.end())
    assert (await client.execute_command(box.id, "true")).exit_code == 4
    scripted.answer_stream(scripted.end(REFUSED))
    scripted.answer_stream(scripted.end(REFUSED))
    with pytest.raises(UnauthorizedError, match=r"^HTTP 401: token expired") as caught:
        await client.execute_command(box.id, "true")
    assert caught.value.operation == START
    assert caught.value.request_id == scripted.received[-1].headers["x-request-id"]
    assert len(scripted.received) == 4


async def test_a_refusal_after_the_command_has_begun_does_not_run_it_again(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    begun = pb.StartResponse(
        event=pb.CommandSessionEvent(start=pb.CommandSessionEvent.StartEvent(pid=7))
    )
    scripted.answer_stream(scripted.envelope(begun.SerializeToString()), scripted.end(REFUSED))
    with pytest.raises(APIError, match="unauthenticated: token expired") as caught:
        await client.execute_command(box.id, "true")
    assert caught.value.code == "unauthenticated"
    assert len(scripted.received) == 1


async def test_the_api_key_is_not_sent_to_the_gateway(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    with pytest.raises(ServerError):
        await client.execute_command(box.id, "true")
    (request,) = scripted.received
    assert platform.api_key not in str(request)
