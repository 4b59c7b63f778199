"""The modes full and bwrap: a sandbox is a set of namespaces with a root of its own."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Literal, TypeVar

from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.isolation.accounts import ROOT, Account, find_account
from prime_local.sandboxes.isolation.base import Box, IsolationError, OnTrouble
from prime_local.sandboxes.isolation.cgroups import PROCESSES, PlatformGroups, remove_groups
from prime_local.sandboxes.isolation.filling import GIB, Filler
from prime_local.sandboxes.isolation.launching import JsonObject, LauncherLink, memory_file
from prime_local.sandboxes.isolation.links import LauncherLinks
from prime_local.sandboxes.isolation.view import (
    OWN_FOLDERS,
    SEARCH_PATH,
    UPPER,
    WORKSPACE,
    is_system_path,
    volume_folder,
)
from prime_local.sandboxes.processes import RunningProcess, install_interpreter
from prime_local.sandboxes.removal import remove_tree
from prime_local.sandboxes.terminals import Stdin, TerminalSize
from prime_local.sandboxes.trees import TREE_VARIABLE, TreeKiller

T = TypeVar("T")

logger = logging.getLogger("prime_local")

# Where programs for networks are, also when the account's PATH leaves that out.
_TOOLS = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
# More than a machine has processors only makes them wait for each other.
_BUILT_AT_ONCE = 8
_OPEN_SECONDS = 60.0
_START_SECONDS = 30.0
_END_SECONDS = 10.0


@dataclass
class _Confined:
    """A sandbox that the launcher has, or is making."""

    on_trouble: OnTrouble
    opened: asyncio.Future[None]
    closed: asyncio.Future[None]
    requested: bool = False
    closing: bool = False
    running: dict[str, asyncio.Future[int]] = field(default_factory=dict)
    killed: dict[str, asyncio.Future[None]] = field(default_factory=dict)


class ConfinedMode:
    """Keeps sandboxes from this machine by namespaces.

    Args:
        name: `full` adds control groups and a writable root.
        root: folder for the sandboxes' folders and their Python interpreter; on disk.
        executor: threads for what would block the event loop.
        trees: ends a command's children where there are no control groups.
        filler: puts in what a sandbox starts with.
    """

    def __init__(
        self,
        name: Literal["full", "bwrap"],
        root: Path,
        executor: Executor,
        trees: TreeKiller,
        filler: Filler,
    ) -> None:
        self.name = name
        self._filler = filler
        self._root = root
        self._executor = executor
        self._trees = trees
        self._sandboxes: dict[str, _Confined] = {}
        self._building = asyncio.Semaphore(_BUILT_AT_ONCE)
        self._launcher: LauncherLink | None = None
        self.links: LauncherLinks | None = None
        self._groups: PlatformGroups | None = None
        self._lost = False

    async def start(
        self, instance: str, groups: PlatformGroups | None, private: list[Path]
    ) -> None:
        """Start the launcher.

        Args:
            instance: the platform's name on this machine.
            groups: the platform's control groups, in mode `full`.
            private: folders that no sandbox must see.

        Raises:
            IsolationError: something that this mode needs is missing.
        """
        bubblewrap = shutil.which("bwrap")
        if bubblewrap is None:
            raise IsolationError("bubblewrap is not installed")
        await self._in_thread(lambda: install_interpreter(self._root / "python"))
        settings = {
            "bubblewrap": bubblewrap,
            "root": str(self._root),
            "private": [str(folder) for folder in private],
            "group": groups and groups.name,
            "network": self._plan_network(instance),
        }
        self._groups = groups
        self._launcher = await LauncherLink.start(settings, self._on_event)

    def _plan_network(self, instance: str) -> dict[str, str] | None:
        """Return what the launcher needs to connect sandboxes; None where it could not."""
        found = {name: shutil.which(name, path=_TOOLS) for name in ("ip", "nft")}
        missing = [name for name, path in found.items() if path is None]
        if os.geteuid() != 0 or missing:
            logger.info("sandboxes get no network: %s", ", ".join(missing) or "it needs root")
            return None
        self.links = LauncherLinks(self._send, self._root, self._executor)
        # Names of interfaces have at most 15 characters.
        return {"link": f"prime-{instance[:8]}", **{key: path or "" for key, path in found.items()}}

    def workspace(self, sandbox_id: str) -> str:
        return WORKSPACE

    def parts(self, sandbox_id: str) -> Mapping[str, Path]:
        names = OWN_FOLDERS if self.name == "bwrap" else (UPPER,)
        return {name: self._folder(sandbox_id) / name for name in names}

    def volume(self, sandbox_id: str, name: str) -> Path:
        return volume_folder(self._folder(sandbox_id), name)

    def mount_refusal(self, path: str) -> str | None:
        if self.name == "bwrap" and is_system_path(path):
            return "there the root is read-only: use --isolation full"
        return None

    def open(self, box: Box, on_trouble: OnTrouble) -> Awaitable[None]:
        new = asyncio.get_running_loop().create_future
        sandbox = _Confined(on_trouble, new(), new())
        self._sandboxes[box.sandbox_id] = sandbox
        return self._open(box, sandbox)

    def file_roots(self, sandbox_id: str, *, writing: bool) -> tuple[str, ...]:
        return ()

    async def launch(
        self, sandbox_id: str, command: Command, tree: str, stdin: Stdin = "none"
    ) -> RunningProcess:
        account = await self._account(sandbox_id, command.user)
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.closing or sandbox.closed.done():
            raise CommandFault("not_found", "the sandbox has ended")
        name = _last(tree)
        exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        sandbox.running[name] = exited

        def signal_group(number: signal.Signals) -> None:
            self._send(request="signal", sandbox=sandbox_id, command=name, number=number)

        body = {
            "argv": command.argv,
            "cwd": command.cwd,
            "env": _environment(sandbox_id, command, tree, account),
            "account": None if account == ROOT else (account.uid, account.gid, account.groups),
            "building": command.building and self.name == "full",
        }
        status = os.pipe()
        ours, theirs = _streams(stdin)
        terminal = isinstance(stdin, TerminalSize)
        self._send(
            [memory_file(json.dumps(body).encode()), status[1], *theirs],
            request="start",
            sandbox=sandbox_id,
            command=name,
            terminal=terminal,
        )
        try:
            pid = await asyncio.wait_for(_read_status(status[0]), _START_SECONDS)
        except BaseException as error:
            sandbox.running.pop(name, None)
            signal_group(signal.SIGKILL)
            for descriptor in ours:
                os.close(descriptor)
            if isinstance(error, asyncio.TimeoutError):
                text = "the command did not start in time"
                raise CommandFault("resource_exhausted", text) from None
            raise
        finally:
            os.close(status[0])
        if terminal:
            return RunningProcess.in_terminal(pid, ours[0], exited, signal_group)
        stdout, stderr = FileIO(ours[0]), FileIO(ours[1])
        entry = FileIO(ours[2], "w") if stdin == "pipe" else None
        return RunningProcess(pid, stdout, stderr, exited, signal_group, entry)

    async def kill(self, sandbox_id: str, tree: str) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None or sandbox.closing or sandbox.closed.done():
            # `end` is about to kill everything in it.
            return
        if self.name != "full":
            await self._trees.kill(tree)
            return
        name = _last(tree)
        killed = sandbox.killed.get(name)
        if killed is None or killed.done():
            killed = sandbox.killed[name] = asyncio.get_running_loop().create_future()
            self._send(request="kill", sandbox=sandbox_id, command=name)
        await self._bounded(killed, f"{tree} outlives SIGKILL")

    async def end(self, sandbox_id: str, tree: str) -> None:
        sandbox = self._sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        if not sandbox.closing:
            sandbox.closing = True
            self._filler.stop(sandbox_id)
            if sandbox.requested:
                self._send(request="close", sandbox=sandbox_id)
            else:
                _resolve(sandbox.closed, None)
        await self._bounded(sandbox.closed, f"sandbox {sandbox_id} outlives SIGKILL")

    async def remove(self, sandbox_id: str) -> None:
        self._sandboxes.pop(sandbox_id, None)
        await self._in_thread(lambda: remove_tree(self._folder(sandbox_id)))

    async def close(self) -> None:
        if self._launcher is not None:
            await self._launcher.close()
        if self._groups is not None:
            await asyncio.to_thread(remove_groups, self._groups.folders)

    async def _account(self, sandbox_id: str, user: str | None) -> Account:
        """Return who a command runs as.

        Raises:
            CommandFault: there is no such account, or this mode knows root alone.
        """
        if user in (None, ROOT.name):
            return ROOT
        found = None
        if self.name == "full":
            layers = (self._folder(sandbox_id) / UPPER, Path("/"))
            find = functools.partial(find_account, layers, user)
            found = await asyncio.get_running_loop().run_in_executor(self._executor, find)
        if found is None:
            raise CommandFault("invalid_argument", f"unknown user {user!r}")
        return found

    def _folder(self, sandbox_id: str) -> Path:
        return self._root / "sandboxes" / sandbox_id

    async def _open(self, box: Box, sandbox: _Confined) -> None:
        if box.files is not None or box.mounts:
            await self._filler.fill(
                box, self.parts(box.sandbox_id), lambda name: self.volume(box.sandbox_id, name)
            )
        async with self._building:
            if sandbox.closing:
                raise IsolationError("it was ended before it was made")
            if self._lost:
                raise IsolationError("the launcher has ended")
            sandbox.requested = True
            resources = box.resources
            self._send(
                request="open",
                sandbox=box.sandbox_id,
                limits={
                    "memory": int(resources.memory * GIB),
                    "processes": PROCESSES,
                    "cpus": resources.cpu,
                },
                file_bytes=int(resources.disk * GIB),
                mounts=[[mount.name, mount.path, mount.read_only] for mount in box.mounts],
            )
            try:
                await asyncio.wait_for(asyncio.shield(sandbox.opened), _OPEN_SECONDS)
            except asyncio.TimeoutError:
                raise IsolationError(f"it was not ready after {_OPEN_SECONDS:g} s") from None

    def _send(self, descriptors: Sequence[int] = (), **packet: object) -> None:
        assert self._launcher is not None
        self._launcher.send(descriptors, **packet)

    def _on_event(self, event: JsonObject) -> None:
        kind = event["event"]
        if kind == "lost":
            self._lost = True
            if self.links is not None:
                self.links.lost()
            for sandbox in list(self._sandboxes.values()):
                self._closed(sandbox, "the launcher ended")
            return
        if kind == "done":
            assert self.links is not None
            self.links.done(event["task"], event["fault"])
            return
        found = self._sandboxes.get(event["sandbox"])
        if found is None:
            return
        if kind == "opened":
            _resolve(found.opened, None)
        elif kind == "exited":
            _resolve(found.running.pop(event["command"], None), event["returncode"])
        elif kind == "killed":
            _resolve(found.killed.pop(event["command"], None), None)
        elif kind == "out_of_memory":
            found.on_trouble("OOM_KILLED", "A process was killed: the memory limit was reached")
        elif kind == "closed":
            self._closed(found, event["reason"])

    def _closed(self, sandbox: _Confined, reason: str | None) -> None:
        if sandbox.closed.done():
            return
        sandbox.closed.set_result(None)
        for exited in sandbox.running.values():
            _resolve(exited, -signal.SIGKILL)
        sandbox.running.clear()
        if not sandbox.opened.done():
            sandbox.opened.set_exception(IsolationError(reason or "it was ended"))
        elif not sandbox.closing:
            sandbox.on_trouble("SANDBOX_LOST", f"The sandbox ended by itself: {reason}")

    async def _bounded(self, done: asyncio.Future[None], complaint: str) -> None:
        try:
            await asyncio.wait_for(asyncio.shield(done), _END_SECONDS)
        except asyncio.TimeoutError:
            logger.error("%s for %g s", complaint, _END_SECONDS)

    async def _in_thread(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _environment(sandbox_id: str, command: Command, tree: str, account: Account) -> dict[str, str]:
    return {
        "PATH": SEARCH_PATH,
        "HOME": account.home,
        "USER": account.name,
        "LOGNAME": account.name,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        **command.env,
        "PRIME_LOCAL_SANDBOX": sandbox_id,
        TREE_VARIABLE: tree,
    }


def _streams(stdin: Stdin) -> tuple[list[int], list[int]]:
    """Return our descriptors of a command's streams, and the command's: output, errors, input.

    Without input there is none for it; of a terminal there is only one of ours.
    """
    if isinstance(stdin, TerminalSize):
        outer, inner = stdin.open()
        return [outer], [inner, os.dup(inner), os.dup(inner)]
    stdout, stderr = os.pipe(), os.pipe()
    ours, theirs = [stdout[0], stderr[0]], [stdout[1], stderr[1]]
    if stdin == "pipe":
        inner, outer = os.pipe()
        ours.append(outer)
        theirs.append(inner)
    return ours, theirs


def _last(tree: str) -> str:
    return tree.rpartition(":")[2]


async def _read_status(descriptor: int) -> int:
    """Return the process id of a command that is being started, as its sandbox knows it.

    Raises:
        CommandFault: it could not be executed.
    """
    os.set_blocking(descriptor, False)
    text = b""
    while piece := await _read_soon(descriptor):
        text += piece
    first, _, fault = text.partition(b"\n") if text.startswith(b"pid ") else (b"", b"", text)
    if fault or not first:
        code, _, message = fault.decode(errors="replace").partition(" ")
        raise CommandFault(code or "unavailable", message or "the command was lost at its start")
    return int(first.removeprefix(b"pid "))


async def _read_soon(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, 65536)
        except BlockingIOError:
            readable = loop.create_future()
            loop.add_reader(descriptor, _resolve, readable, None)
            try:
                await readable
            finally:
                loop.remove_reader(descriptor)


def _resolve(future: asyncio.Future[T] | None, value: T) -> None:
    if future is not None and not future.done():
        future.set_result(value)
