"""Choosing a mode: a trial spawn decides, not whether a program is there."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prime_local.limits import Resources
from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.isolation.base import Box, Isolation, IsolationError, WantedMode
from prime_local.sandboxes.isolation.cgroups import (
    CgroupsUnavailable,
    PlatformGroups,
    find_hierarchies,
)
from prime_local.sandboxes.isolation.confined import ConfinedMode
from prime_local.sandboxes.isolation.filling import Filler
from prime_local.sandboxes.processes import ProcessMode
from prime_local.sandboxes.trees import TreeKiller, tree_name

logger = logging.getLogger("prime_local")

_TRIAL = "trial"
_TRIAL_SECONDS = 20.0
_IN_MEMORY = ("tmpfs", "ramfs")
# Prints what does not hold. $1 is the platform's folder.
_TRIAL_SCRIPT = """
grep -q '^NoNewPrivs:.1$' /proc/self/status || echo 'privileges can be gained'
grep '^Cap' /proc/self/status | grep -qv '\\b0000000000000000$' && echo 'it has capabilities'
[ "$(grep -c : /proc/net/dev)" = 1 ] || echo 'it has a network'
[ "$(cat /proc/1/comm)" = bash ] || echo 'it sees processes of the machine'
[ "$(cat /proc/sys/user/max_user_namespaces)" = 0 ] || echo 'it can make user namespaces'
[ -w /proc/sys/kernel/hostname ] && echo 'it can change settings of the kernel'
[ -e "$1" ] && echo "it sees $1"
python -I -S -c '' || echo 'python does not run'
exit 0
"""


@dataclass(frozen=True)
class Place:
    """Where a platform keeps its sandboxes.

    Args:
        instance: the platform's name on this machine.
        root: folder for what belongs to its sandboxes.
        private: folders that no sandbox must see, `root` among them.
        groups: the platform's control groups; see `plan_groups`.
        executor: threads for what would block the event loop.
        trees: ends processes by the mark that they carry.
        filler: puts in what a sandbox starts with.
    """

    instance: str
    root: Path
    private: tuple[Path, ...]
    groups: PlatformGroups | None
    executor: Executor
    trees: TreeKiller
    filler: Filler


async def choose(wanted: WantedMode, place: Place) -> Isolation:
    """Return the wanted mode, for `auto` the strongest that works here.

    Raises:
        IsolationError: the wanted mode does not work here.
    """
    for name in _confined(wanted):
        try:
            return await _try(name, place)
        except IsolationError as error:
            if wanted != "auto":
                raise IsolationError(f"isolation {name} does not work here: {error}") from error
            logger.info("isolation %s does not work here: %s", name, error)
    return ProcessMode(place.root, place.executor, place.trees, place.filler)


def plan_groups(wanted: WantedMode, instance: str) -> PlatformGroups | None:
    """Return the control groups that a platform would make, to be known before it makes them."""
    if "full" in _confined(wanted):
        try:
            return PlatformGroups(find_hierarchies(), f"prime-local-{instance}")
        except CgroupsUnavailable as error:
            logger.info("%s", error)
    return None


def _confined(wanted: WantedMode) -> tuple[Literal["full", "bwrap"], ...]:
    if wanted == "auto":
        return ("full", "bwrap")
    return () if wanted == "process" else (wanted,)


async def _try(name: Literal["full", "bwrap"], place: Place) -> ConfinedMode:
    _check_machine(name, place)
    mode = ConfinedMode(name, place.root, place.executor, place.trees, place.filler)
    try:
        groups = place.groups if name == "full" else None
        await mode.start(place.instance, groups, list(place.private))
        await asyncio.wait_for(_spawn_trial(mode, place), _TRIAL_SECONDS)
    except asyncio.TimeoutError:
        await mode.close()
        raise IsolationError("a trial sandbox hangs") from None
    except BaseException:
        await mode.close()
        raise
    return mode


def _check_machine(name: str, place: Place) -> None:
    if sys.platform != "linux":
        raise IsolationError("it needs Linux")
    if name == "full":
        if os.geteuid() != 0:
            raise IsolationError("it needs root")
        if place.groups is None:
            raise IsolationError("it needs control groups that limit memory and processes")
        if _file_system(place.root) in _IN_MEMORY:
            # A sandbox's files would be paid from its memory, and a big one end it.
            raise IsolationError(f"{place.root} is in memory; name a --data-dir on disk")


def _file_system(path: Path) -> str:
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split(" ")[2] == number:
            return line.partition(" - ")[2].split(" ")[0]
    return ""


async def _spawn_trial(mode: ConfinedMode, place: Place) -> None:
    tree = tree_name(place.instance, _TRIAL)
    box = Box(_TRIAL, Resources(cpu=1, memory=0.125, disk=1))
    try:
        await mode.open(box, lambda kind, message: None)
        command = Command(("/bin/bash", "-c", _TRIAL_SCRIPT, "trial", str(place.root)))
        process = await mode.launch(_TRIAL, command, tree_name(tree, "1"))
        said = b""
        for stream in ("stdout", "stderr"):
            async for piece in process.output(stream):
                said += piece
        returncode = await process.exited
        if returncode or said:
            text = said.decode(errors="replace").strip() or f"exit code {returncode}"
            raise IsolationError(f"a trial sandbox failed: {text}")
    except CommandFault as fault:
        raise IsolationError(f"a trial sandbox failed: {fault.message}") from fault
    finally:
        await mode.end(_TRIAL, tree)
        await mode.remove(_TRIAL)
