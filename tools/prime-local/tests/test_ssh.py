"""SSH into sandboxes: shells and commands, who gets in, and when a session ends."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from prime_local import LocalPlatform

if TYPE_CHECKING:
    from conftest import PlatformOfMode, RawClient

KEY = asyncssh.generate_private_key("ssh-ed25519")
PUBLIC_KEY = KEY.export_public_key().decode()
RELAY = Path(__file__).parent / "programs" / "ssh_relay.py"

Session = dict[str, Any]
Connect = Callable[..., Awaitable[asyncssh.SSHClientConnection]]


async def open_session(client: RawClient, sandbox: dict[str, Any], **body: object) -> Session:
    body = {"public_key": PUBLIC_KEY, **body}
    answer = await client.call("POST", f"/api/v1/sandbox/{sandbox['id']}/ssh-session", body)
    assert answer.status == 200, answer.body
    session: Session = answer.body
    return session


async def close_session(client: RawClient, session: Session) -> int:
    path = f"/api/v1/sandbox/{session['sandbox_id']}/ssh-session/{session['session_id']}"
    return (await client.call("DELETE", path)).status


def announced(session: Session, line: str | None = None) -> socket.socket:
    """A connection on which a session has been named."""
    link = socket.create_connection((session["host"], session["port"]), timeout=5)
    line = f"PRIME-SSH-SESSION {session['session_id']}\n" if line is None else line
    link.sendall(line.encode())
    link.setblocking(False)
    return link


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Opens SSH connections to sessions."""
    async with AsyncExitStack() as stack:

        async def open(
            session: Session, key: asyncssh.SSHKey = KEY, user: str | None = None
        ) -> asyncssh.SSHClientConnection:
            connection = await asyncssh.connect(
                sock=announced(session),
                username=user or session["session_id"],
                client_keys=[key],
                known_hosts=None,
                agent_path=None,
                config=None,
            )
            return await stack.enter_async_context(connection)

        yield open


@pytest.fixture(params=["process", "bwrap", "full"])
async def anywhere(
    request: pytest.FixtureRequest, platform_of_mode: PlatformOfMode, helpers: Any
) -> AsyncIterator[RawClient]:
    """A client of a platform in each mode."""
    server = platform_of_mode(request.param)
    async with helpers.client_of(server) as client:
        yield client
    server.reset()


async def until_closed(connection: asyncssh.SSHClientConnection) -> None:
    await asyncio.wait_for(connection.wait_closed(), 5)


async def test_a_command_runs_in_the_sandbox(anywhere: RawClient, connect: Connect) -> None:
    box = await anywhere.running(environment_vars={"A": "env"})
    await anywhere.run(box, "echo content >file")
    connection = await connect(await open_session(anywhere, box))
    done = await connection.run(
        "cat file; echo $A $PRIME_LOCAL_SANDBOX >&2; cat; exit 5", input="in"
    )
    assert (done.stdout, done.exit_status) == ("content\nin", 5)
    assert done.stderr == f"env {box['id']}\n"


async def test_a_shell_has_a_terminal_that_controls_jobs(
    anywhere: RawClient, connect: Connect
) -> None:
    box = await anywhere.running()
    connection = await connect(await open_session(anywhere, box))
    async with connection.create_process(term_type="vt100", term_size=(101, 41)) as shell:
        shell.stdin.write("stty size; echo term=$TERM shell=$0; test -t 0 && echo tt''y\n")
        shown = await read_until(shell, "tty\r\n")
        assert "41 101" in shown
        assert "term=vt100" in shown
        shell.change_terminal_size(120, 50)
        shell.stdin.write("stty size; echo be''gin; sleep 60\n")
        assert "50 120" in await read_until(shell, "begin\r\n")
        await asyncio.sleep(0.3)
        shell.stdin.write("\x03")  # Ctrl-C
        await asyncio.sleep(0.3)
        shell.stdin.write("echo stat''us=$?; exit 4\n")
        assert "status=130" in await read_until(shell, "status=")
        assert (await shell.wait()).exit_status == 4


