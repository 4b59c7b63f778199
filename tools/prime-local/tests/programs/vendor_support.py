"""What the programs that use the vendor's packages share. It needs no package."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

PATIENCE = 20.0


class Counted:
    """Passes calls on to an object, awaits them where that is needed, and notes their names."""

    def __init__(self, wrapped: Any, calls: list[str]) -> None:
        self._wrapped = wrapped
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._wrapped, name)
        if name == "volumes":
            return Counted(member, self._calls)
        if not callable(member):
            return member

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._calls.append(f"{type(self._wrapped).__name__}.{name}")
            outcome = member(*args, **kwargs)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return call


def equal(seen: object, expected: object) -> None:
    assert seen == expected, f"{seen!r} instead of {expected!r}"


@contextlib.contextmanager
def raises(kind: type[Exception], words: str = "") -> Iterator[None]:
    said = None
    try:
        yield
    except kind as error:
        said = str(error)
    assert said is not None, f"no {kind.__name__}"
    assert words in said, said


async def until(ask: Callable[[], Awaitable[Any]], wanted: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not wanted(answer := await ask()):
        assert time.monotonic() < deadline, answer
        await asyncio.sleep(0.05)
    return answer


def methods(offered: Any) -> list[str]:
    """The public methods of a class, or of an object's."""
    cls = offered if inspect.isclass(offered) else type(offered)
    members = inspect.getmembers(cls, inspect.isfunction)
    return [f"{cls.__name__}.{name}" for name, _ in members if not name.startswith("_")]
