"""SIGTERM and SIGHUP as orderly ends: by default they kill the process before any clean-up."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import warnings
from types import FrameType
from typing import Any

from prime_core.sync import on_loop_thread

__all__ = ["CancelOnTermination", "ExitOnTermination", "ignore_termination"]

SIGNALS = () if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)

# The signals that the outermost guard has taken over from the default handler.
_guarded: list[int] = []


def _claim(stacklevel: int) -> list[int]:
    """The signals to guard: none but for the outermost guard, in the main thread.

    Only there can a handler be installed. Elsewhere a guard says what it can't do, unless it
    is the part on the loop thread of one that a sync program has entered.

    Args:
        stacklevel: of that warning: from here to the user's line.
    """
    if _guarded:
        return []
    defaults = [n for n in SIGNALS if signal.getsignal(n) in (signal.SIG_DFL, exit_for)]
    if threading.current_thread() is threading.main_thread():
        _guarded.extend(defaults)
    elif signal.SIG_DFL in map(signal.getsignal, SIGNALS) and not on_loop_thread():
        warnings.warn(
            "Entered outside the main thread: SIGTERM or SIGHUP will end the program before any "
            "clean-up. Enter this in the main thread, or install a handler for them there that "
            "raises SystemExit.",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
    return list(_guarded)


def _release(finished: bool) -> None:
    for number in _guarded:
        # Clean-up that was cut short goes on at the interpreter's exit: it must come to that.
        signal.signal(number, signal.SIG_DFL if finished else exit_for)
    _guarded.clear()


def exit_for(number: int, frame: FrameType | None) -> Any:
    """A signal handler that ends the program as the shell expects it for that signal."""
    raise SystemExit(128 + number)


def ignore_termination() -> None:
    """Lets the last clean-up run to its end, which is bounded; the process ends anyhow."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, exit_for):
                signal.signal(number, signal.SIG_IGN)


def _after_fork_in_child() -> None:
    """A forked child has nothing to clean up, and its signals are not its parent's."""
    if _guarded:
        signal.set_wakeup_fd(-1)  # else the child's signals would reach the parent's loop
        _release(finished=True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class CancelOnTermination:
    """In async code: a signal cancels the guarded task; the end of the guard exits for it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals: list[int] = []
        self._fired: int | None = None

    def enter(self) -> None:
        """Guards the running task, where the default handlers are in place."""
        self._signals = _claim(stacklevel=4)
        if not self._signals:
            return
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def cancel(number: int) -> None:
            self._fired = number
            if task is not None:
                task.cancel()

        for number in self._signals:
            self._loop.add_signal_handler(number, cancel, number)

    def leave(self, *, finished: bool = True) -> None:
        """Restores the default handlers.

        Args:
            finished: whether the clean-up is over; if not, the signals still end the program
                in order, also when the first of them is what cut it short.

        Raises:
            SystemExit: with the code of a signal that came meanwhile.
        """
        if self._loop is None:
            return
        for number in self._signals:
            self._loop.remove_signal_handler(number)
        self._loop = None
        _release(finished)
        if self._fired is not None:
            raise SystemExit(128 + self._fired)


class ExitOnTermination:
    """In sync code: a signal raises SystemExit in the main thread."""

    def __init__(self) -> None:
        self._entered = False

    def enter(self) -> None:
        """Guards the main thread, where the default handlers are in place."""
        signals = _claim(stacklevel=5)  # `prime_core.sync.enter` is one more
        self._entered = bool(signals)
        for number in signals:
            signal.signal(number, exit_for)

    def leave(self, *, finished: bool = True) -> None:
        """Restores the default handlers; ``finished`` says whether the clean-up is over."""
        if self._entered:
            self._entered = False
            _release(finished)
