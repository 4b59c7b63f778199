"""Clean-up that nothing the user's program does can skip.

What costs money is owed: an `Obligation` says how to undo it, from before its request may
have left until somebody else answers for it. The reaper runs what must be undone on the
process-wide loop thread, with a session of its own, because on the user's loop nothing is
safe: a second cancellation breaks a shield, and the second Ctrl-C makes ``asyncio.run``
cancel every task. Whatever is still owed when the interpreter exits is undone there, in a
bounded time.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from prime_core.errors import (
    APIConnectionError,
    APIResponseError,
    RateLimitError,
    ServerError,
)
from prime_core.per_loop import dispose_all
from prime_core.sync import across, catch_up, loop_thread
from prime_core.termination import ignore_termination

__all__ = ["Obligation", "Reaper", "Undo", "finish_with_child", "reaper"]

logger = logging.getLogger("prime_core")

T = TypeVar("T")
Undo = Callable[[], Coroutine[Any, Any, None]]

# How long the interpreter's exit waits for what is owed.
EXIT_PATIENCE = 15.0
# How long one undoing may take while the program runs, and its pauses between tries.
UNDO_TIMEOUT = 120.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0


class Obligation:
    """Something that was asked for and must be undone unless somebody answers for it.

    Attributes:
        owner: whose it is; `Reaper.drain` waits for an owner's.
        undo: makes the coroutine that undoes it; replaced in one step when more is known.
        description: what it is, for the log.
    """

    __slots__ = ("_reaper", "description", "owner", "undo")

    def __init__(self, reaper: Reaper, owner: object, description: str, undo: Undo) -> None:
        self._reaper = reaper
        self.owner = owner
        self.description = description
        self.undo = undo

    @property
    def owed(self) -> bool:
        """Whether it is still to be undone, or being undone."""
        return self in self._reaper._owed

    def settle(self) -> None:
        """Nothing is to be undone any more."""
        self._reaper._settle(self)

    def call_in(self) -> concurrent.futures.Future[None]:
        """Undoes it now, on the reaper's loop, if it is still owed.

        Returns:
            What has a result when that is done.
        """
        return self._reaper._start(self)


class Reaper:
    """The process's one place for clean-up; see the module's text."""

    def __init__(self) -> None:
        # An ordered dict of the obligations; a value is set once its undoing has started.
        self._owed: dict[Obligation, concurrent.futures.Future[None] | None] = {}
        self._lock = threading.Lock()
        self._exiting = False
        self._exit_registered = False

    @property
    def exiting(self) -> bool:
        """Whether the interpreter exits, and waits for what is owed."""
        return self._exiting

    def owe(self, owner: object, description: str, undo: Undo) -> Obligation:
        """Notes that something must be undone unless it is settled.

        Raises:
            RuntimeError: the interpreter exits; nothing new may be asked for.
        """
        if self._exiting:
            raise RuntimeError(f"{description} is not made while the interpreter exits")
        # Started now, since no thread can be started at the interpreter's exit.
        loop_thread()
        if not self._exit_registered:
            self._exit_registered = True
            finish_with_child(self.finish)
        obligation = Obligation(self, owner, description, undo)
        self._owed[obligation] = None
        return obligation

    def _start(self, obligation: Obligation) -> concurrent.futures.Future[None]:
        with self._lock:  # so that it is not done before it is noted as started
            if obligation not in self._owed:
                done: concurrent.futures.Future[None] = concurrent.futures.Future()
                done.set_result(None)
                return done
            future = self._owed[obligation]
            if future is None:
                future = self._owed[obligation] = loop_thread().submit(self._undo(obligation))
            return future

    def _settle(self, obligation: Obligation) -> None:
        with self._lock:
            self._owed.pop(obligation, None)

    async def _undo(self, obligation: Obligation) -> None:
        """Undoes an obligation, again and again while the platform fails, bounded in time."""
        deadline = time.monotonic() + UNDO_TIMEOUT
        pause = FIRST_PAUSE
        try:
            while True:
                left = deadline - time.monotonic()
                try:
                    await asyncio.wait_for(obligation.undo(), left)
                    return
                except (APIConnectionError, APIResponseError, ServerError, RateLimitError):
                    if deadline - time.monotonic() <= pause:
                        raise
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
        except Exception as error:
            logger.error(
                "%s could not be undone and may go on costing money: %s: %s",
                obligation.description,
                type(error).__name__,
                error,
            )
            raise
        finally:
            self._settle(obligation)

    async def drain(
        self, owner: object, patience: float = EXIT_PATIENCE, *, about: str = ""
    ) -> None:
        """Waits for the clean-up that has started for an owner, on the caller's loop.

        Args:
            owner: whose.
            patience: seconds.
            about: how the descriptions begin of what is waited for.
        """
        # A copy, since the loop thread takes out what is done meanwhile.
        owed = list(self._owed.items())
        started = [
            future
            for obligation, future in owed
            if obligation.owner is owner and future and obligation.description.startswith(about)
        ]
        if started:
            waits = [asyncio.ensure_future(_outlast(future)) for future in started]
            try:
                await asyncio.wait(waits, timeout=patience)
            finally:
                for wait in waits:
                    wait.cancel()

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the reaper's loop; cancelling the caller leaves it running."""
        return await across(loop_thread().submit(coroutine))

    def finish(self) -> None:
        """Undoes all that is owed; called when the interpreter exits.

        Ctrl-C doesn't cut it short: it is bounded, and there is nobody left to interrupt.
        """
        deadline = time.monotonic() + EXIT_PATIENCE
        finished = False
        held = set(self._owed)  # and with them their connections, which are closed at the end
        while not finished:
            with contextlib.suppress(KeyboardInterrupt):
                self._exiting = True
                ignore_termination()
                while self._owed and (left := deadline - time.monotonic()) > 0:
                    started = [self._start(obligation) for obligation in list(self._owed)]
                    concurrent.futures.wait(started, timeout=left)
                finished = True
        for obligation in list(self._owed):
            self._owed.pop(obligation, None)
            logger.error("%s was left behind at exit.", obligation.description)
        self._close_connections()
        held.clear()

    def _close_connections(self) -> None:
        """Closes what a program forgot to close, before the loop thread stops for good."""
        dispose_all()
        with contextlib.suppress(KeyboardInterrupt):
            catch_up(seconds=1.0)

    def forget(self) -> None:
        """Owes nothing any more, in a forked child: the parent answers for it."""
        self._owed = {}
        self._lock = threading.Lock()
        self._exit_registered = False


def finish_with_child(finish: Callable[[], None], priority: int = 0) -> None:
    """Calls something at the end of a child of multiprocessing, which runs no atexit.

    Args:
        finish: what to call; in another process it is not called.
        priority: the higher, the earlier; the reaper's own is 0.
    """
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, finish, exitpriority=priority)


async def _outlast(future: concurrent.futures.Future[None]) -> None:
    """Waits for the end of an undoing; what went wrong there is said by `_undo`."""
    with contextlib.suppress(Exception):
        await across(future)


reaper = Reaper()
# Twice, since a second Ctrl-C may come just before the first line of one, which ends that.
atexit.register(reaper.finish)
atexit.register(reaper.finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=reaper.forget)
