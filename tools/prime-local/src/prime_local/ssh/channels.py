"""What runs behind an SSH connection: a shell or a command in the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping

import asyncssh

from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.processes import RunningProcess
from prime_local.sandboxes.terminals import Stdin, TerminalSize
from prime_local.tasks import TaskSet

# A login shell in the sandbox's working folder, as documented.
_SHELL = ("/bin/sh", "-l")
# Served by programs that a client starts on the other side, and documented as not supported.
_REFUSED_PROGRAMS = frozenset({"scp", "sftp-server", "internal-sftp"})
_CANNOT_RUN = 127
_SIGNALS = {"HUP", "INT", "QUIT", "KILL", "TERM", "USR1", "USR2", "PIPE", "ALRM"}


class ShellChannel(asyncssh.SSHServerSession[bytes]):
    """One channel of a connection: starts its program and carries its streams.

    A client that leaves hangs up: the program's process group gets SIGHUP.

    Args:
        life: the sandbox.
        tasks: for the work in the background.
    """

    def __init__(self, life: SandboxLife, tasks: TaskSet) -> None:
        self._life = life
        self._tasks = tasks
        self._argv: tuple[str, ...] = _SHELL
        self._terminal: TerminalSize | None = None
        self._terminal_type = ""
        self._process: RunningProcess | None = None
        self._work: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        self._feeder = _Feeder(chan)

    def pty_requested(
        self,
        term_type: str,
        term_size: tuple[int, int, int, int],
        term_modes: Mapping[int, int],
    ) -> bool:
        self._terminal_type = term_type
        self._terminal = TerminalSize(*term_size[:2])
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        first = command.split(maxsplit=1)[:1]
        if "\0" in command or (first and first[0].rpartition("/")[2] in _REFUSED_PROGRAMS):
            return False
        self._argv = ("/bin/sh", "-c", command)
        return True

    def session_started(self) -> None:
        self._work = self._tasks.start(self._run())

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._feeder.feed(data)

    def eof_received(self) -> bool:
        # A terminal has no end of input: there, its user types what means one.
        if self._terminal is None:
            self._feeder.end()
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        process = self._process
        if self._terminal is not None and process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                TerminalSize(width, height).apply(process.stdin.fileno())

    def signal_received(self, signal_name: str) -> None:
        if self._process is not None and signal_name in _SIGNALS:
            self._process.signal_group(signal.Signals[f"SIG{signal_name}"])

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        if self._work is not None:
            self._work.cancel()

    async def _run(self) -> None:
        stdin: Stdin = self._terminal or "pipe"
        env = {"TERM": self._terminal_type} if self._terminal_type else {}
        try:
            process = await self._life.launch_unnoticed(Command(self._argv, env), stdin)
        except CommandFault as fault:
            self._channel.write_stderr(f"{fault.message}\r\n".encode())
            self._channel.exit(_CANNOT_RUN)
            return
        self._process = process
        try:
            await self._feeder.connect(process)
            await asyncio.gather(self._carry("stdout"), self._carry("stderr"))
            self._report(await process.exited)
        except Exception:
            self._channel.abort()  # the client must not wait for an end that nobody tells
            raise
        finally:
            process.signal_group(signal.SIGHUP)
            self._feeder.close()
            process.close()

    async def _carry(self, stream: str) -> None:
        assert self._process is not None
        write = self._channel.write if stream == "stdout" else self._channel.write_stderr
        async for piece in self._process.output(stream):
            await self._writable.wait()
            write(piece)

    def _report(self, returncode: int) -> None:
        name = signal.Signals(-returncode).name.removeprefix("SIG") if returncode < 0 else ""
        if name in _SIGNALS:
            self._channel.exit_with_signal(name)
        else:
            self._channel.exit(returncode if returncode >= 0 else 128 - returncode)


class _Feeder(asyncio.BaseProtocol):
    """Carries a channel's input to a process; holds the client back when the process is slow."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = channel
        self._early = bytearray()
        self._ended = False
        self._pipe: asyncio.WriteTransport | None = None

    async def connect(self, process: RunningProcess) -> None:
        assert process.stdin is not None
        loop = asyncio.get_running_loop()
        self._pipe, _ = await loop.connect_write_pipe(lambda: self, process.stdin)
        self._pipe.write(bytes(self._early))
        if self._ended:
            self._pipe.write_eof()

    def feed(self, data: bytes) -> None:
        if self._pipe is None:
            self._early += data
        elif not self._pipe.is_closing():
            self._pipe.write(data)

    def end(self) -> None:
        self._ended = True
        if self._pipe is not None and not self._pipe.is_closing():
            self._pipe.write_eof()

    def close(self) -> None:
        pipe = self._pipe
        # One that has closed by itself must not be closed again.
        if pipe is not None and not (pipe.is_closing() and not pipe.get_write_buffer_size()):
            pipe.abort()

    def pause_writing(self) -> None:
        self._channel.pause_reading()

    def resume_writing(self) -> None:
        # Soon, since that may bring the end of the input, which a transport can't take in here.
        asyncio.get_running_loop().call_soon(self._channel.resume_reading)
