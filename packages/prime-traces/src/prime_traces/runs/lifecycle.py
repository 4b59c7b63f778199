"""The runs of a process that have not been finished, and what becomes of them at its end."""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import logging
import os
import time
import weakref
from collections.abc import Coroutine
from typing import Any, Protocol

from prime_core.reaper import finish_with_child
from prime_core.sync import loop_thread
from prime_core.termination import ignore_termination

__all__ = ["EXIT_PATIENCE", "LIVE", "REPORT_LEAST", "REPORT_PATIENCE", "OpenRun"]

logger = logging.getLogger("prime_traces")

# The interpreter's exit waits so long for the uploads and the reports of the runs' ends.
EXIT_PATIENCE = 15.0
# A report of an end may take so long, and when the time is over all the same so long.
REPORT_PATIENCE = 10.0
REPORT_LEAST = 3.0


class OpenRun(Protocol):
    """A run as its process's end sees it."""

    def end_with_process(self, patience: float) -> Coroutine[Any, Any, None]:
        """Finishes the run; what takes longer to send is kept unsent."""

    def begin_anew(self) -> None:
        """Forgets what the parent process holds, in a forked child."""


class _Runs:
    """All runs of this process, and those among them that are open."""

    def __init__(self) -> None:
        self._all: weakref.WeakSet[OpenRun] = weakref.WeakSet()
        self._open: dict[OpenRun, None] = {}

    def add(self, run: OpenRun) -> None:
        if not self._open:
            # Before the reaper's, which closes the connections.
            finish_with_child(self.finish, priority=1)
        self._all.add(run)
        self._open[run] = None

    def discard(self, run: OpenRun) -> None:
        self._open.pop(run, None)

    def finish(self) -> None:
        """Ends all that are open, in a bounded time; called when the interpreter exits."""
        if not self._open:
            return
        ignore_termination()
        deadline = time.monotonic() + EXIT_PATIENCE + REPORT_PATIENCE
        ends = [
            loop_thread().submit(run.end_with_process(EXIT_PATIENCE)) for run in list(self._open)
        ]
        while (left := deadline - time.monotonic()) > 0:
            # Ctrl-C does not cut it short: records would be lost that can still be kept.
            with contextlib.suppress(KeyboardInterrupt):
                concurrent.futures.wait(ends, timeout=left)
                break
        for run in list(self._open):
            logger.error("%r could not be finished at exit.", run)

    def begin_anew(self) -> None:
        """In a forked child: the open runs are the parent's, which ends them."""
        self._open = {}
        for run in list(self._all):
            run.begin_anew()


LIVE = _Runs()
# Registered after the reaper's, whose module is imported above, and so called before it: the
# reaper closes the connections.
atexit.register(LIVE.finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LIVE.begin_anew)
