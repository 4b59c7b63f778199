from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform
from prime_local.contract import load_contract
from prime_local.contract.protobuf import CommandMessages
from prime_local.sandboxes.processes import account_name

if TYPE_CHECKING:
    from conftest import OpenPlatform, PlatformOfMode, RawClient


@pytest.fixture(params=["process", "bwrap", "full"])
async def client(
    request: pytest.FixtureRequest,
    helpers: Any,
    prime_platform: LocalPlatform,
    platform_of_mode: PlatformOfMode,
) -> AsyncIterator[RawClient]:
    """A client of a platform in each isolation mode: commands behave the same in all."""
    mode = request.param
    platform = prime_platform if mode == "process" else platform_of_mode(mode)
    async with helpers.client_of(platform) as client:
        yield client


async def test_command_reports_its_start_output_and_end(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "echo out; echo err >&2; exit 3")
    assert result.status == 200
    assert result.events[0]["start"]["pid"] > 0
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert result.exit == {"exitCode": 3, "exited": True, "status": "exit status 3"}
    assert result.end == {}


async def test_binary_codec_speaks_the_contracts_protobuf(client: RawClient) -> None:
    messages = CommandMessages(load_contract())
    box = await client.running()
    spec = messages.new("CommandSpec", cmd="/bin/bash", args=["-c", "printf hi; exit 200"])
    payload = messages.new("StartRequest", command=spec).SerializeToString()
    async with client.session.post(
        client.gateway(box),
        data=b"\0" + len(payload).to_bytes(4, "big") + payload,
        headers=client.gateway_headers(box, "application/connect+proto"),
    ) as response:
        assert response.content_type == "application/connect+proto"
        body = await response.read()
    events, end = [], None
    while body:
        size = int.from_bytes(body[1:5], "big")
        flags, piece, body = body[0], body[5 : 5 + size], body[5 + size :]
        if flags == 2:
            end = json.loads(piece)
        else:
            message = messages.new("StartResponse")
            message.ParseFromString(piece)
            events.append(message.event)
    assert [event.WhichOneof("event") for event in events] == ["start", "data", "end"]
    assert events[1].data.stdout == b"hi"
    assert events[2].end.exit_code == 200
    assert end == {}


async def test_environment_is_private_and_minimal(
    client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIME_API_KEY", "leak")
    monkeypatch.setenv("SOMETHING_ELSE", "leak")
    box = await client.running(environment_vars={"A": "1", "B": "1"}, secrets={"S": "hush"})
    result = await client.run(box, "env", envs={"B": "2"})
    env = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert (env["A"], env["B"], env["S"]) == ("1", "2", "hush")
    assert env["PRIME_LOCAL_SANDBOX"] == box["id"]
    assert env["USER"] == env["LOGNAME"] == account_name()
    assert "leak" not in result.stdout
    assert not [name for name in env if name.startswith("PRIME_") and "LOCAL" not in name]


async def test_each_sandbox_has_its_own_folders(client: RawClient) -> None:
    one, other = await client.running(), await client.running()
    script = 'pwd; echo x > here; echo x > "$HOME/h"; echo x > "$TMPDIR/t"; ls . ~ "$TMPDIR"'
    first, second = [await client.run(box, script) for box in (one, other)]
    assert first.exit_code == second.exit_code == 0
    assert first.stdout.splitlines()[0] == one["diskMountPath"]
    assert second.stdout.splitlines()[0] == other["diskMountPath"]
    assert (await client.run(one, "cat here")).stdout == "x\n"


async def test_python_is_an_interpreter_with_nothing_but_the_standard_library(
    client: RawClient,
) -> None:
    box = await client.running(docker_image="debian:12")
    script = (
        "python -c 'import json, sys; print(sys.version_info[0])' && python3 -c 'import aiohttp'"
    )
    result = await client.run(box, script)
    assert result.stdout == "3\n"
    assert "ModuleNotFoundError" in result.stderr


async def test_working_directory(client: RawClient) -> None:
    box = await client.running()
    await client.run(box, "mkdir sub")
    assert (await client.run(box, "pwd", cwd="/")).stdout == "/\n"
    assert (await client.run(box, "pwd", cwd="sub")).stdout == box["diskMountPath"] + "/sub\n"
    missing = await client.run(box, "pwd", cwd="/no/such")
    assert (missing.status, missing.error_code) == (200, "invalid_argument")


async def test_user(client: RawClient) -> None:
    box = await client.running()
    assert (await client.run(box, "true", user=account_name())).exit_code == 0
    assert (await client.run(box, "true", user="nobody-here")).error_code == "invalid_argument"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"command": {"cmd": ""}}, "invalid_argument"),
        ({"command": {"cmd": "no-such-program"}}, "invalid_argument"),
        ({"command": {"cmd": "/bin/bash", "envs": {"A=B": "x"}}}, "invalid_argument"),
        ({"command": {"cmd": "/bin/bash"}, "sessionUuid": "NOT-A-UUID"}, "invalid_argument"),
        ({"command": 5}, "invalid_argument"),
    ],
)
async def test_bad_start_request_ends_the_stream_with_its_code(
    client: RawClient, helpers: Any, message: dict[str, Any], code: str
) -> None:
    box = await client.running()
    payload = json.dumps(message).encode()
    body = b"\0" + len(payload).to_bytes(4, "big") + payload
    headers = client.gateway_headers(box, "application/connect+json")
    async with client.session.post(client.gateway(box), data=body, headers=headers) as response:
        result = await helpers.read_stream(response)
    assert result.error_code == code


