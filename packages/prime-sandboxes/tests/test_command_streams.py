"""Command streams, byte by byte: what is sent, what is understood, and what is never repeated."""

from __future__ import annotations

import asyncio
import gzip
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    APIResponseError,
    AsyncSandboxClient,
    CommandResponse,
    CommandTimeoutError,
    SandboxNotRunningError,
    ServerError,
    __version__,
)
from prime_sandboxes._proto import command_session_pb2 as pb

if TYPE_CHECKING:
    from conftest import Running, ScriptedServer

pytestmark = pytest.mark.timeout(30)

START = "command_session_start"
Event = pb.CommandSessionEvent


def message(**event: object) -> bytes:
    return pb.StartResponse(event=Event(**event)).SerializeToString()  # type: ignore[arg-type]


BEGUN = message(start=Event.StartEvent(pid=7))
OUT = message(data=Event.DataEvent(stdout=b"out"))
ENDED = message(end=Event.EndEvent(exit_code=5, exited=True))


class Line:
    """A client whose one running sandbox has the scripted server for a gateway."""

    def __init__(self, client: AsyncSandboxClient, sandbox_id: str, script: ScriptedServer) -> None:
        self.client = client
        self.sandbox_id = sandbox_id
        self.script = script

    async def run(self, command: str = "true", **options: object) -> CommandResponse:
        return await self.client.execute_command(
            self.sandbox_id,
            command,
            **options,  # type: ignore[arg-type]
        )

    def stream(self, *messages: bytes) -> list[bytes]:
        return [self.script.envelope(message) for message in messages]


