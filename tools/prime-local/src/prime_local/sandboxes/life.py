"""The life of one sandbox: its states, its clocks, its commands and its end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from prime_local.clock import PlatformClock, Timer
from prime_local.identifiers import Identifiers
from prime_local.images.record import Content, as_the_image_says
from prime_local.sandboxes.commands import Command, CommandFault, shell_exit_code
from prime_local.sandboxes.deliveries import Deliveries
from prime_local.sandboxes.images import ImageBuilds
from prime_local.sandboxes.isolation.base import Box, Isolation, IsolationError
from prime_local.sandboxes.processes import RunningProcess
from prime_local.sandboxes.record import Attachment, Sandbox, Status
from prime_local.sandboxes.session import CommandSession
from prime_local.sandboxes.sessions import Sessions
from prime_local.sandboxes.terminals import Stdin
from prime_local.sandboxes.trees import tree_name
from prime_local.tasks import TaskSet

_LOG_BYTES = 1024 * 1024
# What the name of a session without a uuid begins with.
ANONYMOUS = "anonymous-"


@dataclass(frozen=True)
class Host:
    """What all sandboxes of a platform share.

    Args:
        instance: names this platform's processes on the machine.
        builds: first uses of images.
        start_delay: seconds on the platform clock between a create, or the end of the image's
            build, and RUNNING.
        gateway_delay: seconds on the platform clock between RUNNING and an answering gateway.
        retained_sessions: how many ended commands of a sandbox can still be attached to.
        session_retention: for how many seconds on the platform clock; None for ever.
        begin_network: brings a sandbox's network rules into force before it runs; returns what to
            wait for, None for nothing.
        content: says what the image of a sandbox holds; None when there is no such image.
        hold: keeps the files of an image while they are copied.
        is_built: says whether an image needs no build at its first use.
        box: says what a sandbox is made of.
        on_change: told whenever a record has changed.
        on_end: told once when a sandbox has reached a final state, and whether by a delete.
    """

    clock: PlatformClock
    identifiers: Identifiers
    isolation: Isolation
    tasks: TaskSet
    instance: str
    builds: ImageBuilds
    start_delay: float
    gateway_delay: float
    retained_sessions: int
    session_retention: float | None
    begin_network: Callable[[SandboxLife], Awaitable[None] | None]
    content: Callable[[Sandbox], Content | None]
    hold: Callable[[Content], AbstractContextManager[None]]
    is_built: Callable[[str], bool]
    box: Callable[[Sandbox, Content], Box]
    on_change: Callable[[Sandbox], None]
    on_end: Callable[[Sandbox, bool], None]


class SandboxLife:
    """Carries a sandbox from PENDING to a final state. Only this class changes the record.

    It does nothing before `begin`; the record of an ended sandbox needs no more.

    Attributes:
        sessions: its commands.
        deliveries: what was written to them and signalled to them.
    """

    def __init__(self, record: Sandbox, host: Host) -> None:
        self.record = record
        self._host = host
        self._tree = tree_name(host.instance, record.id)
        self._numbers = itertools.count(1)
        self._stage: Timer | None = None
        self._lifetime: Timer | None = None
        self._idle: Timer | None = None
        self._gateway_opens = float("inf")
        self.sessions = Sessions(host.clock, host.session_retention, host.retained_sessions)
        self.deliveries = Deliveries(host.tasks)
        self._active = 0
        self._start_process: RunningProcess | None = None
        self._log = bytearray()
        self._launches: set[asyncio.Task[RunningProcess]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._machine_used = False
        self._settings = Content().settings
        self._clean_up_task: asyncio.Task[None] | None = None

    @property
    def gateway_ready(self) -> bool:
        """Whether the gateway reaches the sandbox by now."""
        running = self.record.status is Status.RUNNING
        return running and self._host.clock.now() >= self._gateway_opens

    @property
    def log(self) -> str:
        """The newest MiB of what the start command wrote."""
        return self._log.decode("utf-8", errors="replace")

    def begin(self) -> None:
        """Start on the way to RUNNING; to be called once."""
        build = None
        if not self._host.is_built(self.record.docker_image):
            build = self._host.builds.pending(self.record.docker_image)
        if build is None:
            self._stage = self._host.clock.call_later(0, self._provision)
        else:
            self.record.pending_image_build_id, seconds = build
            self._stage = self._host.clock.call_later(seconds, self._provision)
        self._host.on_change(self.record)

    def attach(self, attachments: tuple[Attachment, ...]) -> None:
        """Note what its copies of volumes are based on from now on."""
        self.record.attachments = attachments
        self._host.on_change(self.record)

    def pause(self) -> bool:
        """Move from RUNNING to PAUSED: its gateway is closed, its clocks and commands go on.

        Returns whether it was RUNNING.
        """
        return self._switch(Status.RUNNING, Status.PAUSED)

    def resume(self) -> bool:
        """Move from PAUSED back to RUNNING; returns whether it was PAUSED."""
        return self._switch(Status.PAUSED, Status.RUNNING)

    def replace_egress(self, allowlist: list[str] | None, denylist: list[str] | None) -> None:
        """Save other outbound rules, which are not in force yet."""
        record = self.record
        record.network_allowlist, record.network_denylist = allowlist, denylist
        record.egress_generation += 1
        self._enter(record.status)

    def egress_in_force(self, generation: int) -> None:
        """Note that the outbound rules of a generation are in force."""
        if generation > self.record.egress_applied:
            self.record.egress_applied = generation
            self._host.on_change(self.record)

    def start_session(
        self, session_uuid: str | None, command: Command, timeout: float | None
    ) -> CommandSession:
        """Start a command, or return the session that has this uuid already.

        Args:
            session_uuid: create-or-attach key; None always starts a new command.
            command: what to run.
            timeout: seconds after which the command and its children are killed; None for never.

        Raises:
            CommandFault: `failed_precondition` when the uuid belongs to another command.
        """
        existing = self.sessions.find(session_uuid, command)
        if existing is not None:
            return existing
        tree = tree_name(self._tree, str(next(self._numbers)))
        session = CommandSession(
            command,
            launch=lambda wanted: self._launch_command(wanted, tree),
            kill_tree=lambda: self._host.isolation.kill(self.record.id, tree),
        )
        name = session_uuid or self._host.identifiers.make(ANONYMOUS)
        self.sessions.add(name, session)
        self._host.tasks.start(self._run_session(name, session, timeout))
        return session

    @contextlib.asynccontextmanager
    async def agent(self, command: Command, stdin: Stdin = "none") -> AsyncIterator[RunningProcess]:
        """Run something of the platform's own in the sandbox, which is in use meanwhile.

        Args:
            command: what to run; the sandbox's variables do not reach it.
            stdin: what it reads.

        Raises:
            CommandFault: it cannot be started.
        """
        tree = tree_name(self._tree, str(next(self._numbers)))
        with self._in_use():
            process = await self._launch(replace(command, stdin=stdin), tree)
            with contextlib.closing(process):
                yield process

    def file_roots(self, *, writing: bool) -> tuple[str, ...]:
        """Return the folders that file routes are kept to; none where the sandbox has a root."""
        return self._host.isolation.file_roots(self.record.id, writing=writing)

    async def launch_unnoticed(self, command: Command, stdin: Stdin = "none") -> RunningProcess:
        """Start a process that puts off no idle time and that no list has.

        Raises:
            CommandFault: it could not be started.
        """
        tree = tree_name(self._tree, str(next(self._numbers)))
        launch = self._host.tasks.start(self._launch_command(replace(command, stdin=stdin), tree))
        try:
            return await asyncio.shield(launch)
        except asyncio.CancelledError:
            launch.add_done_callback(_abandon)
            raise

    def end(
        self,
        status: Status,
        *,
        deleted: bool = False,
        reason: str | None = None,
        exit_code: int | None = None,
        error: tuple[str, str] | None = None,
    ) -> None:
        """Move to a final state at once; its processes are killed in the background.

        Args:
            status: the final state; a sandbox that is in one already stays in that.
            deleted: whether a delete call ends it.
            reason: the `terminationReason`.
            exit_code: the start command's.
            error: `errorType` and `errorMessage`.
        """
        record = self.record
        if not record.live:
            if deleted:
                record.deleted = True
                self._host.on_change(record)
            return
        for timer in (self._stage, self._lifetime, self._idle):
            if timer is not None:
                timer.cancel()
        record.deleted = deleted
        record.pending_image_build_id = None
        record.terminated_at = self._host.clock.date()
        record.termination_reason = reason
        record.exit_code = exit_code
        if error is not None:
            record.error_type, record.error_message = error
        self._enter(status)
        self._host.on_end(record, deleted)
        for _, session in self.sessions.running:
            # At once: from now on a command's exit says nothing about the command.
            session.condemn(self._end_of_commands())
        if self._machine_used:
            self._clean_up_task = self._host.tasks.start(self._clean_up())

    async def gone(self) -> None:
        """Wait until an ended sandbox has no process and no folder left."""
        if self._clean_up_task is not None:
            await asyncio.shield(self._clean_up_task)

    def _enter(self, status: Status) -> None:
        self.record.status = status
        self.record.updated_at = self._host.clock.date()
        self._host.on_change(self.record)

    def _switch(self, before: Status, after: Status) -> bool:
        if self.record.status is not before:
            return False
        self._enter(after)
        return True

    def _provision(self) -> None:
        self.record.pending_image_build_id = None
        self._enter(Status.PROVISIONING)
        self._stage = self._host.clock.call_later(self._host.start_delay, self._boot)

    def _boot(self) -> None:
        record = self.record
        content = self._host.content(record)
        if content is None:
            message = f"Failed to pull image {record.docker_image}"
            self.end(Status.ERROR, error=("IMAGE_PULL_FAILED", message))
            return
        self._settings = content.settings
        opening = self._host.isolation.open(self._host.box(record, content), self._in_trouble)
        if opening is None:
            self._host.begin_network(self)
            self._run()
        else:
            self._machine_used = True
            held = ExitStack()
            held.enter_context(self._host.hold(content))
            self._opening = self._host.tasks.start(self._open(opening, held))

    async def _open(self, opening: Awaitable[None], held: ExitStack) -> None:
        try:
            with held:
                await opening
            if (connecting := self._host.begin_network(self)) is not None:
                await connecting
        except IsolationError as error:
            self.end(Status.ERROR, error=("START_FAILED", f"The sandbox did not start: {error}"))
        else:
            if self.record.live:
                self._run()

    def _in_trouble(self, error_type: str, message: str) -> None:
        self.end(Status.ERROR, error=(error_type, message))

    def _run(self) -> None:
        record, clock = self.record, self._host.clock
        record.started_at = clock.date()
        self._gateway_opens = clock.now() + self._host.gateway_delay
        self._enter(Status.RUNNING)
        if record.timeout_minutes > 0:
            self._lifetime = clock.call_later(60.0 * record.timeout_minutes, self._time_out)
        self._rest()
        if record.start_command is not None:
            self._host.tasks.start(self._run_start_command())

    def _time_out(self) -> None:
        message = f"Lifetime of {self.record.timeout_minutes} minutes is over"
        self.end(Status.TIMEOUT, error=("TIMEOUT", message))

    def _rest(self) -> None:
        """Begin the idle time, unless a command runs."""
        if self._idle is not None:
            self._idle.cancel()
        minutes = self.record.idle_timeout_minutes
        if minutes is not None and self.record.live and not self._active:
            self._idle = self._host.clock.call_later(60.0 * minutes, self._idle_out)

    def _idle_out(self) -> None:
        self.end(Status.TERMINATED, reason="idle_timeout")

    async def _launch(self, command: Command, tree: str) -> RunningProcess:
        self._machine_used = True
        if not self.record.live:
            raise CommandFault("not_found", "the sandbox has ended")
        launch = self._host.tasks.start(
            self._host.isolation.launch(self.record.id, command, tree, command.stdin)
        )
        self._launches.add(launch)
        launch.add_done_callback(self._launches.discard)
        return await asyncio.shield(launch)

    async def _launch_command(self, command: Command, tree: str) -> RunningProcess:
        record = self.record
        variables = {**(record.environment_vars or {}), **record.secrets}
        return await self._launch(as_the_image_says(command, self._settings, variables), tree)

    async def _run_session(self, name: str, session: CommandSession, timeout: float | None) -> None:
        deadline = None
        if timeout is not None:
            fault = CommandFault("deadline_exceeded", f"command killed after {timeout:g} s")
            deadline = asyncio.get_running_loop().call_later(
                timeout, lambda: self._host.tasks.start(session.abort(fault))
            )
        with self._in_use():
            try:
                await session.run()
            finally:
                if deadline is not None:
                    deadline.cancel()
                self.sessions.has_ended(name)

    @contextlib.contextmanager
    def _in_use(self) -> Iterator[None]:
        """Hold the idle time back meanwhile; it begins anew after that."""
        self._active += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            yield
        finally:
            self._active -= 1
            self._rest()

    async def _run_start_command(self) -> None:
        start = self.record.start_command
        assert start is not None
        tree = tree_name(self._tree, "start")
        try:
            process = await self._launch_command(Command((start.executable, *start.args)), tree)
        except CommandFault as fault:
            self.end(Status.ERROR, error=("START_COMMAND_FAILED", fault.message))
            return
        self._start_process = process
        await asyncio.gather(self._collect(process, "stdout"), self._collect(process, "stderr"))
        self.end(Status.TERMINATED, exit_code=shell_exit_code(await process.exited))

    async def _collect(self, process: RunningProcess, stream: str) -> None:
        async for piece in process.output(stream):
            self._log += piece
            del self._log[:-_LOG_BYTES]

    async def _clean_up(self) -> None:
        fault = self._end_of_commands()
        if self._launches:
            # What is just being started must be there to be killed.
            await asyncio.wait(set(self._launches))
        if self._start_process is not None:
            self._start_process.signal_group(signal.SIGKILL)
        aborts = [session.abort(fault) for _, session in self.sessions.running]
        isolation = self._host.isolation
        await asyncio.gather(isolation.end(self.record.id, self._tree), *aborts)
        if self._opening is not None:
            await asyncio.wait({self._opening})
        await isolation.remove(self.record.id)

    def _end_of_commands(self) -> CommandFault:
        return CommandFault("not_found", f"the sandbox has ended ({self.record.status.value})")


def _abandon(launch: asyncio.Task[RunningProcess]) -> None:
    """Kill a process that came too late for whoever asked for it."""
    if not launch.cancelled() and launch.exception() is None:
        process = launch.result()
        process.signal_group(signal.SIGKILL)
        process.close()
