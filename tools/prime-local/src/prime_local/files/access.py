"""The platform's side of file access: starts the agent in a sandbox and talks to it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from prime_local.files import agent
from prime_local.sandboxes.commands import Command
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.processes import RunningProcess

__all__ = ["FileFault", "OpenFile", "open_file", "write_file"]

_HEAD_BYTES = 4096
_GIB = 1024**3


class FileFault(Exception):
    """A file that cannot be read or written, with the system's number for the reason."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class OpenFile:
    """A part of a sandbox's file, to be read once.

    Args:
        start: where it begins in the file.
        size: bytes of the part.
        total: bytes of the file.
        first: bytes that have come already.
        rest: those that follow.
    """

    def __init__(
        self, start: int, size: int, total: int, first: bytes, rest: AsyncIterator[bytes]
    ) -> None:
        self.start = start
        self.size = size
        self.total = total
        self._first = first
        self._rest = rest

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes.

        Raises:
            FileFault: there are fewer than there were: the file has shrunk, or its sandbox ended.
        """
        left = self.size - len(self._first)
        if self._first:
            yield self._first
        async for piece in self._rest:
            left -= len(piece)
            yield piece
        if left:
            raise FileFault(errno.EIO, "the file broke off")


@functools.cache
def _program() -> str:
    """The agent's source, which is executed in the sandbox."""
    return Path(agent.__file__).read_text(encoding="utf-8")


def _command(*words: str) -> Command:
    return Command(("python", "-I", "-S", "-c", _program(), *words))


@contextlib.asynccontextmanager
async def open_file(
    life: SandboxLife, path: str, *, offset: int = 0, length: int = -1, limit: int = -1
) -> AsyncIterator[OpenFile]:
    """Open a file of a sandbox for reading; the arguments are those of `agent.read`.

    Raises:
        FileFault: it cannot be read.
        CommandFault: the sandbox has ended, or is too full to run the agent.
    """
    roots = life.file_roots(writing=False)
    words = ("read", path, str(offset), str(length), str(limit), *roots)
    async with life.agent(_command(*words)) as process, _stopped(process):
        output = process.output("stdout")
        async with contextlib.aclosing(output):
            (start, size, total), first = await _head(output)
            yield OpenFile(start, size, total, first, output)


async def write_file(life: SandboxLife, path: str, content: AsyncIterator[bytes]) -> int:
    """Write a file of a sandbox, making missing folders; return its size.

    It takes its place when the content has come whole. If the content raises, nothing changes.

    Raises:
        FileFault: it cannot be written.
        CommandFault: the sandbox has ended, or is too full to run the agent.
    """
    limit = int(life.record.resources.disk * _GIB)
    words = ("write", path, str(limit), *life.file_roots(writing=True))
    async with life.agent(_command(*words), stdin="pipe") as process:
        assert process.stdin is not None
        output = process.output("stdout")
        async with contextlib.aclosing(output):
            # The agent hangs up when it cannot go on; it says why.
            with contextlib.suppress(BrokenPipeError):
                async for piece in content:
                    await _send(process.stdin.fileno(), piece)
                await _send(process.stdin.fileno(), b"")
            (size,), _ = await _head(output)
            return size


async def _head(output: AsyncIterator[bytes]) -> tuple[list[int], bytes]:
    """Read the agent's first line: its numbers, and what came after it.

    Raises:
        FileFault: the agent's, or it ended without a word.
    """
    said = b""
    async for piece in output:
        said += piece
        line, end, rest = said.partition(b"\n")
        if end or len(said) > _HEAD_BYTES:
            word, _, numbers = line.decode(errors="replace").partition(" ")
            if word == "ok":
                return [int(number) for number in numbers.split()], rest
            number, _, message = numbers.partition(" ")
            raise FileFault(int(number), message)
    raise FileFault(errno.EIO, "the sandbox ended, or had no room for the transfer")


@contextlib.asynccontextmanager
async def _stopped(process: RunningProcess) -> AsyncIterator[None]:
    """Kill a reading agent on leaving: nobody takes what it still has."""
    try:
        yield
    finally:
        process.signal_group(signal.SIGKILL)


async def _send(stdin: int, piece: bytes) -> None:
    """Send a piece to an agent.

    Raises:
        BrokenPipeError: the agent takes no more.
    """
    os.set_blocking(stdin, False)
    view = memoryview(len(piece).to_bytes(4, "big") + piece)
    while view:
        try:
            view = view[os.write(stdin, view) :]
        except BlockingIOError:
            await _writable(stdin)


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, ready.set_result, None)
    ready.add_done_callback(lambda _: loop.remove_writer(descriptor))
    await ready
