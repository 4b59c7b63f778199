"""Executes pieces of Python in one namespace, each exactly as it is.

    python run_snippet.py < JSON list of [name, code]

If one of them awaits at its top level, as in a notebook, all share one event loop.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import linecache
import sys
from types import CodeType
from typing import Any


def compiled(name: str, code: str) -> CodeType:
    # Tracebacks show the line that failed.
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    piece: CodeType = compile(code, name, "exec", flags=flags, dont_inherit=True)
    return piece


async def run_awaiting(pieces: list[CodeType], names: dict[str, Any]) -> None:
    for piece in pieces:
        outcome = eval(piece, names)
        if inspect.iscoroutine(outcome):
            await outcome


def main() -> None:
    pieces = [compiled(name, code) for name, code in json.load(sys.stdin)]
    names: dict[str, Any] = {"__name__": "__main__"}
    if any(piece.co_flags & inspect.CO_COROUTINE for piece in pieces):
        asyncio.run(run_awaiting(pieces, names))
    else:
        for piece in pieces:
            exec(piece, names)


if __name__ == "__main__":
    main()
