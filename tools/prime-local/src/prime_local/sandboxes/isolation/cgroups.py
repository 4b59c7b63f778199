"""Control groups: limits on what a sandbox takes, and a sure way to end all its processes.

A group is a folder in each hierarchy that is used. Version 1 has a hierarchy per controller,
version 2 one for all.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# How many processes and threads a sandbox may have.
PROCESSES = 1024
_PERIOD_MICROSECONDS = 100_000
_REMOVAL_SECONDS = 5.0
_PAUSE_SECONDS = 0.005
_SWAP = ("memory.swap.max", "memory.memsw.limit_in_bytes")
_NEEDED = ("memory", "pids")
_USED = (*_NEEDED, "cpu")


class CgroupsUnavailable(Exception):
    """This machine has no control groups that the platform can use; the text says why."""


@dataclass(frozen=True)
class Limits:
    """What a sandbox may take; memory in bytes, processor time in whole processors."""

    memory: int
    processes: int
    cpus: float


@dataclass(frozen=True)
class Hierarchy:
    """One tree of groups.

    Args:
        folder: the group that the platform's own groups are made in.
        controllers: what is limited here.
        unified: whether it is version 2.
    """

    folder: Path
    controllers: tuple[str, ...]
    unified: bool

    @property
    def groups_commands(self) -> bool:
        """Whether each command gets a group of its own here, by which its processes are found."""
        return self.unified or "pids" in self.controllers

    @property
    def joined_by(self) -> str:
        """The file that a process writes 0 into to enter a group.

        `tasks` moves one thread, without the lock that makes `cgroup.procs` wait for all of
        the machine's processors; the processes that join here have one thread.
        """
        return "cgroup.procs" if self.unified else "tasks"


def find_hierarchies(process: Path = Path("/proc/self")) -> list[Hierarchy]:
    """Return hierarchies that limit memory and processes, and processor time where possible.

    Args:
        process: the folder in /proc of the process that the new groups are to be next to.

    Raises:
        CgroupsUnavailable: memory or processes cannot be limited.
    """
    try:
        mounts = (process / "mountinfo").read_text().splitlines()
        memberships = (process / "cgroup").read_text().splitlines()
    except OSError as error:
        raise CgroupsUnavailable(f"no control groups: {error}") from error
    found = _version_1(mounts, memberships) or _version_2(mounts, memberships)
    limited = {controller for hierarchy in found for controller in hierarchy.controllers}
    missing = [controller for controller in _NEEDED if controller not in limited]
    if missing:
        raise CgroupsUnavailable(f"no control group can limit {' and '.join(missing)}")
    return found


def _version_1(mounts: Sequence[str], memberships: Sequence[str]) -> list[Hierarchy]:
    own: dict[str, str] = {}
    for line in memberships:
        _, controllers, path = line.split(":", 2)
        own.update((controller, path) for controller in controllers.split(","))
    found: dict[Path, list[str]] = {}
    for point, top, options in _cgroup_mounts(mounts, "cgroup"):
        for controller in _USED:
            if controller in options:
                found.setdefault(_below(point, top, own.get(controller, "/")), []).append(
                    controller
                )
    return [Hierarchy(folder, tuple(names), False) for folder, names in found.items()]


def _version_2(mounts: Sequence[str], memberships: Sequence[str]) -> list[Hierarchy]:
    own = next((line[3:] for line in memberships if line.startswith("0::")), "/")
    for point, top, _ in _cgroup_mounts(mounts, "cgroup2"):
        folder = _below(point, top, own)
        # A group with processes of its own cannot pass controllers on, so ours may lie higher.
        while True:
            passed_on = _words(folder / "cgroup.subtree_control")
            if set(_NEEDED) <= set(passed_on):
                used = tuple(name for name in _USED if name in passed_on)
                return [Hierarchy(folder, used, True)]
            if folder == point:
                break
            folder = folder.parent
    return []


def _cgroup_mounts(mounts: Sequence[str], kind: str) -> Iterator[tuple[Path, str, list[str]]]:
    """Yield mount point, mounted group and options of each cgroup mount."""
    for line in mounts:
        fields, _, source = line.partition(" - ")
        if source.split(" ")[0] == kind:
            top, point = fields.split(" ")[3:5]
            yield Path(point), top, source.split(" ")[-1].split(",")


def _below(point: Path, top: str, own: str) -> Path:
    if top != "/" and (own + "/").startswith(top + "/"):
        own = own[len(top) :]
    folder = point / own.lstrip("/")
    return folder if folder.is_dir() else point


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


class PlatformGroups:
    """A platform's own group, the groups of its sandboxes in it, and commands' groups in those.

    Args:
        hierarchies: where; see `find_hierarchies`.
        name: of the platform's group.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy], name: str) -> None:
        self.name = name
        self._folders = {hierarchy: hierarchy.folder / name for hierarchy in hierarchies}

    @property
    def folders(self) -> list[Path]:
        """The platform's group in each hierarchy."""
        return list(self._folders.values())

    def create(self) -> None:
        """Make the platform's group.

        Raises:
            OSError: it cannot be made, or cannot pass its controllers on.
        """
        for hierarchy, folder in self._folders.items():
            folder.mkdir(exist_ok=True)
            if hierarchy.unified:
                enabled = " ".join(f"+{name}" for name in hierarchy.controllers)
                (folder / "cgroup.subtree_control").write_text(enabled)

    def add(self, sandbox: str, limits: Limits) -> None:
        """Make a sandbox's group and set its limits."""
        for hierarchy, folder in self._folders.items():
            group = folder / sandbox
            group.mkdir()
            for file, value in _settings(hierarchy, limits).items():
                # Machines without swap do not count it.
                if file not in _SWAP or (group / file).exists():
                    _write(group / file, value)

    def join(self, sandbox: str, command: str | None = None) -> None:
        """Move the calling process, which must have one thread, into a group."""
        for hierarchy, folder in self._folders.items():
            # Strings: every command waits for this, in a process that has just been forked.
            group = f"{folder}/{sandbox}"
            if command is not None and hierarchy.groups_commands:
                group += f"/{command}"
            _write(f"{group}/{hierarchy.joined_by}", "0")

    def add_command(self, sandbox: str, command: str) -> None:
        """Make a command's group, by which all its processes are found."""
        (self._processes_folder / sandbox / command).mkdir()

    def drop_command(self, sandbox: str, command: str) -> None:
        """Delete a command's group, unless children that it left behind are in it."""
        with contextlib.suppress(OSError):
            (self._processes_folder / sandbox / command).rmdir()

    def kill_command(self, sandbox: str, command: str) -> bool:
        """Kill whoever is in a command's group; returns whether nobody was."""
        return kill_group(self._processes_folder / sandbox / command)

    def remove(self, sandbox: str) -> bool:
        """Delete a sandbox's group with the commands' ones; returns whether all are gone."""
        return all(remove_group(folder / sandbox) for folder in self._folders.values())

    def memory_kills(self, sandbox: str) -> int:
        """Return how many processes of a sandbox were killed for lack of memory."""
        for hierarchy, folder in self._folders.items():
            if "memory" in hierarchy.controllers:
                file = "memory.events" if hierarchy.unified else "memory.oom_control"
                words = _words(folder / sandbox / file)
                if "oom_kill" in words:
                    return int(words[words.index("oom_kill") + 1])
        return 0

    @property
    def _processes_folder(self) -> Path:
        return next(
            folder for hierarchy, folder in self._folders.items() if hierarchy.groups_commands
        )


