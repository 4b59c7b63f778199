"""The platform's end of the connection to the launcher."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import prime_local
from prime_local.sandboxes.isolation.base import IsolationError
from prime_local.sandboxes.isolation.protocol import PACKET_BYTES

JsonObject = dict[str, Any]

_START_SECONDS = 10.0
_STOP_SECONDS = 3.0
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from prime_local.sandboxes.isolation.launcher import main; main()"
)


class LauncherLink:
    """A running launcher. Must be used on the event loop that started it.

    Args:
        process: the launcher.
        link: the connection to it.
        on_event: told every event; `{"event": "lost"}` when the launcher has ended.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        link: socket.socket,
        on_event: Callable[[JsonObject], None],
    ) -> None:
        self._process = process
        self._link = link
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[bytes, Sequence[int]]] = deque()
        self._lost = False
        link.setblocking(False)
        self._loop.add_reader(link, self._receive)

    @classmethod
    async def start(
        cls, settings: JsonObject, on_event: Callable[[JsonObject], None]
    ) -> LauncherLink:
        """Start a launcher and wait until it is ready.

        Raises:
            IsolationError: it cannot work here, or is not ready after 10 s.
        """
        first: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()

        def on_first(event: JsonObject) -> None:
            if first.done():
                on_event(event)
            else:
                first.set_result(event)

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                process = await asyncio.to_thread(_spawn, theirs)
            except BaseException:
                ours.close()
                raise
        launcher = cls(process, ours, on_first)
        try:
            launcher.send(**settings)
            answer = await asyncio.wait_for(first, _START_SECONDS)
            if answer["event"] != "ready":
                raise IsolationError(answer.get("reason", "the launcher ended"))
        except asyncio.TimeoutError:
            await launcher.close()
            raise IsolationError("the launcher is not ready in time") from None
        except BaseException:
            await launcher.close()
            raise
        return launcher

    def send(self, descriptors: Sequence[int] = (), **packet: object) -> None:
        """Send a packet soon; the descriptors pass over to it and are closed here."""
        if self._lost:
            _close(descriptors)
            return
        self._waiting.append((json.dumps(packet).encode(), descriptors))
        if len(self._waiting) == 1:
            self._flush()

    async def close(self) -> None:
        """End the launcher and, if any live still, every sandbox."""
        self._lose()
        try:
            await asyncio.to_thread(self._process.wait, _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)

    def _flush(self) -> None:
        while self._waiting:
            packet, descriptors = self._waiting[0]
            try:
                socket.send_fds(self._link, [packet], list(descriptors))
            except BlockingIOError:
                self._loop.add_writer(self._link, self._flush)
                return
            except OSError:
                self._lose()
                return
            self._waiting.popleft()
            _close(descriptors)
        self._loop.remove_writer(self._link)

    def _receive(self) -> None:
        # A few at a time: other work must get its turn.
        for _ in range(32):
            try:
                packet = self._link.recv(PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._lose()
                return
            self._on_event(json.loads(packet))

    def _lose(self) -> None:
        if self._lost:
            return
        self._lost = True
        self._loop.remove_reader(self._link)
        self._loop.remove_writer(self._link)
        self._link.close()
        while self._waiting:
            _close(self._waiting.popleft()[1])
        self._on_event({"event": "lost"})


def _spawn(link: socket.socket) -> subprocess.Popen[bytes]:
    packages = str(Path(prime_local.__file__).parent.parent)
    # Without the environment's settings and packages: it is quick, small and alike everywhere.
    words = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _PROGRAM, packages]
    return subprocess.Popen(
        words, stdin=link.fileno(), stdout=subprocess.DEVNULL, env={}, start_new_session=True
    )


def memory_file(content: bytes) -> int:
    """Return a descriptor to read some bytes from: a packet could not hold many."""
    descriptor = os.memfd_create("command")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
