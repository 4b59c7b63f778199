"""SIGTERM as an orderly end: by default it kills the process before any clean-up can run."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from types import FrameType
from typing import Any

__all__ = ["CancelOnSigterm", "ExitOnSigterm"]

_active = False


def _claim() -> bool:
    """Whether this is the outermost guard, in the main thread, over the default handler."""
    global _active
    if (
        _active
        or sys.platform == "win32"
        or threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        return False
    _active = True
    return True


def _release() -> None:
    global _active
    _active = False
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


class CancelOnSigterm:
    """In async code: SIGTERM cancels the guarded task; the end of the guard exits for it."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fired = False

    def enter(self) -> None:
        """Guards the running task, where the default handler is in place."""
        if not _claim():
            return
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def cancel() -> None:
            self._fired = True
            if task is not None:
                task.cancel()

        self._loop.add_signal_handler(signal.SIGTERM, cancel)

    def leave(self) -> None:
        """Restores the default handler.

        Raises:
            SystemExit: with the code of SIGTERM, if it came meanwhile.
        """
        if self._loop is None:
            return
        self._loop.remove_signal_handler(signal.SIGTERM)
        self._loop = None
        _release()
        if self._fired:
            raise SystemExit(128 + signal.SIGTERM)


class ExitOnSigterm:
    """In sync code: SIGTERM raises SystemExit in the main thread."""

    def __init__(self) -> None:
        self._entered = False

    def enter(self) -> None:
        """Guards the main thread, where the default handler is in place."""
        if _claim():
            self._entered = True
            signal.signal(signal.SIGTERM, self._exit)

    def leave(self) -> None:
        """Restores the default handler."""
        if self._entered:
            self._entered = False
            _release()

    @staticmethod
    def _exit(number: int, frame: FrameType | None) -> Any:
        raise SystemExit(128 + number)
