"""The launcher: a small process beside the platform that makes sandboxes and enters them.

It is a process of its own because one with threads cannot join namespaces, and because forking
the whole platform for each command would be slow. Requests and events are JSON objects, one a
packet, on a socket; `launching.LauncherLink` is the platform's end. When the platform ends, be it
by SIGKILL, the socket closes, the launcher ends, and every sandbox ends with it.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_local.sandboxes.isolation import kernel
from prime_local.sandboxes.isolation.building import Builder, Unfinished
from prime_local.sandboxes.isolation.cgroups import (
    CgroupsUnavailable,
    Limits,
    PlatformGroups,
    find_hierarchies,
)
from prime_local.sandboxes.isolation.entering import Entrance, EntryRefused, Program, Streams
from prime_local.sandboxes.isolation.hub import Hub, Programs
from prime_local.sandboxes.isolation.protocol import PACKET_BYTES
from prime_local.sandboxes.isolation.view import HostView, Mounts
from prime_local.sandboxes.isolation.workers import Workers

_CHORE_PAUSE_SECONDS = 0.003
_CHORE_SECONDS = 5.0
_MEMORY_LOOK_SECONDS = 0.25

Chore = Callable[[], bool]


@dataclass
class Inmate:
    """A sandbox as the launcher knows it.

    Args:
        name: its id.
        file_bytes: the size that none of its files may exceed.
        building: how far it is, until it is ready.
        first: a pidfd of its process 1, once it is ready.
        commands: process ids of running commands.
        memory_kills: how many of its processes lack of memory has killed.
        closing: whether the platform wants its end.
        reason: why it ends otherwise.
    """

    name: str
    file_bytes: int
    building: Unfinished | None
    first: int | None = None
    commands: dict[str, int] = field(default_factory=dict)
    memory_kills: int = 0
    closing: bool = False
    reason: str | None = None


class Launcher:
    """Serves the platform's requests until the platform closes the connection.

    Args:
        link: the connection.
        null: a descriptor of the null device.
        builder: makes sandboxes.
        groups: control groups for them, or None.
        hub: connects them, or None.
    """

    def __init__(
        self,
        link: socket.socket,
        null: int,
        builder: Builder,
        groups: PlatformGroups | None,
        hub: Hub | None,
    ) -> None:
        self._link = link
        self._builder = builder
        self._groups = groups
        self._hub = hub
        self._workers = Workers(lambda task, fault: self._tell("done", task=task, fault=fault))
        self._entrance = Entrance()
        self._null = null
        self._inmates: dict[str, Inmate] = {}
        # Where a command was ever started: elsewhere nothing can run out of memory.
        self._entered: dict[str, Inmate] = {}
        self._monitors: dict[int, Inmate] = {}
        self._commands: dict[int, tuple[Inmate, str]] = {}
        self._chores: list[tuple[float, Chore]] = []
        self._next_memory_look = 0.0
        self._selector = selectors.DefaultSelector()
        self._requests: dict[str, Callable[..., None]] = {
            "open": self._open,
            "start": self._start,
            "signal": self._signal,
            "kill": self._kill,
            "close": self._close,
            "network": self._network,
        }

    def run(self) -> None:
        """Serve for ever; the end of the connection ends the process."""
        woken = _wake_on_child_exit()
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        self._selector.register(self._link, selectors.EVENT_READ, self._serve)
        self._tell("ready")
        while True:
            for key, _ in self._selector.select(self._pause()):
                key.data()
            self._reap()
            self._do_chores()
            self._look_at_memory()

    def _pause(self) -> float | None:
        if self._chores:
            return _CHORE_PAUSE_SECONDS
        return _MEMORY_LOOK_SECONDS if self._groups is not None and self._entered else None

    def _tell(self, event: str, **facts: object) -> None:
        try:
            self._link.send(json.dumps({"event": event, **facts}).encode())
        except (BrokenPipeError, ConnectionResetError):
            sys.exit(0)

    def _serve(self) -> None:
        packet, descriptors = _receive(self._link)
        if not packet:
            sys.exit(0)
        request: dict[str, Any] = json.loads(packet)
        try:
            self._requests[request.pop("request")](*descriptors, **request)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _open(
        self, *, sandbox: str, limits: dict[str, Any], file_bytes: int, mounts: Mounts
    ) -> None:
        try:
            if self._groups is not None:
                self._groups.add(sandbox, Limits(**limits))
            building = self._builder.build(sandbox, mounts)
        except OSError as error:
            self._remove(sandbox, f"cannot build it: {error}")
            return
        inmate = Inmate(sandbox, file_bytes, building)
        self._inmates[sandbox] = self._monitors[building.monitor] = inmate
        self._selector.register(
            building.ready, selectors.EVENT_READ, lambda: self._built(inmate, building)
        )

    def _start(
        self,
        body: int,
        status: int,
        stdout: int,
        stderr: int,
        stdin: int | None = None,
        *,
        sandbox: str,
        command: str,
        terminal: bool,
    ) -> None:
        inmate = self._inmates.get(sandbox)
        if inmate is None or inmate.first is None:
            os.write(status, b"not_found the sandbox has ended")
            return
        with open(body, "rb", closefd=False) as file:
            wanted = json.load(file)
        program = Program(
            wanted["argv"],
            wanted["env"],
            wanted["cwd"],
            inmate.file_bytes,
            wanted["account"],
            wanted["building"],
        )
        stdin = self._null if stdin is None else stdin
        streams = Streams(stdin, stdout, stderr, status, terminal)
        try:
            pid = self._enter(inmate.first, sandbox, command, program, streams)
        except (OSError, EntryRefused) as error:
            os.write(status, f"resource_exhausted cannot start the command: {error}".encode())
            return
        self._entered[sandbox] = inmate
        inmate.commands[command] = pid
        self._commands[pid] = inmate, command

    def _signal(self, *, sandbox: str, command: str, number: int) -> None:
        inmate = self._inmates.get(sandbox)
        # This very process reaps, so the number cannot have passed on to another process.
        if inmate is not None and command in inmate.commands:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(inmate.commands[command], number)

    def _kill(self, *, sandbox: str, command: str) -> None:
        groups = self._groups
        assert groups is not None

        def is_dead() -> bool:
            dead = groups.kill_command(sandbox, command)
            if dead:
                self._tell("killed", sandbox=sandbox, command=command)
            return dead

        self._chore(is_dead)

    def _close(self, *, sandbox: str) -> None:
        inmate = self._inmates.get(sandbox)
        if inmate is not None:
            # One that is being built dies when it is ready.
            inmate.closing = True
            self._kill_processes(inmate)

    def _network(self, *given: int, task: int, sandbox: str | None = None, **facts: Any) -> None:
        hub = self._hub
        assert hub is not None
        if sandbox is not None:
            inmate = self._inmates.get(sandbox)
            if inmate is None or inmate.first is None:
                self._tell("done", task=task, fault="the sandbox has ended")
                return
            given = (inmate.first,)
        self._workers.start(task, lambda: hub.plan(given, **facts))

    def _built(self, inmate: Inmate, building: Unfinished) -> None:
        self._selector.unregister(building.ready)
        try:
            inmate.first = building.first_process()
            if inmate.first is None:
                # The monitor ends too, and that tells the rest.
                return
            self._entrance.seal(inmate.first)
        except (OSError, ValueError, EntryRefused) as error:
            inmate.reason = f"cannot enter it: {error}"
            os.kill(building.monitor, signal.SIGKILL)
            return
        building.close()
        inmate.building = None
        if inmate.closing:
            self._kill_processes(inmate)
        else:
            self._tell("opened", sandbox=inmate.name)

    def _enter(
        self, first: int, sandbox: str, command: str, program: Program, streams: Streams
    ) -> int:
        groups = self._groups
        if groups is None:
            return self._entrance.start(first, lambda: None, program, streams)

        def join() -> None:
            groups.join(sandbox, command)
            # Lack of memory must end commands, not what keeps the sandbox.
            descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(descriptor, b"1000")
            os.close(descriptor)

        groups.add_command(sandbox, command)
        try:
            return self._entrance.start(first, join, program, streams)
        except BaseException:
            groups.drop_command(sandbox, command)
            raise

    def _kill_processes(self, inmate: Inmate) -> None:
        """Kill all of a sandbox's processes; the rest is done when its monitor has ended."""
        if inmate.first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(inmate.first, signal.SIGKILL)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (running := self._commands.pop(pid, None)) is not None:
                self._command_ended(*running, os.waitstatus_to_exitcode(status))
            elif (inmate := self._monitors.pop(pid, None)) is not None:
                self._monitor_ended(inmate)
            else:
                self._workers.ended(pid, os.waitstatus_to_exitcode(status))

    def _command_ended(self, inmate: Inmate, command: str, returncode: int) -> None:
        del inmate.commands[command]
        if self._groups is not None:
            self._groups.drop_command(inmate.name, command)
            # Before the end is told: whoever hears of it asks at once what killed it.
            self._report_memory_kills(inmate)
        self._tell("exited", sandbox=inmate.name, command=command, returncode=returncode)

    def _monitor_ended(self, inmate: Inmate) -> None:
        del self._inmates[inmate.name]
        self._entered.pop(inmate.name, None)
        reason = inmate.reason or "its first process ended"
        if inmate.first is not None:
            os.close(inmate.first)
        if (building := inmate.building) is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(building.ready)
            reason = inmate.reason or building.complaint()
            building.close()
        self._remove(inmate.name, None if inmate.closing else reason)

    def _remove(self, sandbox: str, reason: str | None) -> None:
        groups = self._groups

        def is_removed() -> bool:
            removed = groups is None or groups.remove(sandbox)
            if removed:
                self._tell("closed", sandbox=sandbox, reason=reason)
            return removed

        self._chore(is_removed)

    def _chore(self, work: Chore) -> None:
        """Do something now and, while it returns False, again and again for 5 s."""
        if not work():
            self._chores.append((time.monotonic() + _CHORE_SECONDS, work))

    def _do_chores(self) -> None:
        now = time.monotonic()
        self._chores = [chore for chore in self._chores if not chore[1]() and now < chore[0]]

    def _look_at_memory(self) -> None:
        if self._groups is not None and time.monotonic() >= self._next_memory_look:
            self._next_memory_look = time.monotonic() + _MEMORY_LOOK_SECONDS
            for inmate in self._entered.values():
                self._report_memory_kills(inmate)

    def _report_memory_kills(self, inmate: Inmate) -> None:
        assert self._groups is not None
        kills = self._groups.memory_kills(inmate.name)
        if kills > inmate.memory_kills:
            inmate.memory_kills = kills
            self._tell("out_of_memory", sandbox=inmate.name)


