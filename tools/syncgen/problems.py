"""The error for a construct that has no sync form."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager


class Unsupported(Exception):
    """Raised at a construct that the generator would otherwise have to drop or guess.

    Args:
        node: where it stands in the async source; None for the file as a whole.
        message: what is wrong and what to write instead.
    """

    def __init__(self, node: ast.AST | None, message: str) -> None:
        super().__init__(message)
        self.line: int = getattr(node, "lineno", 1)


@contextmanager
def collected(problems: list[Unsupported]) -> Iterator[None]:
    """Notes what is unsupported and goes on after it, so that one run reports everything."""
    try:
        yield
    except Unsupported as problem:
        problems.append(problem)