@pytest.mark.parametrize("body", [b"", b"\0\0", b"\0\0\0\0\x05abc", b"\x01\0\0\0\x01a"])
async def test_bad_envelope_ends_the_stream_with_an_error(
    client: RawClient, helpers: Any, body: bytes
) -> None:
    box = await client.running()
    headers = client.gateway_headers(box, "application/connect+proto")
    async with client.session.post(client.gateway(box), data=body, headers=headers) as response:
        result = await helpers.read_stream(response)
    assert result.error_code in ("invalid_argument", "unimplemented")


async def test_large_output_arrives_whole_in_pieces_of_32_kib(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "head -c 3000000 /dev/zero | tr '\\0' 'x'")
    assert result.stdout == "x" * 3_000_000
    sizes = [len(base64.b64decode(e["data"]["stdout"])) for e in result.events if "data" in e]
    assert max(sizes) <= 32 * 1024


async def test_slow_reader_loses_nothing(client: RawClient, helpers: Any) -> None:
    box = await client.running()
    async with client.start(box, "head -c 4000000 /dev/zero | tr '\\0' 'x'") as response:
        await asyncio.sleep(0.6)
        result = await helpers.read_stream(response)
    assert len(result.stdout) == 4_000_000
    assert result.exit_code == 0


async def test_output_arrives_while_the_command_runs(client: RawClient, helpers: Any) -> None:
    box = await client.running()
    async with client.start(box, "echo early; sleep 30") as response:
        await helpers.read_event(response)
        _, message = await asyncio.wait_for(helpers.read_event(response), 5)
        assert base64.b64decode(message["event"]["data"]["stdout"]) == b"early\n"


async def test_child_that_keeps_stdout_open_does_not_hold_the_stream(client: RawClient) -> None:
    box = await client.running()
    started = time.monotonic()
    result = await client.run(box, "sleep 30 & echo done")
    assert (result.stdout, result.exit_code) == ("done\n", 0)
    assert time.monotonic() - started < 5


async def test_child_that_writes_for_ever_does_not_hold_the_stream(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "yes & sleep 0.1; exit 4")
    assert result.exit_code == 4


async def test_limits_of_a_process(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "ulimit -n; ulimit -c")
    files, core = result.stdout.split()
    assert int(files) <= 4096
    assert core == "0"