async def test_short_commands_in_terminals_end_with_all_they_wrote(
    anywhere: RawClient, connect: Connect
) -> None:
    box = await anywhere.running()
    connection = await connect(await open_session(anywhere, box))
    done = await asyncio.gather(
        *(connection.run(f"echo {n}; exit {n}", term_type="vt100") for n in range(1, 16))
    )
    assert [(end.stdout, end.exit_status) for end in done] == [
        (f"{n}\r\n", n) for n in range(1, 16)
    ]


async def read_until(shell: asyncssh.SSHClientProcess[str], text: str) -> str:
    """What a shell shows up to a line with some text."""
    shown = ""
    while text not in shown:
        shown += await asyncio.wait_for(shell.stdout.readline(), 5)
    return shown


async def test_many_bytes_pass_both_ways(client: RawClient, connect: Connect) -> None:
    connection = await connect(await open_session(client, await client.running()))
    sent = bytes(range(256)) * 20_000
    done = await connection.run("sleep 0.2; cat; cat >&2 </dev/null", input=sent, encoding=None)
    assert done.stdout == sent


async def test_a_signal_and_its_death_are_told(client: RawClient, connect: Connect) -> None:
    connection = await connect(await open_session(client, await client.running()))
    done = await connection.run("kill -9 $$")
    assert done.exit_signal is not None
    assert done.exit_signal[0] == "KILL"
    async with connection.create_process("exec sleep 60") as sleeping:
        await asyncio.sleep(0.3)
        sleeping.send_signal("TERM")
        ended = await asyncio.wait_for(sleeping.wait(), 5)
    assert ended.exit_signal is not None
    assert ended.exit_signal[0] == "TERM"


async def test_forwarding_and_file_transfers_are_refused(
    client: RawClient, connect: Connect
) -> None:
    connection = await connect(await open_session(client, await client.running()))
    for refused in (
        connection.start_sftp_client,
        lambda: connection.open_connection("127.0.0.1", 22),
        lambda: connection.run("scp -t file"),
        lambda: connection.run("/usr/lib/openssh/sftp-server"),
    ):
        with pytest.raises(asyncssh.ChannelOpenError):
            await asyncio.wait_for(refused(), 5)
    with pytest.raises(asyncssh.ChannelListenError):
        await asyncio.wait_for(connection.forward_remote_port("", 0, "127.0.0.1", 22), 5)


