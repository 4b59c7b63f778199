"""A text that must not be shown."""

from __future__ import annotations

import hmac

__all__ = ["Secret"]

_MASK = "**********"


class Secret:
    """A text kept out of repr, logs, formatted strings and pickles.

    Two secrets are equal when their texts are. A pickle holds no text: what arrives is an
    empty secret, and its owner resolves the value again. A copy within the process is the
    same object.

    Args:
        value: the text to protect; empty means "none".
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself; do so only where it is sent."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_octets(self._value), _octets(other._value))

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __str__(self) -> str:
        return _MASK if self._value else ""

    def __repr__(self) -> str:
        return f"Secret({str(self)!r})"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> tuple[type[Secret], tuple[str]]:
        return Secret, ("",)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
