"""SSH sessions: opened and closed, with checked arguments and documented failures."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import timezone
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    AsyncSandboxClient,
    ConflictError,
    NotFoundError,
    ServerError,
    SSHSession,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

KEY = asyncssh.generate_private_key("ssh-ed25519")
PUBLIC_KEY = KEY.export_public_key().decode()
CREATE, CLOSE = "create_ssh_session", "close_ssh_session"


def connect(session: SSHSession) -> Any:
    """Connects as the documentation says."""
    link = socket.create_connection((session.host, session.port), timeout=5)
    link.sendall(f"PRIME-SSH-SESSION {session.session_id}\n".encode())
    link.setblocking(False)
    return asyncssh.connect(
        sock=link,
        username=session.session_id,
        client_keys=[KEY],
        known_hosts=None,
        agent_path=None,
        config=None,
    )


async def test_a_session_opens_a_shell_until_it_is_closed(
    either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    session = await either.create_ssh_session(box.id, PUBLIC_KEY)
    assert (session.sandbox_id, session.ttl_seconds) == (box.id, 900)
    assert session.expires_at.tzinfo == timezone.utc
    async with connect(session) as connection:
        assert (await connection.run("echo $((6 * 7))")).stdout == "42\n"
        assert await either.close_ssh_session(box.id, session.session_id) is None  # type: ignore[func-returns-value]
        await connection.wait_closed()
    with pytest.raises((asyncssh.Error, OSError)):
        async with connect(session):
            pass


async def test_closing_what_is_gone_is_no_failure(
    platform: LocalPlatform, either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    session = await either.create_ssh_session(box.id, PUBLIC_KEY, 60)
    await platform.advance(61)
    await either.close_ssh_session(box.id, session.session_id)
    await either.delete(box.id)
    await either.close_ssh_session(box.id, session.session_id)


async def test_a_close_whose_answer_was_lost_is_sent_again(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    session = await client.create_ssh_session(box.id, PUBLIC_KEY)
    platform.add_faults(FaultRule(CLOSE, nth=1, reset="after_commit"))
    await client.close_ssh_session(box.id, session.session_id)
    assert platform.ledger()["requests"][CLOSE] == 2


async def test_a_close_that_fails_says_so(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    session = await client.create_ssh_session(box.id, PUBLIC_KEY)
    platform.add_faults(FaultRule(CLOSE, status=500))
    with pytest.raises(ServerError):
        await client.close_ssh_session(box.id, session.session_id)


async def test_an_open_whose_answer_was_lost_is_not_sent_again(
    platform: LocalPlatform, client: AsyncSandboxClient, running: Running
) -> None:
    box = await running(client)
    platform.add_faults(FaultRule(CREATE, reset="after_commit"))
    with pytest.raises(APIConnectionError) as caught:
        await client.create_ssh_session(box.id, PUBLIC_KEY)
    assert caught.value.attempts == 1
    assert platform.ledger()["requests"][CREATE] == 1


async def test_only_a_running_sandbox_can_be_opened(
    platform: LocalPlatform, either: AsyncSandboxClient, running: Running
) -> None:
    box = await running(either)
    platform.pause(box.id)
    with pytest.raises(ConflictError, match="not running"):
        await either.create_ssh_session(box.id, PUBLIC_KEY)
    with pytest.raises(NotFoundError):
        await either.create_ssh_session("sbx_unknown", PUBLIC_KEY)


PRIVATE_KEY = KEY.export_private_key().decode()
Ask = Callable[[AsyncSandboxClient], Any]
WRONG: dict[str, tuple[Ask, str]] = {
    "the private key": (lambda c: c.create_ssh_session("sbx_1", PRIVATE_KEY), "private key"),
    "no key": (lambda c: c.create_ssh_session("sbx_1", ""), "one line"),
    "two lines": (lambda c: c.create_ssh_session("sbx_1", PUBLIC_KEY * 2), "one line"),
    "no data": (lambda c: c.create_ssh_session("sbx_1", "ssh-ed25519"), "one line"),
    "no base64": (lambda c: c.create_ssh_session("sbx_1", "ssh-ed25519 ***"), "base64"),
    "another type": (
        lambda c: c.create_ssh_session("sbx_1", PUBLIC_KEY.replace("ssh-ed25519", "ssh-rsa")),
        "belong together",
    ),
    "a path": (lambda c: c.create_ssh_session("sbx_1", "~/.ssh/id.pub"), "one line"),
    "no time": (lambda c: c.create_ssh_session("sbx_1", PUBLIC_KEY, 0), "ttl_seconds"),
    "too much time": (lambda c: c.create_ssh_session("sbx_1", PUBLIC_KEY, 3601), "ttl_seconds"),
    "half a second": (
        lambda c: c.create_ssh_session("sbx_1", PUBLIC_KEY, 0.5),  # type: ignore[arg-type]
        "ttl_seconds",
    ),
    "no sandbox": (lambda c: c.create_ssh_session("", PUBLIC_KEY), "sandbox_id"),
    "no session": (lambda c: c.close_ssh_session("sbx_1", ""), "session_id"),
}


@pytest.mark.parametrize(("ask", "text"), WRONG.values(), ids=WRONG)
async def test_wrong_arguments_are_refused_before_anything_is_sent(
    platform: LocalPlatform, client: AsyncSandboxClient, ask: Ask, text: str
) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        await ask(client)
    assert "PRIVATE KEY" not in str(caught.value)
    assert not platform.ledger()["requests"]


@pytest.mark.parametrize("kind", ["ssh-rsa", "ecdsa-sha2-nistp256", "ssh-ed25519"])
async def test_keys_of_every_common_type_are_taken(
    client: AsyncSandboxClient, running: Running, kind: str
) -> None:
    box = await running(client)
    key = asyncssh.generate_private_key(kind, comment="me@home, my key")
    line = key.export_public_key().decode()
    assert (await client.create_ssh_session(box.id, line)).sandbox_id == box.id
