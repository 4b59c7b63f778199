"""Live processes whose connections break: what is kept, what is told, and what is sent twice."""

from __future__ import annotations

import asyncio
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from live_processes import ECHO, rest, until

import prime_sandboxes.process_following
import prime_sandboxes.process_session
import prime_sandboxes.process_streams
from prime_local import Assumptions, FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncSandboxClient,
    Gap,
    SandboxNotRunningError,
)
from prime_sandboxes._proto import command_session_pb2 as pb

if TYPE_CHECKING:
    from conftest import Running, ScriptedServer, StartPlatform

pytestmark = pytest.mark.timeout(30)

START, CONNECT = "command_session_start", "command_session_connect"
Event = pb.CommandSessionEvent


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prime_sandboxes.process_following, "FIRST_PAUSE", 0.02)


async def test_a_lost_stream_costs_no_exit_code_and_tells_of_the_gap(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    # The start and one output pass, the next breaks the connection.
    platform.add_faults(FaultRule(START, after_envelopes=2, reset="after_commit"))
    command = "echo before; read -r a; echo lost; read -r b; echo after; exit 6"
    async with await client.open_process(box.id, command) as process:
        pid = process.pid
        assert await until(process.stdout, b"before") == b"before\n"
        await process.write_stdin(b"a\n")
        deadline = time.monotonic() + 5
        while not process.reconnects:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        await process.write_stdin(b"b\n")
        assert await rest(process.stdout) == b"after\n"
        assert await process.wait() == 6
        assert (process.pid, process.reconnects) == (pid, 1)
        assert process.stdout.gaps == (Gap(len(b"before\n"), None),)
        assert process.stderr.gaps == (Gap(0, None),)
    requests = platform.ledger()["requests"]
    assert (requests[START], requests[CONNECT]) == (1, 1)


async def test_half_a_character_before_a_gap_is_not_mixed_with_what_is_behind(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, after_envelopes=2, reset="after_commit"))
    command = r"printf 'a\xc3'; read -r a; echo lost; read -r b; printf '\xbcz'"
    async with await client.open_process(box.id, command) as process:
        await asyncio.sleep(0.1)
        await process.write_stdin(b"a\n")
        await asyncio.sleep(0.3)
        await process.write_stdin(b"b\n")
        assert "".join([text async for text in process.stdout.text()]) == "a\ufffd\ufffdz"


async def test_an_exit_while_the_connection_is_down_is_learnt_afterwards(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "sleep 0.3; exit 8") as process:
        await platform.outage(0.6)
        assert await asyncio.wait_for(process.wait(), 10) == 8
        assert process.reconnects >= 1


async def test_an_exit_that_the_gateway_has_forgotten_is_an_error(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prime_sandboxes.process_following, "FIRST_PAUSE", 0.5)
    box = await running(client, timeout_minutes=-1)
    platform.add_faults(FaultRule(START, after_envelopes=1, reset="after_commit"))
    async with await client.open_process(box.id, "exit 8") as process:
        await asyncio.sleep(0.1)
        await platform.advance(601)
        with pytest.raises(APIError, match="session not found") as caught:
            await process.wait()
        assert caught.value.code == "not_found"
        assert process.returncode is None


@pytest.mark.parametrize("omit", ["end_event", "end_envelope"])
async def test_a_stream_without_its_end_is_opened_again_for_the_exit_code(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, omit: str
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, omit=omit))  # type: ignore[arg-type]
    async with await client.open_process(box.id, "exit 3") as process:
        assert await process.wait() == 3
        assert process.reconnects == (1 if omit == "end_event" else 0)


