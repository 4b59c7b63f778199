"""Names that tell what a create has made, when its answer is lost.

No route for pods and disks takes an idempotency key, and of all that a create says only the name
comes back. So each create adds a mark of its own to the name; whatever carries it was made by
that create, by nothing else.
"""

from __future__ import annotations

import secrets

__all__ = ["MARK_LENGTH", "carries", "described", "marked", "new_mark"]

_BYTES = 5
MARK_LENGTH = 2 * _BYTES + 1


def new_mark() -> str:
    """A mark that no other create has: a hyphen and hexadecimal digits."""
    return f"-{secrets.token_hex(_BYTES)}"


def marked(name: str | None, mark: str, kind: str) -> str:
    """The name to create something under; without one of its own it is called by its kind."""
    return f"{name or kind}{mark}"


def described(name: str | None, mark: str, kind: str) -> str:
    """What the log calls it: by the caller's name for it, and by the one to look for."""
    made_as = marked(name, mark, kind)
    return f"{kind.capitalize()} {made_as!r}" + (f", asked for as {name!r}" if name else "")


def carries(name: str | None, mark: str) -> bool:
    """Whether something of this name was made by the create of that mark."""
    return name is not None and name.casefold().endswith(mark)
