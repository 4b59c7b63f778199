"""What a sync call has made but not handed to its caller yet."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

__all__ = ["Handover", "current_handover", "when_received"]


class Handover:
    """What a sync call has made but not handed to its caller yet.

    Ctrl-C can come when the coroutine behind the call is done and its caller has not got the
    result: then nobody knows of what it made, and it must be discarded.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received: bool | None = None
        self._made: list[tuple[Callable[[], object], Callable[[], object]]] = []

    def add(self, keep: Callable[[], object], discard: Callable[[], object]) -> None:
        with self._lock:
            if self._received is None:
                self._made.append((keep, discard))
                return
        # Late: the call is over. Work that outlives its call answers for itself.
        (keep if self._received else discard)()

    def close(self, *, received: bool) -> None:
        with self._lock:
            self._received = received
        while self._made:
            keep, discard = self._made.pop()
            (keep if received else discard)()


current_handover: contextvars.ContextVar[Handover | None] = contextvars.ContextVar(
    "prime_handover", default=None
)


def when_received(keep: Callable[[], object], discard: Callable[[], object]) -> None:
    """Calls ``keep`` once the caller has the result: at once, unless a sync call waits for it.

    Args:
        keep: somebody answers for what was made.
        discard: the sync call was interrupted just then; nobody does.
    """
    handover = current_handover.get()
    if handover is None:
        keep()
    else:
        handover.add(keep, discard)