@pytest.mark.parametrize("reset", ["before_commit", "after_commit"])
async def test_a_start_whose_answer_is_lost_starts_one_process(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    reset: str,
) -> None:
    box = await running(client)
    trace = tmp_path / "runs"
    platform.add_faults(FaultRule(START, nth=1, reset=reset))  # type: ignore[arg-type]
    command = f"echo run >> {trace}; {ECHO}"
    async with await client.open_process(box.id, command) as process:
        await process.write_stdin(b"word\n")
        assert await until(process.stdout, b"word") == b"got word\n"
        # It may have written before we listened.
        assert process.stdout.gaps == (Gap(0, None),)
    assert trace.read_text() == "run\n"
    assert platform.ledger()["requests"][START] == 2


async def test_a_connection_that_stays_broken_is_given_up(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(
        FaultRule(START, after_envelopes=1, reset="after_commit"),
        FaultRule(CONNECT, after_envelopes=0, truncate=3),
    )
    async with await client.open_process(box.id, "echo x; sleep 60") as process:
        with pytest.raises(APIError) as caught:
            await asyncio.wait_for(process.wait(), 20)
        assert caught.value.operation == CONNECT
        assert process.reconnects == 0
    assert platform.ledger()["requests"][CONNECT] == 5
    # Closing it has killed it all the same.
    deadline = time.monotonic() + 5
    while await client.list_processes(box.id):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("status", [503, 500, 502])
async def test_a_gateway_that_fails_to_attach_is_asked_again(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, status: int
) -> None:
    box = await running(client)
    platform.add_faults(
        FaultRule(START, after_envelopes=1, reset="after_commit"),
        FaultRule(CONNECT, times=4, status=status, body="<h1>Bad</h1>"),
    )
    async with await client.open_process(box.id, "echo x; sleep 0.2; exit 9") as process:
        assert await asyncio.wait_for(process.wait(), 20) == 9


async def test_a_sandbox_that_ends_while_the_connection_is_down_is_the_cause(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    async with await client.open_process(box.id, "sleep 60") as process:
        platform.add_faults(FaultRule(CONNECT, nth=1, delay_before=0.3, reset="before_commit"))
        await platform.outage(0.05)
        await client.delete(box.id)
        with pytest.raises(SandboxNotRunningError, match="TERMINATED"):
            await asyncio.wait_for(process.wait(), 5)


async def test_a_token_that_expires_is_renewed_for_the_next_stream(
    start_platform: StartPlatform, running: Running
) -> None:
    platform = await start_platform(token_lifetime=120)
    async with AsyncSandboxClient() as client:
        box = await running(client)
        async with await client.open_process(box.id, ECHO) as process:
            await platform.advance(130)
            await process.write_stdin(b"word\n")
            assert await until(process.stdout, b"word") == b"got word\n"
            assert process.reconnects == 0
            await platform.outage(0.1)
            deadline = time.monotonic() + 5
            while not process.reconnects:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)
            await process.write_stdin(b"more\n")
            assert await until(process.stdout, b"more") == b"got more\n"


async def test_keep_alives_keep_a_silent_stream_and_silence_ends_it(
    start_platform: StartPlatform, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prime_sandboxes.process_streams, "IDLE_TIMEOUT", 0.4)
    for seconds, expected in ((0.1, False), (None, True)):
        await start_platform(assumptions=Assumptions(keep_alive=seconds))
        async with AsyncSandboxClient() as client:
            box = await running(client)
            async with await client.open_process(box.id, "sleep 1; exit 2") as process:
                assert await process.wait() == 2
                assert bool(process.reconnects) is expected
                assert bool(process.stdout.gaps) is expected


async def test_a_gateway_that_says_nothing_is_given_up_in_time(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = await running(client)
    monkeypatch.setattr(prime_sandboxes.process_streams, "FIRST_EVENT_TIMEOUT", 0.2)
    monkeypatch.setattr(prime_sandboxes.process_session, "OPEN_TIMEOUT", 0.7)
    platform.add_faults(FaultRule(START, delay_before=20))
    began = time.monotonic()
    with pytest.raises(APITimeoutError, match=r"did not start within 0\.7 s"):
        await client.open_process(box.id, "true")
    assert time.monotonic() - began < 2
    monkeypatch.setattr(prime_sandboxes.process_session, "OPEN_TIMEOUT", 10)
    with pytest.raises(APITimeoutError, match="did not announce") as caught:
        await client.open_process(box.id, "true")
    assert caught.value.operation == START
    assert platform.ledger()["requests"][START] >= 6


async def test_a_platform_that_does_not_come_back_ends_the_wait(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    box = await running(client)
    monkeypatch.setattr(prime_sandboxes.process_streams, "REOPEN_TIMEOUT", 0.2)
    monkeypatch.setattr("prime_sandboxes._async.resource.ERROR_CONTEXT_TIMEOUT", 0.5)
    process = await client.open_process(box.id, "sleep 60")
    outage = asyncio.create_task(platform.outage(20))
    began = time.monotonic()
    with pytest.raises(APIError):
        await process.wait()
    assert time.monotonic() - began < 10
    outage.cancel()
    await process.detach()


def message(**event: object) -> bytes:
    return pb.StartResponse(event=Event(**event)).SerializeToString()  # type: ignore[arg-type]


BEGUN = message(start=Event.StartEvent(pid=7))
ENDED = message(end=Event.EndEvent(exit_code=5, exited=True))


async def test_what_is_sent_follows_the_contract(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    envelope = scripted.envelope
    scripted.answer_stream(envelope(BEGUN), envelope(b"")[:3])
    scripted.answer_stream(envelope(BEGUN), envelope(ENDED), scripted.end())
    async with await client.open_process(box.id, "true", "/w", {"A": "1"}, "me") as process:
        assert await process.wait() == 5
    start, connect = scripted.received
    assert start.path.endswith("/command_session.CommandSession/Start")
    assert connect.path.endswith("/command_session.CommandSession/Connect")
    for request in scripted.received:
        assert request.headers["connect-timeout-ms"] == "86400000"
        assert request.headers["content-type"] == "application/connect+proto"
        assert request.headers["connect-protocol-version"] == "1"
    sent = pb.StartRequest.FromString(start.body[5:])
    assert sent.command == pb.CommandSpec(
        cmd="/bin/bash", args=["-c", "true"], envs={"A": "1"}, cwd="/w", user="me"
    )
    assert sent.stdin
    assert not sent.HasField("pty")
    assert str(uuid.UUID(sent.session_uuid)) == sent.session_uuid == process.session_uuid
    attached = pb.ConnectRequest.FromString(connect.body[5:])
    assert attached.session.session_uuid == process.session_uuid


async def test_the_last_of_several_ends_counts_and_an_open_stream_does_not_hold_it(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    scripted: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prime_sandboxes.process_following, "LAST_WORDS", 0.2)
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    first = message(end=Event.EndEvent(exit_code=1))
    scripted.answer_stream(*map(scripted.envelope, (BEGUN, first, ENDED)), b"\0")
    async with await client.open_process(box.id, "true") as process:
        assert await process.wait() == 5


@pytest.mark.parametrize("early", [True, False])
async def test_a_refused_token_is_replaced_once(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    scripted: ScriptedServer,
    early: bool,
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    refused = {"code": "unauthenticated", "message": "expired"}
    if early:
        scripted.answer_json(401, refused)
    else:
        scripted.answer_stream(scripted.end(refused))
    scripted.answer_stream(*map(scripted.envelope, (BEGUN, ENDED)), scripted.end())
    async with await client.open_process(box.id, "true") as process:
        assert await process.wait() == 5
        assert process.reconnects == 0
    assert platform.ledger()["requests"]["create_sandbox_auth_token"] == 2


async def test_a_gateway_that_is_not_there_is_a_connection_error(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    scripted.url = "http://127.0.0.1:1"
    platform.add_faults(scripted.token_fault())
    began = time.monotonic()
    with pytest.raises((APIConnectionError, APITimeoutError)):
        await asyncio.wait_for(client.open_process(box.id, "true"), 25)
    assert time.monotonic() - began < 25
