"""Ending whole process trees, those included that left their process group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from prime_local.tasks import TaskSet

logger = logging.getLogger("prime_local")

TREE_VARIABLE = "PRIME_LOCAL_TREE"
_PREFIX = TREE_VARIABLE.encode() + b"="
_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "environ").exists()
_KILL_SECONDS = 3.0
_PAUSE_SECONDS = 0.003


def tree_name(*parts: str) -> str:
    """Name a tree; `tree_name(a, b)` is part of the tree `tree_name(a)`."""
    return ":".join(parts)


class TreeKiller:
    """Kills process trees by a mark in their environment, many trees in one look at /proc.

    Every process of a sandbox inherits the variable PRIME_LOCAL_TREE. A child that calls setsid
    leaves its group but keeps its environment. Where there is no /proc only process groups, which
    the callers end themselves, are reached.
    """

    def __init__(self, executor: Executor, tasks: TaskSet) -> None:
        self._executor = executor
        self._tasks = tasks
        self._pending: dict[bytes, asyncio.Future[None]] = {}
        self._running = False

    async def kill(self, tree: str) -> None:
        """Kill every process of a tree; returns when none is left, or after 3 s."""
        if not _HAS_PROC:
            return
        name = tree.encode()
        done = self._pending.get(name)
        if done is None:
            done = asyncio.get_running_loop().create_future()
            self._pending[name] = done
        if not self._running:
            self._running = True
            self._tasks.start(self._run())
        await asyncio.shield(done)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                batch, self._pending = self._pending, {}
                try:
                    await loop.run_in_executor(self._executor, kill_trees, frozenset(batch))
                finally:
                    for done in batch.values():
                        done.set_result(None)
        finally:
            self._running = False


def kill_trees(trees: frozenset[bytes]) -> None:
    """Kill every process of some trees; blocks until none is left, at most 3 s."""
    if not _HAS_PROC:
        return
    deadline = time.monotonic() + _KILL_SECONDS
    quiet_looks = 0
    # A process in the middle of exec shows an empty environment: one empty look proves nothing.
    while quiet_looks < 2:
        victims = list(_members(trees))
        quiet_looks = 0 if victims else quiet_looks + 1
        for pid in victims:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            logger.error("processes %s outlived SIGKILL for %s s", victims, _KILL_SECONDS)
            return
        time.sleep(_PAUSE_SECONDS)


def _members(trees: frozenset[bytes]) -> Iterator[int]:
    for entry in os.listdir(_PROC):
        if not entry.isdigit():
            continue
        name = _tree_of(entry)
        while name:
            if name in trees:
                yield int(entry)
                break
            name = name.rpartition(b":")[0]


def _tree_of(pid: str) -> bytes:
    try:
        environment = (_PROC / pid / "environ").read_bytes()
    except OSError:
        return b""
    if _PREFIX not in environment:
        return b""
    for variable in environment.split(b"\0"):
        if variable.startswith(_PREFIX):
            return variable[len(_PREFIX) :]
    return b""
