"""A command session: one command, and the streams that watch it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from prime_local.sandboxes.commands import (
    Command,
    CommandFault,
    Ended,
    Event,
    Output,
    Started,
)
from prime_local.sandboxes.processes import RunningProcess
from prime_local.sandboxes.terminals import TerminalSize
from prime_local.sandboxes.writing import write_all

_DRAIN_SECONDS = 1.0
_EXIT_SECONDS = 0.2
_MOST_WAITING_INPUT = 16 * 1024 * 1024

Launch = Callable[[Command], Awaitable[RunningProcess]]
KillTree = Callable[[], Awaitable[None]]


class Watcher(Protocol):
    """Somebody who is told what a command does."""

    async def send(self, event: Event) -> None:
        """Take one event; may wait, which holds the command's output back.

        Raises:
            ConnectionError: the watcher is gone.
        """


class CommandSession:
    """Runs one command and tells its watchers; goes on when they leave.

    Args:
        command: what to run.
        launch: starts it.
        kill_tree: ends it with all its children, also those outside its process group.
    """

    def __init__(self, command: Command, launch: Launch, kill_tree: KillTree) -> None:
        self.command = command
        self.pid: int | None = None
        self.outcome: Ended | CommandFault | None = None
        self._launch = launch
        self._kill_tree = kill_tree
        self._process: RunningProcess | None = None
        self._launched = asyncio.Event()
        self._drained = asyncio.Event()
        self._over = asyncio.Event()
        self._pumps: list[asyncio.Task[None]] = []
        self._watchers: list[Watcher] = []
        self._aborting = False
        self._writing = asyncio.Lock()
        self._waiting_input = 0

    @property
    def over(self) -> bool:
        return self._over.is_set()

    async def run(self) -> None:
        """Start the command and follow it to its end. To be called once."""
        try:
            self._process = await self._launch(self.command)
            self.pid = self._process.pid
            self._launched.set()
            if self.outcome is None:
                await self._tell(Started(self.pid))
            else:
                # Aborted while it was being started: that kill may have come too early.
                await self._kill()
            await self._pump_output(self._process)
            end = Ended.from_returncode(await self._process.exited)
            if self.outcome is None:
                self.outcome = end
                await self._tell(end)
                self._finish(end)
        except CommandFault as fault:
            self._finish(fault)
        finally:
            self._drained.set()
            if self.outcome is None:
                self._finish(CommandFault("internal", "the command was lost, see the log"))
            if self._process is not None:
                self._process.close()

    def condemn(self, fault: CommandFault) -> None:
        """Make the fault the command's end, whatever it does until it is aborted."""
        if self.outcome is None:
            self.outcome = fault

    async def abort(self, fault: CommandFault) -> None:
        """Kill the command with all its children; its watchers get the fault as its end.

        A fault that it was condemned to goes before.
        """
        self.condemn(fault)
        if self._aborting or not isinstance(self.outcome, CommandFault):
            return
        self._aborting = True
        await self._kill()
        # What it wrote before goes out first, unless a watcher does not take it.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._drained.wait(), _DRAIN_SECONDS)
        for pump in self._pumps:
            pump.cancel()
        self._finish(self.outcome)

    async def signal(self, number: signal.Signals) -> None:
        """Signal the command's process group; SIGKILL reaches children outside it as well."""
        await self._launched.wait()
        if self._process is not None:
            self._process.signal_group(number)
        if number is signal.SIGKILL:
            await self._kill_tree()

    async def write(self, data: bytes, *, terminal: bool) -> None:
        """Write to the command's input, after all that came before.

        Args:
            data: what to write.
            terminal: whether it is meant for a terminal.

        Raises:
            CommandFault: `not_found` once the command has ended, `failed_precondition` when it
                does not read that input, `resource_exhausted` when too much waits already.
        """
        await self._launched.wait()
        if self.command.stdin == "none" or self.command.in_terminal != terminal:
            raise CommandFault("failed_precondition", "the command has no such input")
        if self._waiting_input + len(data) > _MOST_WAITING_INPUT:
            raise CommandFault("resource_exhausted", "the command does not read its input")
        self._waiting_input += len(data)
        try:
            async with self._writing:
                process = self._process
                if process is None or process.stdin is None or self.outcome is not None:
                    raise BrokenPipeError
                await write_all(process.stdin, data, process.exited)
        except BrokenPipeError:
            if self._process is None or await self._ends(self._process):
                raise CommandFault("not_found", "the command has ended") from None
            raise CommandFault("failed_precondition", "the command closed its input") from None
        finally:
            self._waiting_input -= len(data)

    async def resize(self, size: TerminalSize) -> None:
        """Set the size of the command's terminal.

        Raises:
            CommandFault: `failed_precondition` when it has none.
        """
        await self._launched.wait()
        if not self.command.in_terminal:
            raise CommandFault("failed_precondition", "the command has no terminal")
        if self._process is not None and self._process.stdin is not None and not self.over:
            size.apply(self._process.stdin.fileno())

    async def watch(self, watcher: Watcher) -> Ended | CommandFault:
        """Tell a watcher everything from now on, the start and the end included.

        Returns the outcome once the command is over; to a session that is over already the end
        is announced again. Output from before is lost.

        Raises:
            ConnectionError: the watcher is gone; the command goes on.
        """
        if self.pid is not None:
            await watcher.send(Started(self.pid))
        if isinstance(self.outcome, Ended):
            await watcher.send(self.outcome)
        else:
            async with self._attached(watcher):
                await self._over.wait()
        assert self.outcome is not None
        return self.outcome

    async def _ends(self, process: RunningProcess) -> bool:
        """Say whether a process has ended: its pipes break a little before that is known."""
        await asyncio.wait({process.exited}, timeout=_EXIT_SECONDS)
        return process.exited.done() or self.outcome is not None

    async def _pump_output(self, process: RunningProcess) -> None:
        self._pumps = [
            asyncio.create_task(self._pump(process, stream)) for stream in ("stdout", "stderr")
        ]
        try:
            await asyncio.wait(self._pumps)
        finally:
            for pump in self._pumps:
                pump.cancel()

    async def _pump(self, process: RunningProcess, stream: str) -> None:
        name = "pty" if self.command.in_terminal else stream
        async for piece in process.output(stream):
            await self._tell(Output(name, piece))

    async def _tell(self, event: Event) -> None:
        for watcher in list(self._watchers):
            try:
                await watcher.send(event)
            except ConnectionError:
                with contextlib.suppress(ValueError):
                    self._watchers.remove(watcher)

    @contextlib.asynccontextmanager
    async def _attached(self, watcher: Watcher) -> AsyncIterator[None]:
        self._watchers.append(watcher)
        try:
            yield
        finally:
            with contextlib.suppress(ValueError):
                self._watchers.remove(watcher)

    async def _kill(self) -> None:
        if self._process is not None:
            self._process.signal_group(signal.SIGKILL)
        await self._kill_tree()

    def _finish(self, outcome: Ended | CommandFault) -> None:
        self.outcome = outcome
        self._launched.set()
        self._over.set()
