"""The platform's side of the network that its sandboxes hang on."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Sequence
from concurrent.futures import Executor
from ipaddress import IPv4Address
from pathlib import Path
from typing import Protocol

from prime_local.sandboxes.isolation.base import IsolationError
from prime_local.sandboxes.isolation.building import HOSTS
from prime_local.sandboxes.isolation.launching import memory_file
from prime_local.sandboxes.isolation.relaying import CONNECTED

# Far more than the work takes, be the machine ever so busy.
_TASK_SECONDS = 30.0


class Send(Protocol):
    def __call__(self, descriptors: Sequence[int] = ..., **packet: object) -> None: ...


class LauncherLinks:
    """Has the launcher connect sandboxes and filter between them.

    Args:
        send: sends the launcher a request.
        root: the platform's folder.
        executor: threads for what would block the event loop.
    """

    def __init__(self, send: Send, root: Path, executor: Executor) -> None:
        self._send = send
        self._root = root
        self._executor = executor
        self._numbers = itertools.count(1)
        self._tasks: dict[int, asyncio.Future[None]] = {}
        self._opening = asyncio.Lock()
        self._is_open = False

    async def connect(self, sandbox_id: str, address: IPv4Address) -> None:
        """Give a sandbox an address; see `base.Links`."""
        await self._open_hub()
        number = next(self._numbers)
        await self._do("connect", sandbox=sandbox_id, address=str(address), number=number)

    async def enforce(self, ruleset: str) -> None:
        """Replace the filter; see `base.Links`."""
        await self._open_hub()
        await self._do("enforce", [memory_file(ruleset.encode())])

    async def dial(
        self, address: IPv4Address, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of a sandbox; see `base.Links`."""
        await self._open_hub()
        ours, theirs = socket.socketpair()
        task = next(self._numbers)
        # It ends with the connection, and nobody waits for that.
        facts = {"address": str(address), "port": port}
        self._send([theirs.detach()], request="network", work="dial", task=task, **facts)
        try:
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        try:
            await asyncio.wait_for(reader.readexactly(len(CONNECTED)), _TASK_SECONDS)
        except (asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            writer.close()
            raise IsolationError(f"{address} does not accept connections on {port}") from error
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def tell_names(self, sandbox_id: str, hosts: str) -> None:
        """Replace a sandbox's /etc/hosts; see `base.Links`."""
        path = self._root / "sandboxes" / sandbox_id / HOSTS
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._executor, _rewrite, path, hosts.encode())

    def done(self, task: int, fault: str | None) -> None:
        """Note what became of a request."""
        future = self._tasks.pop(task, None)
        if future is not None and not future.done():
            if fault is None:
                future.set_result(None)
            else:
                future.set_exception(IsolationError(fault))

    def lost(self) -> None:
        """Note that the launcher has ended."""
        for task in list(self._tasks):
            self.done(task, "the launcher has ended")

    async def _open_hub(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self._do("open")
                self._is_open = True

    async def _do(self, work: str, descriptors: Sequence[int] = (), **facts: object) -> None:
        task = next(self._numbers)
        future = self._tasks[task] = asyncio.get_running_loop().create_future()
        self._send(descriptors, request="network", work=work, task=task, **facts)
        try:
            await asyncio.wait_for(future, _TASK_SECONDS)
        except asyncio.TimeoutError:
            raise IsolationError(f"the launcher did not {work} in time") from None
        finally:
            self._tasks.pop(task, None)


def _rewrite(path: Path, content: bytes) -> None:
    # In place: a sandbox has this very file mounted, and a new one would not be seen.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)
