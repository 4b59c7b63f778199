"""What has no sync form is refused with its file and line, never dropped."""

from __future__ import annotations

import pytest

from syncgen.testing import IMPORTS, Workspace

FIRST_LINE = IMPORTS.count("\n") + 1

REFUSED = {
    "a public function": ("def helper() -> int: ...", "the public function helper"),
    "a public coroutine function": ("async def helper() -> int: ...", "the public function helper"),
    "a module hook": ("def __getattr__(name: str) -> int: ...", "the public function __getattr__"),
    "a conditional": ("try:\n    import numpy\nexcept ImportError: ...", "doesn't know"),
    "another branch than the type checker's": (
        "if TYPE_CHECKING:\n    import numpy\nelse:\n    numpy = 1",
        "doesn't know",
    ),
    "another class with async parts": (
        "class Other:\n    async def get(self) -> int: ...",
        "call it AsyncOther",
    ),
    "a renamed import": ("from x import AsyncThing as Thing", "import AsyncThing by its own name"),
    "an unknown base": ("class AsyncA(Exception): ...", "the base Exception"),
    "a decorated class": (
        "import dataclasses\n@dataclasses.dataclass\nclass AsyncA: ...",
        "a decorator or keyword of AsyncA",
    ),
    "an inherited constructor": (
        "class AsyncA: ...\nclass AsyncB(AsyncA): ...",
        "AsyncB needs one __init__",
    ),
    "the sync name taken": ("class A: ...\nclass AsyncA: ...", "A is also the name of"),
}

REFUSED_MEMBERS = {
    "an unknown dunder": ("def __eq__(self, other: object) -> bool: ...", "__eq__ has no sync"),
    "an unknown decorator": ("@T.wraps\ndef get(self) -> int: ...", "the decorator T.wraps"),
    "a setter": ("@size.setter\ndef size(self, value: int) -> None: ...", "size.setter"),
    "a nested class": ("class Inner: ...", "a member that the generator doesn't know"),
    "a missing result type": ("async def get(self): ...", "an annotation is missing"),
    "a missing parameter type": ("async def get(self, a) -> int: ...", "an annotation is missing"),
    "an unnamed attribute type": ("def __init__(self) -> None:\n    self.a = 1", "attribute a"),
    "an attribute stored in a tuple": (
        "async def set(self) -> None:\n    self.a, b = 1, 2",
        "annotate the public attribute a",
    ),
    "an unknown async class": ("async def get(self) -> AsyncOther: ...", "known for AsyncOther"),
    "an async class in an unknown place": (
        "async def get(self) -> tuple[AsyncThing, int]: ...",
        "known for tuple[AsyncThing, int]",
    ),
    "a bare awaitable": ("def get(self) -> Awaitable[int]: ...", "known for Awaitable[int]"),
    "an awaitable argument": ("async def get(self, a: Awaitable[int]) -> int: ...", "Awaitable"),
    "an async context manager": (
        "def open(self) -> AbstractAsyncContextManager[int]: ...",
        "AbstractAsyncContextManager",
    ),
    "a type of asyncio": ("def open(self) -> asyncio.Task[int]: ...", "asyncio has no sync form"),
    "bytes or an async iterable": (
        "async def send(self, data: bytes | AsyncIterable[bytes]) -> int: ...",
        "known for bytes | AsyncIterable[bytes]",
    ),
    "a plain callback given an async object": (
        "async def each(self, fn: Callable[[AsyncThing], int]) -> int: ...",
        "has to be awaitable",
    ),
    "variadic async objects": ("async def add(self, *a: AsyncThing) -> int: ...", "variadic a"),
    "a default with an async part": (
        "async def add(self, a: int = len(AsyncThing.__name__)) -> int: ...",
        "has no sync form",
    ),
    "a name that is not defined": ("async def get(self) -> Missing: ...", "Missing is not defined"),
    "an alias with an async part": ("async def get(self, fn: Work) -> int: ...", "Work has async"),
    "async words in a docstring": (
        'async def get(self) -> int:\n    """Only asyncio works."""',
        "'asyncio' in the docstring of prime_made.AsyncThing.get",
    ),
}

AROUND_MEMBERS = """\
import asyncio
from contextlib import AbstractAsyncContextManager
Work = Callable[[int], Awaitable[int]]
class AsyncThing:
"""


@pytest.mark.parametrize(("source", "message"), REFUSED.values(), ids=REFUSED)
def test_a_module_level_construct_is_refused(
    workspace: Workspace, source: str, message: str
) -> None:
    workspace.source(source)
    if "x import" in source:
        workspace.source("class AsyncThing: ...", "x")
    problems = workspace.problems()
    assert len(problems) == 1
    assert message in problems[0]
    assert problems[0].startswith("packages/prime-made/src/prime_made/_async/made.py:")


@pytest.mark.parametrize(("member", "message"), REFUSED_MEMBERS.values(), ids=REFUSED_MEMBERS)
def test_a_member_is_refused_at_its_line(workspace: Workspace, member: str, message: str) -> None:
    body = member.replace("\n", "\n    ")
    workspace.source(f"{AROUND_MEMBERS}    x = 1\n    {body}\n")
    problems = workspace.problems()
    assert len(problems) == 1
    assert message in problems[0]
    first = FIRST_LINE + AROUND_MEMBERS.count("\n") + 1
    line = int(problems[0].split(":")[1])
    assert first <= line <= first + member.count("\n")


def test_one_run_reports_every_problem_and_writes_nothing(workspace: Workspace) -> None:
    workspace.source("""
        class AsyncThing:
            async def a(self) -> AsyncOther: ...
            async def b(self): ...
        """)
    workspace.source("def helper() -> int: ...", "other")
    assert len(workspace.problems()) == 3
    assert workspace.run() == 1
    assert not workspace.sync_path().exists()


def test_private_things_are_left_out(workspace: Workspace) -> None:
    workspace.source("""
        _cache: dict[str, int] = {}
        def _helper() -> int:
            return 1
        class _Private:
            async def get(self) -> int:
                return 1
        class AsyncThing:
            _limit = 3
            def __init__(self) -> None:
                self._private = _Private()
            async def _get(self) -> int:
                return _helper()
            def __getstate__(self) -> dict[str, int]:
                return {}
        """)
    assert workspace.problems() == []
    assert workspace.run() == 0
    assert "rivate" not in workspace.text()
    assert "_limit" not in workspace.text()
