"""Work that the launcher leaves to processes of their own, so that others need not wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable

from prime_local.sandboxes.isolation import kernel


class Workers:
    """Children of the launcher that do one thing each.

    Args:
        tell: hears of the end of a task, and what went wrong if anything did.
    """

    def __init__(self, tell: Callable[[int, str | None], None]) -> None:
        self._tell = tell
        self._running: dict[int, tuple[int, int]] = {}

    def start(self, task: int, make: Callable[[], Callable[[], None]]) -> None:
        """Begin a task.

        Args:
            task: its number.
            make: returns what to do, in a process of its own; run in this one.
        """
        try:
            work = make()
            complaint = os.memfd_create("complaint")
            parent, child = os.getpid(), os.fork()
        except OSError as error:
            self._tell(task, str(error))
            return
        if child == 0:
            status = 1
            try:
                kernel.die_with(parent)
                work()
                status = 0
            except BaseException as error:
                os.write(complaint, str(error).encode(errors="replace"))
            finally:
                os._exit(status)
        self._running[child] = task, complaint

    def ended(self, pid: int, returncode: int) -> bool:
        """Say whether a child that has ended was one of these, after telling of it."""
        if pid not in self._running:
            return False
        task, complaint = self._running.pop(pid)
        text = os.pread(complaint, 4096, 0).decode(errors="replace")
        os.close(complaint)
        self._tell(task, None if returncode == 0 else text or f"it ended with {returncode}")
        return True