async def test_signalled_command_ends_with_128_plus_n(client: RawClient) -> None:
    box = await client.running()
    result = await client.run(box, "kill -KILL $$")
    assert result.exit_code == 137
    assert result.exit["status"] == "signal: SIGKILL"
    assert "exited" not in result.exit


async def test_deadline_ends_the_stream_after_the_output_so_far(client: RawClient) -> None:
    box = await client.running()
    started = time.monotonic()
    result = await client.run(box, "echo so far; sleep 30", timeout_ms=300)
    assert 0.3 <= time.monotonic() - started < 5
    assert result.stdout == "so far\n"
    assert result.error_code == "deadline_exceeded"
    assert (await client.run(box, "echo alive")).stdout == "alive\n"


async def test_reader_that_takes_nothing_does_not_put_off_the_deadline(
    client: RawClient,
) -> None:
    box = await client.running(idle_timeout_minutes=1)
    session = str(uuid.uuid4())
    async with client.start(box, "yes", session_uuid=session, timeout_ms=500):
        await _until_listed(client, box, session)
        deadline = time.monotonic() + 5
        while await _sessions(client, box):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)


async def test_bad_deadline_is_refused(client: RawClient, helpers: Any) -> None:
    box = await client.running()
    headers = client.gateway_headers(box, "application/connect+json")
    headers["Connect-Timeout-Ms"] = "12345678901"
    body = b"\0\0\0\0\x02{}"
    async with client.session.post(client.gateway(box), data=body, headers=headers) as response:
        assert (await helpers.read_stream(response)).error_code == "invalid_argument"


async def test_same_session_uuid_runs_the_command_once(client: RawClient) -> None:
    box = await client.running()
    session = str(uuid.uuid4())
    script = "echo x >> ran; sleep 0.3; cat ran"
    runs = await asyncio.gather(*(client.run(box, script, session_uuid=session) for _ in range(5)))
    assert {run.exit_code for run in runs} == {0}
    assert len({run.events[0]["start"]["pid"] for run in runs}) == 1
    assert {run.stdout for run in runs} == {"x\n"}


async def test_ended_session_announces_its_start_and_end_again(client: RawClient) -> None:
    box = await client.running()
    session = str(uuid.uuid4())
    first = await client.run(box, "echo once; exit 6", session_uuid=session)
    again = await client.run(box, "echo once; exit 6", session_uuid=session)
    assert again.events == [first.events[0], first.events[-1]]


async def test_session_uuid_of_another_command_is_a_failed_precondition(
    client: RawClient,
) -> None:
    box = await client.running()
    session = str(uuid.uuid4())
    await client.run(box, "true", session_uuid=session)
    result = await client.run(box, "false", session_uuid=session)
    assert result.error_code == "failed_precondition"


async def test_command_outlives_a_lost_stream(client: RawClient, helpers: Any) -> None:
    box = await client.running()
    session = str(uuid.uuid4())
    script = "echo $$ > pid; sleep 0.5; echo finished > proof"
    async with client.start(box, script, session_uuid=session) as response:
        await helpers.read_event(response)
        response.close()
    again = await client.run(box, script, session_uuid=session)
    assert again.exit_code == 0
    assert (await client.run(box, "cat proof")).stdout == "finished\n"


@pytest.mark.parametrize(("name", "code"), [("SIGNAL_SIGTERM", 143), ("SIGNAL_SIGKILL", 137)])
async def test_signal_by_session_uuid(client: RawClient, name: str, code: int) -> None:
    box = await client.running()
    session = str(uuid.uuid4())
    running = asyncio.create_task(client.run(box, "sleep 30", session_uuid=session))
    await _until_listed(client, box, session)
    request = {"session": {"sessionUuid": session}, "signal": name}
    answer = await client.signal(box, **request)
    assert (answer.status, answer.body) == (200, {})
    assert (await running).exit_code == code
    answer = await client.signal(box, **request)
    assert (answer.status, answer.body["code"]) == (404, "not_found")


