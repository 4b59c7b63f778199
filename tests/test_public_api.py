"""What the packages promise changes only on purpose."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import public_api

PACKAGE = "package_with_promises"
SOURCE = '''
from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum

from pydantic import BaseModel, Field

__all__ = ["Answer", "Client", "Colour", "ColourError", "Span", "measure"]


class Colour(str, Enum):
    RED = "red"
    BLUE = "blue"


class Shared:
    async def close(self) -> None:
        """Closes it."""

    async def pages(self) -> AsyncIterator[str]:
        yield ""


class Client(Shared):
    LIMIT = 3

    def __init__(self, key: str, *, timeout: float = 1.5, colour: Colour = Colour.RED) -> None:
        self.key = key
        self.names: list[str] = []
        self._secret = key

    @property
    def name(self) -> str:
        return self.key

    @classmethod
    def default(cls) -> Client:
        return cls("")


class ColourError(ValueError, LookupError):
    pass


class Answer(BaseModel):
    wire_name: int = Field(alias="wireName")
    labels: list[str] = Field(default_factory=list)


@dataclass
class Span:
    first: int
    last: int = 7
    names: list[str] = field(default_factory=list)


def measure(span: Span) -> int:
    return span.last
'''

Describe = Callable[[str], str]


@pytest.fixture
def describe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Describe]:
    """Describes a package made of the given source."""

    def describe(source: str) -> str:
        (tmp_path / f"{PACKAGE}.py").write_text(source, encoding="utf-8")
        sys.modules.pop(PACKAGE, None)
        importlib.invalidate_caches()
        public_api.exported.cache_clear()
        return "\n".join(public_api.describe_package(PACKAGE))

    monkeypatch.setattr(public_api, "PACKAGES", [PACKAGE])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    yield describe
    sys.modules.pop(PACKAGE, None)
    public_api.exported.cache_clear()


def test_the_packages_promise_what_is_written_down() -> None:
    difference = public_api.drift()
    assert not difference, (
        "the public API changed; if that is meant, tell of it in the package's CHANGELOG.md and "
        f"run `python -m uv run python tools/public_api.py`\n{difference}"
    )


def test_both_sides_of_every_package_are_written_down() -> None:
    for package in public_api.PACKAGES:
        path = public_api.FOLDER / f"{package}.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        clients = [line for line in lines if line.startswith("class Async")]
        assert clients
        assert {line.replace(" Async", " ") for line in clients} <= set(lines)


def test_what_is_written_down_is_what_a_user_reads_in_the_source(describe: Describe) -> None:
    assert describe(SOURCE).splitlines() == [
        "class Answer(BaseModel)",
        "field Answer.wire_name: int (on the wire: wireName)",
        "field Answer.labels: list[str] = list()",
        "class Client",
        "attribute Client.LIMIT = 3",
        "attribute Client.key: str",
        "attribute Client.names: list[str]",
        "def Client.__init__(self, key: str, *, timeout: float = 1.5, "
        "colour: Colour = Colour.RED) -> None",
        "async def Client.close(self) -> None",
        "classmethod def Client.default(cls) -> Client",
        "property Client.name: str",
        "def Client.pages(self) -> AsyncIterator[str]",
        "class Colour(str, Enum)",
        "member Colour.RED = 'red'",
        "member Colour.BLUE = 'blue'",
        "class ColourError(ValueError, LookupError)",
        "class Span",
        "attribute Span.first: int",
        "attribute Span.last: int",
        "attribute Span.names: list[str]",
        "def Span.__init__(self, first: int, last: int = 7, names: list[str] = <factory>) -> None",
        "def measure(span: Span) -> int",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (", timeout: float = 1.5", ""),
        ("timeout: float = 1.5", "timeout: float"),
        ("timeout: float = 1.5", "timeout: float = 2.5"),
        ("timeout: float", "limit: float"),
        ("timeout: float", "timeout: int"),
        ("key: str, *, timeout", "key: str, timeout"),
        ("async def close", "def close"),
        ("async def pages", "async def turn"),
        ('yield ""', 'return iter("")'),
        ("self.key = key", "self._key = key"),
        ("@property\n    def", "def"),
        ("ColourError(ValueError, LookupError)", "ColourError(ValueError)"),
        ('alias="wireName"', 'alias="wire_name"'),
        ("wire_name: int = Field(", "wire_name: int | None = Field(default=None, "),
        ('    BLUE = "blue"\n', ""),
        ('"blue"', '"azure"'),
        ("first: int\n    last: int = 7", "last: int\n    first: int = 7"),
        ('"Span", ', ""),
    ],
)
def test_a_change_that_users_notice_shows(describe: Describe, before: str, after: str) -> None:
    changed = SOURCE.replace(before, after)
    assert changed != SOURCE
    assert describe(changed) != describe(SOURCE)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""Closes it."""', '"""Closes all."""'),
        ("self._secret = key", "self._secret, self._more = key, 1"),
        (
            "    async def close(self)",
            "    async def _help(self) -> None: ...\n\n    async def close(self)",
        ),
        ("class Client(Shared):", "class Between(Shared): ...\n\n\nclass Client(Between):"),
    ],
)
def test_a_change_behind_the_promise_does_not_show(
    describe: Describe, before: str, after: str
) -> None:
    changed = SOURCE.replace(before, after)
    assert changed != SOURCE
    assert describe(changed) == describe(SOURCE)