@pytest.fixture
async def line(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> Line:
    box = await running(client)
    client.clear_auth_cache()
    platform.add_faults(scripted.token_fault())
    return Line(client, box.id, scripted)


async def test_a_start_says_all_that_the_contract_asks_for(line: Line) -> None:
    line.script.answer_stream(*line.stream(BEGUN, ENDED), line.script.end())
    await line.run("echo hi", working_dir="/w", env={"A": "1"}, user="me", timeout=2.5)
    (request,) = line.script.received
    assert request.method == "POST"
    assert request.path == "/ns-1/job-1/command_session.CommandSession/Start"
    headers = request.headers
    assert headers["authorization"] == "Bearer gwt_scripted"
    assert headers["content-type"] == "application/connect+proto"
    assert headers["connect-protocol-version"] == "1"
    assert headers["connect-timeout-ms"] == "2500"
    assert headers["connect-accept-encoding"] == "gzip,identity"
    assert headers["user-agent"].startswith(f"prime-sandboxes/{__version__} python/3.")
    assert "x-prime-team-id" not in headers
    assert request.body[:1] == b"\0"
    assert int.from_bytes(request.body[1:5], "big") == len(request.body) - 5
    start = pb.StartRequest.FromString(request.body[5:])
    assert start.command == pb.CommandSpec(
        cmd="/bin/bash", args=["-c", "echo hi"], envs={"A": "1"}, cwd="/w", user="me"
    )
    assert start.HasField("stdin")
    assert not start.stdin
    assert str(uuid.UUID(start.session_uuid)) == start.session_uuid


async def test_a_slash_at_the_end_of_the_gateway_address_is_not_doubled(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, scripted: ScriptedServer
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    scripted.url += "/"
    platform.add_faults(scripted.token_fault())
    scripted.answer_stream(scripted.envelope(ENDED), scripted.end())
    await client.execute_command(box.id, "true")
    assert scripted.received[0].path.startswith("/ns-1/")


async def test_events_that_are_not_output_are_passed_over(line: Line) -> None:
    unknown = b"\x0a\x04\xa2\x06\x01x"  # an event of a field number that is not known yet
    line.script.answer_stream(
        *line.stream(
            BEGUN,
            message(keepalive=Event.KeepAlive()),
            unknown,
            OUT,
            b"",
            message(data=Event.DataEvent(pty=b"+pty")),
            message(data=Event.DataEvent(stderr=b"err")),
            message(end=Event.EndEvent(exit_code=1)),
            message(end=Event.EndEvent(exit_code=-3)),
        ),
        line.script.end(),
    )
    result = await line.run()
    assert (result.stdout, result.stderr, result.exit_code) == ("out+pty", "err", -3)


async def test_compressed_messages_are_read(line: Line) -> None:
    packed = line.script.envelope(gzip.compress(OUT), flags=1)
    line.script.answer_stream(packed, *line.stream(ENDED), line.script.end())
    assert (await line.run()).stdout == "out"


async def test_a_stream_without_its_last_envelope_is_tolerated(line: Line) -> None:
    line.script.answer_stream(*line.stream(BEGUN, OUT, ENDED))
    result = await line.run()
    assert (result.stdout, result.exit_code) == ("out", 5)


@pytest.mark.parametrize("code", ["internal", "resource_exhausted", "failed_precondition"])
async def test_a_failure_at_the_end_of_a_stream_names_its_code(line: Line, code: str) -> None:
    error = {"code": code, "message": "no more"}
    line.script.answer_stream(*line.stream(BEGUN), line.script.end(error))
    with pytest.raises(APIError, match=f"{code}: no more") as caught:
        await line.run()
    assert caught.value.code == code
    assert caught.value.operation == START
    assert caught.value.host == line.script.url.removeprefix("http://")
    assert caught.value.request_id == line.script.received[0].headers["x-request-id"]
    assert len(line.script.received) == 1


@pytest.mark.parametrize("error", [{"code": "from_the_future", "message": "hm"}, {}, {"code": 9}])
async def test_a_code_that_is_not_known_reads_as_unknown(
    line: Line, error: dict[str, object]
) -> None:
    line.script.answer_stream(line.script.end(error))
    with pytest.raises(APIError, match="unknown") as caught:
        await line.run()
    assert caught.value.code == "unknown"


async def test_a_session_that_the_gateway_does_not_find_means_that_the_sandbox_is_gone(
    line: Line,
) -> None:
    line.script.answer_stream(line.script.end({"code": "not_found", "message": "gone"}))
    with pytest.raises(SandboxNotRunningError) as caught:
        await line.run("sleep 1")
    error = caught.value
    assert (error.status, error.error_type) == ("TERMINATED", "SANDBOX_NOT_FOUND")
    assert error.command == "sleep 1"


async def test_a_deadline_kills_the_session_that_was_started(line: Line) -> None:
    late = {"code": "deadline_exceeded", "message": "late"}
    line.script.answer_stream(*line.stream(BEGUN, OUT), line.script.end(late))
    line.script.answer(line.script.head(200, "application/proto"))
    with pytest.raises(CommandTimeoutError) as caught:
        await line.run("sleep 60", timeout=3)
    assert caught.value.stdout == "out"
    start, kill = line.script.received
    assert kill.path == "/ns-1/job-1/command_session.CommandSession/SendSignal"
    assert kill.headers["content-type"] == "application/proto"
    signal = pb.SendSignalRequest.FromString(kill.body)
    session_uuid = pb.StartRequest.FromString(start.body[5:]).session_uuid
    assert signal.session.session_uuid == session_uuid
    assert signal.signal == pb.SIGNAL_SIGKILL
    assert str(uuid.UUID(signal.signal_uuid)) == signal.signal_uuid


BROKEN: dict[str, Callable[[ScriptedServer], bytes]] = {
    "no exit code": lambda s: s.head(200, "x/y") + s.envelope(BEGUN) + s.end(),
    "nothing at all": lambda s: s.head(200, "x/y"),
    "cut in an envelope": lambda s: s.head(200, "x/y") + s.envelope(OUT)[:-1],
    "cut in a header": lambda s: s.head(200, "x/y") + b"\0\0",
    "cut by its length": lambda s: s.head(200, "x/y", "Content-Length: 999") + s.envelope(BEGUN),
    "unknown flags": lambda s: s.head(200, "x/y") + s.envelope(OUT, flags=0x80),
    "a message that is none": lambda s: s.head(200, "x/y") + s.envelope(b"\xff\xff") + s.end(),
    "an end that is no JSON": lambda s: s.head(200, "x/y") + s.envelope(b"{", flags=2),
    "data after the end": lambda s: s.head(200, "x/y") + s.end() + s.envelope(OUT),
    "too long a message": lambda s: s.head(200, "x/y") + b"\0\xff\xff\xff\xff",
    "not gzip": lambda s: s.head(200, "x/y") + s.envelope(b"plain", flags=1),
    "a page": lambda s: s.head(200, "text/html") + b"<html><h1>Welcome</h1></html>",
    "no HTTP": lambda s: b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda name: name.replace(" ", "-"))
async def test_a_stream_that_cannot_be_read_is_a_typed_error_and_is_not_sent_again(
    line: Line, broken: str
) -> None:
    line.script.answer(BROKEN[broken](line.script))
    with pytest.raises(APIError) as caught:
        await line.run()
    error = caught.value
    assert error.operation == START
    assert error.host == line.script.url.removeprefix("http://")
    assert error.request_id == line.script.received[0].headers["x-request-id"]
    assert "gwt_scripted" not in str(error)
    assert len(line.script.received) == 1


@pytest.mark.parametrize("begun", [False, True], ids=["before-an-answer", "in-the-stream"])
async def test_a_reset_connection_is_a_typed_error_and_nothing_is_sent_again(
    line: Line, begun: bool
) -> None:
    begin = line.script.envelope(BEGUN)
    chunked = line.script.head(200, "x/y", "Transfer-Encoding: chunked")
    data = chunked + b"%x\r\n%b\r\n" % (len(begin), begin) if begun else b""
    line.script.answer(data, reset=True)
    with pytest.raises((APIConnectionError, APIResponseError)) as caught:
        await line.run()
    assert caught.value.operation == START
    assert caught.value.attempts == 1
    assert len(line.script.received) == 1


async def test_an_answer_that_the_service_may_have_acted_on_is_not_sent_again(line: Line) -> None:
    line.script.answer_json(500, {"code": "internal", "message": "oops"})
    with pytest.raises(ServerError, match="HTTP 500: oops") as caught:
        await line.run()
    assert caught.value.code == "internal"
    assert len(line.script.received) == 1


async def test_a_refusal_is_sent_again_when_it_asks_for_that(line: Line) -> None:
    body = b"slow down"
    line.script.answer(line.script.head(429, "text/plain", "Retry-After: 0.05") + body)
    line.script.answer(line.script.head(503, "text/plain", "Retry-After: 0.05") + body)
    line.script.answer_stream(*line.stream(ENDED), line.script.end())
    assert (await line.run()).exit_code == 5
    first, *others = line.script.received
    assert len(others) == 2
    # The same session each time, so that it would not even matter.
    assert {request.body for request in others} == {first.body}


async def test_a_command_whose_connection_breaks_has_run_once(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running, tmp_path: Path
) -> None:
    box = await running(client)
    trace = tmp_path / "runs"
    work = asyncio.create_task(client.execute_command(box.id, f"echo run >> {trace}; sleep 30"))
    deadline = time.monotonic() + 5
    while not trace.exists():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    await platform.outage(0.2)
    with pytest.raises((APIConnectionError, APIResponseError)) as caught:
        await work
    assert caught.value.operation == START
    await asyncio.sleep(0.3)  # time enough for a second run
    assert trace.read_text() == "run\n"
    assert platform.ledger()["requests"][START] == 1


@pytest.mark.parametrize("reset", ["before_commit", None])
async def test_a_start_that_fails_on_the_way_runs_the_command_at_most_once(
    client: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    tmp_path: Path,
    reset: Literal["before_commit"] | None,
) -> None:
    box = await running(client)
    trace = tmp_path / "runs"
    status = None if reset else 502
    platform.add_faults(FaultRule(START, nth=1, reset=reset, status=status, body="<h1>Bad</h1>"))
    with pytest.raises((APIConnectionError, ServerError)):
        await client.execute_command(box.id, f"echo run >> {trace}")
    assert platform.ledger()["requests"][START] == 1
    assert not trace.exists()