async def test_repeated_signal_uuid_is_delivered_once(client: RawClient) -> None:
    box = await client.running()
    session, key = str(uuid.uuid4()), str(uuid.uuid4())
    script = "trap 'echo got' TERM; echo ready; for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done"
    running = asyncio.create_task(client.run(box, script, session_uuid=session))
    await _until_listed(client, box, session)
    await asyncio.sleep(0.2)
    request = {
        "session": {"sessionUuid": session},
        "signal": "SIGNAL_SIGTERM",
        "signalUuid": key,
    }
    for _ in range(3):
        assert (await client.signal(box, **request)).status == 200
        await asyncio.sleep(0.1)
    assert (await running).stdout.count("got") == 1
    assert (await client.signal(box, **request)).status == 200


async def test_unspecified_signal_is_refused(client: RawClient) -> None:
    box = await client.running()
    answer = await client.signal(box, session={"pid": 1})
    assert (answer.status, answer.body["code"]) == (400, "invalid_argument")


async def _sessions(client: RawClient, box: dict[str, Any]) -> list[str]:
    url = client.gateway(box, "command_session.CommandSession/List")
    headers = client.gateway_headers(box, "application/json")
    async with client.session.post(url, data="{}", headers=headers) as response:
        listed = (await response.json()).get("sessions", [])
    return [session["sessionUuid"] for session in listed]


async def _until_listed(client: RawClient, box: dict[str, Any], session: str) -> None:
    deadline = time.monotonic() + 10
    while (listed := await _sessions(client, box)) != [session]:
        assert time.monotonic() < deadline, listed
        await asyncio.sleep(0.01)


async def test_bad_token_is_401_unauthenticated(client: RawClient) -> None:
    box, other = await client.running(), await client.running()
    for token in ("nope", other["gatewayAuth"]["token"], ""):
        auth = {**box["gatewayAuth"], "token": token}
        result = await client.run({**box, "gatewayAuth": auth}, "true")
        assert (result.status, result.body["code"]) == (401, "unauthenticated")


async def test_expired_token_is_401_but_running_streams_survive(
    open_platform: OpenPlatform, helpers: Any
) -> None:
    platform, client = await open_platform(token_lifetime=60)
    box = await client.running()
    async with client.start(box, "sleep 0.5; echo still") as response:
        await helpers.read_event(response)
        await platform.advance(61)
        result = await client.run(box, "true")
        assert (result.status, result.body["code"]) == (401, "unauthenticated")
        assert (await helpers.read_stream(response)).stdout == "still\n"
    auth = (await client.call("POST", f"/api/v1/sandbox/{box['id']}/auth")).body
    assert (await client.run({**box, "gatewayAuth": auth}, "true")).exit_code == 0


async def test_unknown_or_ended_sandbox_is_404_not_found(client: RawClient) -> None:
    box = await client.running()
    for change in ({"job_id": "job-x"}, {"user_ns": "ns-x"}):
        result = await client.run({**box, "gatewayAuth": {**box["gatewayAuth"], **change}}, "true")
        assert (result.status, result.body["code"]) == (404, "not_found")
    await client.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    result = await client.run(box, "true")
    assert (result.status, result.body["code"]) == (404, "not_found")


async def test_sandbox_that_is_not_running_yet_is_503_unavailable(
    open_platform: OpenPlatform,
) -> None:
    _, client = await open_platform(start_delay=60)
    result = await client.run(await client.create(), "true")
    assert (result.status, result.body["code"]) == (503, "unavailable")


async def test_unknown_codec_is_refused(client: RawClient) -> None:
    box = await client.running()
    headers = client.gateway_headers(box, "text/plain")
    async with client.session.post(client.gateway(box), data=b"x", headers=headers) as response:
        assert (response.status, (await response.json())["code"]) == (400, "invalid_argument")


async def test_many_commands_at_once(client: RawClient) -> None:
    boxes = await asyncio.gather(*(client.running() for _ in range(10)))
    results = await asyncio.gather(
        *(client.run(box, f"echo {n}") for box in boxes for n in range(10))
    )
    assert [result.stdout for result in results] == [f"{n}\n" for _ in boxes for n in range(10)]