def _receive(link: socket.socket) -> tuple[bytes, array.array[int]]:
    """Receive a packet and its descriptors; `socket.recv_fds` drops the flag used here."""
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(5 * descriptors.itemsize)
    packet, ancillary, _, _ = link.recvmsg(PACKET_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    return packet, descriptors


def _wake_on_child_exit() -> int:
    """Return a descriptor that becomes readable whenever a child has ended."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    return woken


def main() -> None:
    """Run a launcher on the socket that is descriptor 0; the first packet holds its settings."""
    link = socket.socket(fileno=os.dup(0))
    settings: dict[str, Any] = json.loads(link.recv(PACKET_BYTES))
    try:
        launcher = _make(link, settings)
    except (OSError, CgroupsUnavailable) as error:
        link.send(json.dumps({"event": "failed", "reason": str(error)}).encode())
        return
    launcher.run()


def _make(link: socket.socket, settings: dict[str, Any]) -> Launcher:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    kernel.hide_from_peers()
    kernel.adopt_orphans()
    kernel.forget_keys()
    os.umask(0o022)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    root = Path(settings["root"])
    view = HostView.around(map(Path, settings["private"]), root / "python")
    groups = None
    if (name := settings["group"]) is not None:
        groups = PlatformGroups(find_hierarchies(), name)
        groups.create()
        # Root's further groups would open files that root without capabilities cannot.
        os.setgroups([])
    hub = None
    if (network := settings["network"]) is not None:
        hub = Hub(Programs(network["ip"], network["nft"]), network["link"])
    builder = Builder(settings["bubblewrap"], root, view, groups)
    builder.prepare()
    # Forked children share what is never looked at again.
    gc.freeze()
    return Launcher(link, null, builder, groups, hub)
