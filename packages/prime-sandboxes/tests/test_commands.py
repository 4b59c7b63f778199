"""What commands do, write and return."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIError,
    APITimeoutError,
    AsyncAPIClient,
    AsyncSandboxClient,
    CommandTimeoutError,
    ConflictError,
    NotFoundError,
    SandboxNotRunningError,
    SandboxTimeoutError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

START = "command_session_start"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def until_gone(*pids: int) -> None:
    deadline = time.monotonic() + 5
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"still running: {alive}"
        await asyncio.sleep(0.01)


async def test_outputs_and_exit_code_are_told_apart(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    result = await either.execute_command(box.id, "echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("false", 1), ("exit 255", 255), ("kill -9 $$", 137), ("no-such-program", 127)],
)
async def test_every_exit_code_is_a_result(
    client: AsyncSandboxClient, running: Running, command: str, code: int
) -> None:
    box = await running(client)
    assert (await client.execute_command(box.id, command)).exit_code == code


async def test_megabytes_arrive_whole_and_in_order(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    program = (
        "import sys; text = ''.join(f'{n:08}' for n in range(393_216)); "
        "sys.stdout.write(text); sys.stderr.write(text[:1_000_000])"
    )
    result = await either.execute_command(box.id, f'python -c "{program}"')
    assert len(result.stdout) == 3 * 1024 * 1024
    assert result.stdout == "".join(f"{number:08}" for number in range(393_216))
    assert result.stderr == result.stdout[:1_000_000]


async def test_characters_that_arrive_in_pieces_are_whole(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    pieces = r"printf 'gr\xc3'; sleep 0.05; printf '\xbc\xc3\x9fe \xf0\x9f'; sleep 0.05; "
    result = await either.execute_command(box.id, pieces + r"printf '\x8d\x87'")
    assert result.stdout == "grüße 🍇"


async def test_what_is_not_utf_8_is_replaced(either: AsyncSandboxClient, running: Running) -> None:
    box = await running(either)
    result = await either.execute_command(box.id, r"printf 'a\xff\xfeb'; printf '\xc3' >&2")
    assert result.stdout == "a\ufffd\ufffdb"
    assert result.stderr == "\ufffd"


async def test_a_command_sees_the_variables_of_sandbox_and_call(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(
        either, environment_vars={"A": "plain", "B": "old"}, secrets={"C": "sesame"}
    )
    result = await either.execute_command(
        box.id, 'echo "$A|$B|$C|$D"', env={"B": "new\n€", "D": ""}
    )
    assert result.stdout == "plain|new\n€|sesame|\n"


async def test_a_command_runs_where_it_is_told(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    here = (await either.execute_command(box.id, "mkdir -p 'a b'; pwd")).stdout.strip()
    result = await either.execute_command(box.id, "pwd", working_dir=f"{here}/a b")
    assert result.stdout == f"{here}/a b\n"


async def test_a_command_runs_as_the_user_it_is_told(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    user = pwd.getpwuid(os.getuid()).pw_name
    result = await either.execute_command(box.id, "id -un", user=user)
    assert result.stdout.strip() == user


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"working_dir": "/no/such/place"}, "/no/such/place"),
        ({"user": "nobody-of-that-name"}, "nobody-of-that-name"),
    ],
)
async def test_what_the_sandbox_lacks_is_an_error_that_names_it(
    either: AsyncSandboxClient,
    platform: LocalPlatform,
    running: Running,
    arguments: dict[str, str],
    reason: str,
) -> None:
    box = await running(either)
    with pytest.raises(APIError, match=reason) as caught:
        await either.execute_command(box.id, "pwd", **arguments)  # type: ignore[arg-type]
    error = caught.value
    assert (error.code, error.operation) == ("invalid_argument", START)
    assert error.host == platform.url.removeprefix("http://")
    assert error.request_id
    assert platform.ledger()["requests"][START] == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"command": ""}, "command is empty"),
        ({"command": " \n"}, "command is empty"),
        ({"command": "echo \0"}, "NUL"),
        ({"command": "pwd", "working_dir": ""}, "working_dir"),
        ({"command": "pwd", "working_dir": "/a\0b"}, "NUL"),
        ({"command": "pwd", "user": ""}, "user"),
        ({"command": "pwd", "user": "a\0"}, "NUL"),
        ({"command": "pwd", "env": {"": "x"}}, "env"),
        ({"command": "pwd", "env": {"A=B": "x"}}, "env"),
        ({"command": "pwd", "env": {"A": "\0"}}, "NUL"),
        ({"command": "pwd", "timeout": 0}, "timeout"),
        ({"command": "pwd", "timeout": -1}, "timeout"),
        ({"command": "pwd", "timeout": float("nan")}, "timeout"),
        ({"command": "pwd", "timeout": float("inf")}, "timeout"),
        ({"command": "pwd", "timeout": 10_000_000}, "timeout"),
    ],
)
async def test_an_impossible_command_is_refused_before_sending(
    either: AsyncSandboxClient,
    platform: LocalPlatform,
    arguments: dict[str, object],
    reason: str,
) -> None:
    with pytest.raises(ValueError, match=reason):
        await either.execute_command("sbx_1", **arguments)  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_a_hundred_commands_run_side_by_side(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    began = time.monotonic()
    results = await asyncio.gather(
        *(client.execute_command(box.id, f"sleep 0.5; echo {n}") for n in range(100))
    )
    assert [result.stdout for result in results] == [f"{n}\n" for n in range(100)]
    assert time.monotonic() - began < 10


async def test_a_time_limit_kills_the_whole_tree_and_keeps_the_output(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either)
    command = (
        "echo $$; sleep 60 & echo $!; setsid sh -c 'echo $$; exec sleep 60' & "
        "echo warning >&2; wait"
    )
    began = time.monotonic()
    with pytest.raises(CommandTimeoutError, match=r"within 1\.2 s") as caught:
        await either.execute_command(box.id, command, timeout=1.2)
    assert 1.1 < time.monotonic() - began < 6
    error = caught.value
    assert (error.sandbox_id, error.command, error.timeout) == (box.id, command, 1.2)
    assert error.stderr == "warning\n"
    assert error.__cause__ is None  # the platform said so: our own deadline is a later one
    pids = [int(line) for line in error.stdout.split()]
    assert len(pids) == 3
    await until_gone(*pids)
    # The sandbox is well, and the limit is the command's alone.
    assert (await either.execute_command(box.id, "echo on")).stdout == "on\n"


async def test_a_platform_that_does_not_end_the_command_is_told_to(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(
        FaultRule(START, status=504, body='{"code": "deadline_exceeded", "message": "late"}')
    )
    with pytest.raises(CommandTimeoutError) as caught:
        await client.execute_command(box.id, "sleep 60")
    assert platform.ledger()["requests"]["command_session_send_signal"] == 1
    assert isinstance(caught.value.__cause__, APIError)


async def test_a_control_plane_that_hangs_is_not_taken_for_a_slow_command(
    platform: LocalPlatform, running: Running
) -> None:
    async with (
        AsyncAPIClient(timeout=0.4) as connections,
        AsyncSandboxClient(client=connections) as client,
    ):
        box = await running(client)
        client.clear_auth_cache()
        platform.add_faults(FaultRule("create_sandbox_auth_token", delay_before=20))
        with pytest.raises(APITimeoutError) as caught:
            await client.execute_command(box.id, "true")
    assert caught.value.operation == "create_sandbox_auth_token"
    assert START not in platform.ledger()["requests"]


async def test_a_sandbox_deleted_under_a_command_is_named_as_the_cause(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    work = asyncio.create_task(either.execute_command(box.id, "sleep 60"))
    await asyncio.sleep(0.3)
    await either.delete(box.id)
    with pytest.raises(SandboxNotRunningError, match="TERMINATED") as caught:
        await work
    assert type(caught.value) is SandboxNotRunningError
    assert (caught.value.sandbox_id, caught.value.command) == (box.id, "sleep 60")


async def test_a_lifetime_that_ends_under_a_command_is_named_as_the_cause(
    either: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(either, timeout_minutes=1)
    work = asyncio.create_task(either.execute_command(box.id, "sleep 60"))
    await asyncio.sleep(0.3)
    await platform.advance(61)
    with pytest.raises(SandboxTimeoutError) as caught:
        await work
    assert (caught.value.status, caught.value.error_type) == ("TIMEOUT", "TIMEOUT")


async def test_a_sandbox_that_does_not_run_any_more_is_named_as_the_cause(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    await either.delete(box.id)
    with pytest.raises(SandboxNotRunningError) as caught:
        await either.execute_command(box.id, "true")
    assert caught.value.status == "TERMINATED"
    with pytest.raises(SandboxNotRunningError) as caught:
        await either.execute_command("sbx_nobody", "true")
    assert caught.value.error_type == "SANDBOX_NOT_FOUND"


async def test_a_conflict_about_a_sandbox_that_runs_stays_a_conflict(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, status=409, body='{"code": "aborted"}'))
    with pytest.raises(ConflictError):
        await client.execute_command(box.id, "true")


async def test_a_gateway_that_lacks_the_route_does_not_make_the_sandbox_gone(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(START, status=404, body="404 page not found"))
    with pytest.raises(NotFoundError, match="404 page not found") as caught:
        await client.execute_command(box.id, "true")
    assert caught.value.operation == START


async def test_a_cancelled_command_leaves_at_once_and_the_client_works_on(
    client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    work = asyncio.create_task(client.execute_command(box.id, "sleep 60"))
    await asyncio.sleep(0.2)
    work.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - began < 2
    assert (await client.execute_command(box.id, "echo on")).stdout == "on\n"
