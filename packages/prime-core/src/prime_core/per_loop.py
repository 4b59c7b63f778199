"""Objects that belong to one event loop, such as sessions and poll schedules."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from prime_core.inherited import never_collect

__all__ = ["PerLoop", "dispose_all"]

T = TypeVar("T")

# A forked child must neither use nor collect what its parent's loops hold: collecting them
# would write to sockets that the parent still uses.
_instances: weakref.WeakSet[PerLoop[Any]] = weakref.WeakSet()


class PerLoop(Generic[T]):
    """One object per event loop, made when first needed.

    A dict keyed by the loop: a weak mapping would keep every entry, since a session holds
    its loop, and ``id(loop)`` is reused. Entries of closed loops go at the next new one.

    Args:
        make: makes the running loop's object.
        dispose: ends the object of a loop that is closed.
    """

    def __init__(
        self,
        make: Callable[[], T],
        dispose: Callable[[asyncio.AbstractEventLoop, T], None] = lambda loop, value: None,
    ) -> None:
        self._make = make
        self._dispose = dispose
        self._values: dict[asyncio.AbstractEventLoop, T] = {}
        _instances.add(self)

    def get(self) -> T:
        """The running loop's object."""
        loop = asyncio.get_running_loop()
        value = self._values.get(loop)
        if value is None:
            for old in [old for old in list(self._values) if old.is_closed()]:
                stale = self._values.pop(old, None)  # another thread may have been faster
                if stale is not None:
                    self._dispose(old, stale)
            value = self._values[loop] = self._make()
        return value

    def pop_all(self) -> Iterator[tuple[asyncio.AbstractEventLoop, T]]:
        """Takes every loop's object out, one after the other."""
        while self._values:
            yield self._values.popitem()

    def dispose(self) -> None:
        """Ends every loop's object."""
        for loop, value in self.pop_all():
            self._dispose(loop, value)

    def __bool__(self) -> bool:
        return bool(self._values)

    def forget(self) -> None:
        """Lets go of the objects without ending them, in a forked child."""
        never_collect(self._values)
        self._values = {}


def dispose_all() -> None:
    """Ends the objects of all loops, when the interpreter exits."""
    for instance in list(_instances):
        instance.dispose()


def _after_fork_in_child() -> None:
    for instance in list(_instances):
        instance.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
