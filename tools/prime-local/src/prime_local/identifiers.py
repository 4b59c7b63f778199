"""Identifiers and keys: unguessable, or the same on every run when a seed is given."""

from __future__ import annotations

import random
import string

_ALPHABET = string.ascii_lowercase + string.digits


class Identifiers:
    """Source of ids, keys and tokens.

    Args:
        seed: makes every id and key repeatable; None draws them from the system's randomness.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)

    def make(self, prefix: str, length: int = 20) -> str:
        """Return `prefix` followed by `length` random lower-case letters and digits."""
        return prefix + "".join(self._random.choices(_ALPHABET, k=length))
