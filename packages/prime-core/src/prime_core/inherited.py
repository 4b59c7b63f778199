"""What a forked child has of its parent, and must never collect."""

from __future__ import annotations

import ctypes

__all__ = ["never_collect"]


def never_collect(value: object) -> None:
    """Keeps an object past the interpreter's end too, when modules let go of what they hold.

    Connections that are collected are taken out of the event loop's epoll set, which a forked
    child shares with its parent: the parent would hear no more of them, and hang.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))
