"""Routes of SSH sessions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prime_local.calls import Call, Handler, Reply
from prime_local.contract import Problem
from prime_local.core import PlatformCore
from prime_local.errors import PlatformError, invalid
from prime_local.sandboxes.record import Status

if TYPE_CHECKING:
    from prime_local.ssh.server import SshServer


DEFAULT_TTL_SECONDS = 900


class SshRoutes:
    """Opens and closes SSH sessions, and the server that they need.

    Args:
        core: the platform.
        host: address that the server listens on.
    """

    def __init__(self, core: PlatformCore, host: str) -> None:
        self._core = core
        self._host = host
        self._server: SshServer | None = None
        self._opening = asyncio.Lock()

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            handler.__name__: handler
            for handler in (self.create_ssh_session, self.close_ssh_session)
        }

    async def close(self) -> None:
        """Stop the server; the sessions have ended."""
        if self._server is not None:
            await self._server.close()

    async def create_ssh_session(self, call: Call) -> Reply:
        sandbox = call.core.sandboxes.get(call.parameters["sandbox_id"]).record
        key = _read_key(call.body["public_key"])
        server = await self._listening()
        if sandbox.status is not Status.RUNNING:
            raise PlatformError(409, f"Sandbox is not running ({sandbox.status.value})")
        session = call.core.ssh_sessions.create(
            sandbox.id, key, call.body.get("ttl_seconds") or DEFAULT_TTL_SECONDS
        )
        return Reply(session.to_wire(call.request.url.host or self._host, server.port))

    async def close_ssh_session(self, call: Call) -> Reply:
        sandbox_id, session_id = (call.parameters[name] for name in ("sandbox_id", "session_id"))
        session = call.core.ssh_sessions.find(session_id)
        if session is None or session.sandbox_id != sandbox_id:
            raise PlatformError(404, "SSH session not found")
        call.core.ssh_sessions.end(session_id)
        return Reply({"success": True, "message": "SSH session closed"})

    async def _listening(self) -> SshServer:
        async with self._opening:
            if self._server is None:
                # Loaded for the first session: it takes a while, and few platforms need it.
                from prime_local.ssh.server import SshServer

                self._server = await SshServer.open(self._core, self._host)
            return self._server


def _read_key(text: str) -> bytes:
    """Return the data of a public key.

    Raises:
        PlatformError: 422, it is none.
    """
    import asyncssh

    try:
        return asyncssh.import_public_key(text).public_data
    except (asyncssh.KeyImportError, ValueError) as error:
        problem = Problem(("body", "public_key"), f"Not a public key: {error}", "value_error")
        raise invalid([problem]) from None