def _settings(hierarchy: Hierarchy, limits: Limits) -> Mapping[str, str]:
    settings: dict[str, str] = {}
    quota = str(int(limits.cpus * _PERIOD_MICROSECONDS))
    if "memory" in hierarchy.controllers:
        name = "memory.max" if hierarchy.unified else "memory.limit_in_bytes"
        settings[name] = str(limits.memory)
        # Swap would only put the end off.
        if hierarchy.unified:
            settings[_SWAP[0]] = "0"
        else:
            settings[_SWAP[1]] = str(limits.memory)
    if "pids" in hierarchy.controllers:
        settings["pids.max"] = str(limits.processes)
    if "cpu" in hierarchy.controllers:
        if hierarchy.unified:
            settings["cpu.max"] = f"{quota} {_PERIOD_MICROSECONDS}"
        else:
            settings["cpu.cfs_period_us"] = str(_PERIOD_MICROSECONDS)
            settings["cpu.cfs_quota_us"] = quota
    return settings


def _write(file: str | Path, value: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def kill_group(group: Path) -> bool:
    """Kill every process of a group and keep it from making new ones.

    Returns whether there was none: call again until there is not.
    """
    with contextlib.suppress(OSError):
        _write(group / "cgroup.kill", "1")
    with contextlib.suppress(OSError):
        _write(group / "pids.max", "0")
    # 0 stands for a process that is not in our pid namespace; to kill() it would mean ourselves.
    victims = [int(word) for word in _words(group / "cgroup.procs") if word != "0"]
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not victims


def remove_group(group: Path) -> bool:
    """Kill what is left in a group and in those below, and delete them.

    Returns whether they are gone; processes take a moment to end, so call again.
    """
    if not group.is_dir():
        return True
    below = [remove_group(entry) for entry in group.iterdir() if entry.is_dir()]
    kill_group(group)
    try:
        group.rmdir()
    except OSError:
        return False
    return all(below)


def remove_groups(groups: Iterable[Path]) -> None:
    """Kill what is left in groups and delete them; blocks, at most 5 s."""
    deadline = time.monotonic() + _REMOVAL_SECONDS
    for group in groups:
        while not remove_group(group) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
