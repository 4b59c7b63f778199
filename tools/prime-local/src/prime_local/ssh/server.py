"""The SSH server: one port for all sandboxes, opened with the first session."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Coroutine
from typing import Any

import asyncssh

from prime_local.core import PlatformCore
from prime_local.ssh.channels import ShellChannel
from prime_local.ssh.sessions import SshSession

_PREAMBLE = b"PRIME-SSH-SESSION "
_PREAMBLE_BYTES = 200
_HANDSHAKE_SECONDS = 30.0
_ACCEPT_PAUSE_SECONDS = 0.1
_BACKLOG = 512


class SshServer:
    """Lets the holders of sessions into their sandboxes.

    A client names its session in a line of text, then speaks SSH on the same connection.

    Args:
        core: the platform.
        listener: a socket that listens.
    """

    def __init__(self, core: PlatformCore, listener: socket.socket) -> None:
        self._core = core
        self._listener = listener
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._accept())

    @classmethod
    async def open(cls, core: PlatformCore, host: str) -> SshServer:
        """Listen on a free port of an address.

        Raises:
            OSError: the address cannot be bound.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        listener = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        listener.setblocking(False)
        return cls(core, listener)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    async def close(self) -> None:
        """Stop listening and drop the connections that no session has."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listener.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError:
                # The caller has left already, or there are no descriptors for now.
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            connection.setblocking(False)
            self._start(self._serve(connection))

    async def _serve(self, connection: socket.socket) -> None:
        try:
            session = await asyncio.wait_for(self._read_session(connection), _HANDSHAKE_SECONDS)
        except (OSError, asyncio.TimeoutError):
            session = None
        except BaseException:
            connection.close()
            raise
        if session is None:
            connection.close()
            return
        # A handshake that fails is the client's affair.
        with contextlib.suppress(OSError, asyncssh.Error):
            secured = await asyncssh.run_server(
                connection,
                server_factory=lambda: _Door(self._core, session),
                server_host_keys=[self._key],
                login_timeout=_HANDSHAKE_SECONDS,
                encoding=None,
                line_editor=False,
                agent_forwarding=False,
                allow_scp=False,
            )
            await secured.wait_closed()

    async def _read_session(self, connection: socket.socket) -> SshSession | None:
        """Return the open session that a client names in its first line."""
        loop = asyncio.get_running_loop()
        line = b""
        # Byte by byte: what follows the line is read by somebody else.
        while not line.endswith(b"\n"):
            byte = await loop.sock_recv(connection, 1)
            line += byte
            if not byte or len(line) > _PREAMBLE_BYTES:
                return None
        if not line.startswith(_PREAMBLE):
            return None
        name = line[len(_PREAMBLE) : -1].decode("ascii", errors="replace")
        return self._core.ssh_sessions.find(name)


class _Door(asyncssh.SSHServer):
    """Admits the session's key, under the session's name, to shells and commands alone."""

    def __init__(self, core: PlatformCore, session: SshSession) -> None:
        self._core = core
        self._session = session

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._session.hang_up.add(self._hang_up)
        if self._core.ssh_sessions.find(self._session.id) is None:
            self._hang_up()  # it ended since it was named

    def connection_lost(self, exc: Exception | None) -> None:
        self._session.hang_up.discard(self._hang_up)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == self._session.id and key.public_data == self._session.key

    def session_requested(self) -> ShellChannel | bool:
        life = self._core.sandboxes.find(self._session.sandbox_id)
        return False if life is None else ShellChannel(life, self._core.tasks)

    def _hang_up(self) -> None:
        self._connection.disconnect(asyncssh.DISC_BY_APPLICATION, "The SSH session has ended")
