"""How the generated modules read, type-check and import."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from syncgen.__main__ import ROOT
from syncgen.docstrings import LEFT_OVER, Docstrings
from syncgen.rules import Rules
from syncgen.testing import Workspace

CLIENT = '''
"""A client: ``async with AsyncClient() as client``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Literal, overload

from typing_extensions import Self

from .fleet import AsyncFleet, Outcome, T


class AsyncClient:
    """Use it as ``async with AsyncClient() as client`` or ``AsyncClient``.

    Example::

        client = AsyncClient()
        async for page in client.pages(3):
            print(await client.get(page))
        await client.aclose()

    A path such as C:\\\\temp is kept.
    """

    SIZE = 10

    def __init__(self, parent: AsyncClient | None = None) -> None:
        self.parent = parent

    @overload
    async def get(self, name: str, *, raw: Literal[True]) -> bytes: ...
    @overload
    async def get(self, name: str, *, raw: Literal[False] = False) -> str: ...
    async def get(self, name: str, *, raw: bool = False) -> str | bytes:
        """Gets."""
        return name.encode() if raw else name

    @overload
    def peek(self, name: str) -> str: ...
    @overload
    def peek(self, name: int) -> int: ...
    def peek(self, name: str | int) -> str | int:
        return name

    async def pages(self, count: int = SIZE, run: str = "") -> AsyncIterator[str]:
        for number in range(count):
            yield str(number)

    async def find(self) -> AsyncFleet | None:
        return None

    def fleet(self) -> AsyncFleet:
        return AsyncFleet(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends."""
'''

FLEET = """
from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .client import AsyncClient

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Outcome(Generic[T, R]):
    item: T
    value: R


class AsyncHandle:
    def __init__(self, name: str) -> None:
        self.name = name


class AsyncBox(Generic[T]):
    def __init__(self, value: T) -> None:
        self._value = value

    async def get(self) -> T:
        return self._value


class AsyncReads:
    async def read(self) -> str:
        return ""


class AsyncWrites:
    async def write(self) -> int:
        return 1


class AsyncFleet(AsyncReads, AsyncWrites):
    def __init__(self, client: AsyncClient) -> None:
        self.client = client

    async def map(
        self,
        fn: Callable[[AsyncHandle, T], Awaitable[R]],
        items: Iterable[T] | AsyncIterable[T],
        *,
        done: Callable[[int], Awaitable[None]] | None = None,
        chosen: Callable[[AsyncHandle | None], Awaitable[AsyncHandle]] | None = None,
    ) -> AsyncIterator[Outcome[T, R]]:
        if isinstance(items, Iterable):
            return
        async for item in items:
            yield Outcome(item, await fn(AsyncHandle("h"), item))

    async def boxed(self, value: T) -> AsyncBox[T]:
        return AsyncBox(value)
"""

USER = """
from collections.abc import Iterator

from typing_extensions import assert_type

from prime_made._async.fleet import Outcome
from prime_made._sync.client import Client
from prime_made._sync.fleet import Fleet, Handle


def work(handle: Handle, item: int) -> str:
    return handle.name * item


with Client(Client()) as client:
    assert_type(client, Client)
    assert_type(client.get("a"), str)
    assert_type(client.get("a", raw=True), bytes)
    assert_type(client.peek(1), int)
    assert_type(client.parent, Client | None)
    assert_type(client.pages(2), Iterator[str])
    assert_type(client.find(), Fleet | None)
    assert_type(client.fleet().client, Client)
    assert_type(client.fleet().read(), str)
    assert_type(client.fleet().write(), int)
    assert_type(client.fleet().boxed(1).get(), int)
    assert_type(client.fleet().map(work, [1, 2]), Iterator[Outcome[int, str]])
"""


@pytest.fixture
def generated(workspace: Workspace) -> Workspace:
    workspace.source("", "__init__", imports="")
    workspace.source(CLIENT, "client", imports="")
    workspace.source(FLEET, "fleet", imports="")
    assert workspace.run() == 0
    return workspace


def _run(*command: str, folder: Path) -> str:
    """A program's output once it has succeeded."""
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_strict_type_checker_accepts_the_output(generated: Workspace) -> None:
    (generated.root / "user.py").write_text(USER, encoding="utf-8")
    path = f"{generated.package.parent}:{ROOT / 'packages' / 'prime-core' / 'src'}"
    (generated.root / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\npython_version = 3.10\nmypy_path = {path}\n", encoding="utf-8"
    )
    mypy = ("-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache")
    _run(*mypy, str(generated.package), "user.py", folder=generated.root)


def test_the_linter_accepts_the_output(generated: Workspace) -> None:
    folder = str(generated.sync_path().parent)
    _run("-m", "ruff", "check", "--no-cache", folder, folder=generated.root)
    _run("-m", "ruff", "format", "--check", "--no-cache", folder, folder=generated.root)


def test_the_oldest_supported_python_parses_the_output(generated: Workspace) -> None:
    for name in ("__init__", "client", "fleet"):
        ast.parse(generated.text(name), feature_version=(3, 10))


def test_modules_that_name_each_other_import_in_any_order(generated: Workspace) -> None:
    for first in ("client", "fleet"):
        code = (
            f"import prime_made._sync.{first}; from prime_made._sync.client import Client; "
            "print(type(Client().fleet().client).__name__)"
        )
        assert _run("-c", _on_path(generated, code), folder=generated.root) == "Client\n"


def test_a_sync_module_imports_only_what_its_async_twin_does(generated: Workspace) -> None:
    code = (
        "import sys; import prime_core.sync, prime_made._async.client; before = set(sys.modules); "
        "import prime_made._sync.client; print(sorted(set(sys.modules) - before))"
    )
    assert _run("-c", _on_path(generated, code), folder=generated.root) == (
        "['prime_made._sync', 'prime_made._sync.client', 'prime_made._sync.fleet']\n"
    )


def _on_path(generated: Workspace, code: str) -> str:
    return f"import sys; sys.path.insert(0, {str(generated.package.parent)!r}); {code}"


def test_docstrings_speak_of_the_sync_client(generated: Workspace) -> None:
    module = ast.parse(generated.text("client"))
    assert ast.get_docstring(module) == "A client: ``with Client() as client``."
    client = module.body[-1]
    assert isinstance(client, ast.ClassDef)
    assert (ast.get_docstring(client) or "").splitlines() == [
        "Use it as ``with Client() as client`` or ``Client``.",
        "",
        "Example::",
        "",
        "    client = Client()",
        "    for page in client.pages(3):",
        "        print(client.get(page))",
        "    client.close()",
        "",
        "A path such as C:\\temp is kept.",
    ]


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], include_characters="\n")))
def test_any_docstring_survives(text: str) -> None:
    assume(not LEFT_OVER.search(text))
    module = ast.Module([ast.Expr(ast.Constant(text))], [])
    literal = Docstrings(Rules(), frozenset(), set()).literal(module, "x")
    found = ast.get_docstring(ast.parse(literal)) or ""
    assert found.rstrip() == inspect.cleandoc(text).rstrip()