async def test_only_the_sessions_key_and_name_get_in(client: RawClient, connect: Connect) -> None:
    box = await client.running()
    session, other = [await open_session(client, box) for _ in range(2)]
    with pytest.raises(asyncssh.PermissionDenied):
        await connect(session, asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(asyncssh.PermissionDenied):
        await connect(session, user=other["session_id"])
    await connect(session)


@pytest.mark.parametrize(
    "line", ["SSH-2.0-x\r\n", "PRIME-SSH-SESSION ssh_unknown\n", "PRIME-SSH-SESSION\n", "x" * 300]
)
async def test_who_names_no_session_is_cut_off(client: RawClient, line: str) -> None:
    session = await open_session(client, await client.running())
    loop = asyncio.get_running_loop()
    # It may be reset, with some of our line unread.
    with announced(session, line) as link, contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(loop.sock_recv(link, 1), 5) == b""


async def test_the_session_has_its_documented_fields(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    box = await client.running()
    session = await open_session(client, box)
    assert (session["sandbox_id"], session["ttl_seconds"]) == (box["id"], 900)
    assert session["host"] == "127.0.0.1"
    asked = await open_session(client, box, ttl_seconds=60)
    ends = [datetime.fromisoformat(row["expires_at"][:-1]) for row in (session, asked)]
    assert 839 < (ends[0] - ends[1]).total_seconds() < 841


async def test_a_session_ends_with_its_time(
    prime_platform: LocalPlatform, client: RawClient, connect: Connect
) -> None:
    session = await open_session(client, await client.running(), ttl_seconds=60)
    connection = await connect(session)
    await prime_platform.advance(59)
    assert (await connection.run("echo x")).stdout == "x\n"
    await prime_platform.advance(1)
    await until_closed(connection)
    with pytest.raises((asyncssh.Error, OSError)):
        await connect(session)
    assert await close_session(client, session) == 404


async def test_a_closed_session_hangs_up_on_its_programs(
    client: RawClient, connect: Connect
) -> None:
    box = await client.running()
    session, other = [await open_session(client, box) for _ in range(2)]
    connection, beside = await connect(session), await connect(other)
    running = await connection.create_process("echo $$; exec sleep 600")
    pid = (await running.stdout.readline()).strip()
    assert await close_session(client, {**session, "sandbox_id": "sbx_other"}) == 404
    assert await close_session(client, session) == 200
    await until_closed(connection)
    deadline = time.monotonic() + 5
    while (await client.run(box, f"kill -0 {pid}")).exit_code == 0:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert (await beside.run("echo x")).stdout == "x\n"
    assert await close_session(client, session) == 404


async def test_the_end_of_the_sandbox_cuts_its_connections(
    anywhere: RawClient, connect: Connect
) -> None:
    box = await anywhere.running()
    session = await open_session(anywhere, box)
    connection = await connect(session)
    await connection.create_process("sleep 600")
    await anywhere.call("DELETE", f"/api/v1/sandbox/{box['id']}")
    await until_closed(connection)
    assert await close_session(anywhere, session) == 404


async def test_ssh_is_no_activity(
    prime_platform: LocalPlatform, client: RawClient, connect: Connect
) -> None:
    box = await client.running(idle_timeout_minutes=1)
    connection = await connect(await open_session(client, box))
    await prime_platform.advance(50)
    await connection.run("true")
    running = await connection.create_process("sleep 600")
    await prime_platform.advance(11)
    assert (await client.get(box))["terminationReason"] == "idle_timeout"
    await until_closed(connection)
    running.close()


async def test_the_platform_takes_its_connections_along(helpers: Any, connect: Connect) -> None:
    async with LocalPlatform() as platform, helpers.client_of(platform) as client:
        box = await client.running()
        session = await open_session(client, box)
        connection = await connect(session)
        running = await connection.create_process("echo $$; exec sleep 600")
        pid = int(await running.stdout.readline())
    await until_closed(connection)
    await helpers.until_gone(pid)
    with pytest.raises(ConnectionRefusedError):
        announced(session)


@pytest.mark.parametrize(
    "body",
    [
        {"public_key": "ssh-ed25519 nothing"},
        {"public_key": ""},
        {"public_key": PUBLIC_KEY, "ttl_seconds": 3601},
        {"public_key": PUBLIC_KEY, "ttl_seconds": 0},
        {},
    ],
)
async def test_a_wrong_request_is_refused(client: RawClient, body: dict[str, object]) -> None:
    box = await client.running()
    answer = await client.call("POST", f"/api/v1/sandbox/{box['id']}/ssh-session", body)
    assert answer.status == 422, answer.body


async def test_only_a_running_sandbox_can_be_opened(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    body = {"public_key": PUBLIC_KEY}
    box = await client.running()
    prime_platform.pause(box["id"])
    path = "/api/v1/sandbox/{}/ssh-session"
    assert (await client.call("POST", path.format(box["id"]), body)).status == 409
    assert (await client.call("POST", path.format("sbx_unknown"), body)).status == 404


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's client is not installed")
async def test_openssh_gets_a_command_and_a_shell(anywhere: RawClient, tmp_path: Path) -> None:
    session = await open_session(anywhere, await anywhere.running())
    key = tmp_path / "key"
    KEY.write_private_key(key)
    key.chmod(0o600)
    relay = f"{sys.executable} {RELAY} {session['host']} {session['port']} {session['session_id']}"
    settings = {
        "ProxyCommand": relay,
        "IdentityFile": key,
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
    }
    options = [f"-o{name}={value}" for name, value in settings.items()]
    words = ["ssh", "-F", "none", *options, f"{session['session_id']}@sandbox"]

    async def use(*more: str, given: bytes = b"") -> tuple[bytes, int | None]:
        process = await asyncio.create_subprocess_exec(
            *words[:-1], *more[:-1], words[-1], *more[-1:], stdin=PIPE, stdout=PIPE
        )
        shown, _ = await asyncio.wait_for(process.communicate(given), 10)
        return shown, process.returncode

    assert await use("wc -c; exit 7", given=b"x" * 100_000) == (b"100000\n", 7)
    shown, code = await use("-tt", "exec sh -c 'test -t 1 && echo tty; exit 8'")
    assert (shown, code) == (b"tty\r\n", 8)
