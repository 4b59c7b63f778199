"""Public ports: HTTP from outside to the ports that `internet` rules expose.

The platform serves them at `https://<port>-<sandbox-id>.<its domain>`; here they are at
`http://<port>-<sandbox-id>.localhost:<a port of this machine>`, a name that leads to the loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re

from prime_local.networks.fabric import Fabric
from prime_local.sandboxes.isolation.base import IsolationError

logger = logging.getLogger("prime_local")

_HOST = re.compile(rb"^host:[ \t]*(\d{1,5})-([\w-]+)\.", re.IGNORECASE | re.MULTILINE)
_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 10.0
_PIECE_BYTES = 64 * 1024
# Each connection costs a process.
_MOST_CONNECTIONS = 64


class PublicPorts:
    """Passes connections on to the sandboxes that their first request names.

    Args:
        fabric: knows what is exposed, and the way there.
        host: address to listen on.
    """

    def __init__(self, fabric: Fabric, host: str) -> None:
        self._fabric = fabric
        self._host = host
        self._slots = asyncio.Semaphore(_MOST_CONNECTIONS)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Listen on a free port.

        Raises:
            OSError: the address cannot be bound.
        """
        self._server = await asyncio.start_server(self._serve, self._host, 0, limit=_HEAD_BYTES)

    async def close(self) -> None:
        """Stop listening, and cut what is open."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            with contextlib.suppress(ConnectionError):
                await self._pass_on(reader, writer)
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError):
            return
        named = _HOST.search(head)
        # One answer for all, so that nobody learns which sandboxes there are.
        if named is None or not self._fabric.exposes(named[2].decode(), int(named[1])):
            await _refuse(writer, "404 Not Found", "Port not exposed")
            return
        if self._slots.locked():
            await _refuse(writer, "503 Service Unavailable", "Too many open connections")
            return
        async with self._slots:
            try:
                theirs, ours = await self._fabric.dial(named[2].decode(), int(named[1]))
            except (IsolationError, OSError) as error:
                logger.info("public port: %s", error)
                await _refuse(writer, "502 Bad Gateway", "Nothing accepts connections on the port")
                return
            try:
                ours.write(head)
                await _join((reader, ours), (theirs, writer))
            finally:
                ours.close()


async def _refuse(writer: asyncio.StreamWriter, status: str, text: str) -> None:
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain",
        f"Content-Length: {len(text)}",
        "Connection: close",
        "",
        text,
    )
    writer.write("\r\n".join(lines).encode())
    await writer.drain()


async def _join(*ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    """Copy both ways until the sandbox's side, the second, has said all."""
    copies = [asyncio.ensure_future(_copy(*way)) for way in ways]
    try:
        await copies[-1]
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
