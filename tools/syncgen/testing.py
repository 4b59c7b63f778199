"""A small workspace for the tools' own tests."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from textwrap import dedent
from typing import Any

from syncgen.__main__ import ROOT, main
from syncgen.generator import generate
from syncgen.rules import Rules

IMPORTS = """\
from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from functools import cached_property
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar, overload

from typing_extensions import Self

T = TypeVar("T")
R = TypeVar("R")
"""


class Workspace:
    """One package, ``prime_made``, that a test fills with async modules.

    Args:
        root: an empty folder; the settings of ruff in it become those of this repository.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = root / "packages" / "prime-made" / "src" / "prime_made"
        (self.package / "_async").mkdir(parents=True)
        (self.package / "__init__.py").touch()
        shutil.copy(ROOT / "pyproject.toml", root)

    def source(self, text: str, name: str = "made", imports: str = IMPORTS) -> None:
        """Writes an async module."""
        path = self.package / "_async" / f"{name}.py"
        path.write_text(imports + dedent(text), encoding="utf-8")

    def sync_path(self, name: str = "made") -> Path:
        return self.package / "_sync" / f"{name}.py"

    def text(self, name: str = "made") -> str:
        """What stands in a sync module."""
        return self.sync_path(name).read_text(encoding="utf-8")

    def problems(self, rules: Rules | None = None) -> list[str]:
        return generate(self.root, rules or Rules()).problems

    def run(self, *arguments: str, rules: Rules | None = None) -> int:
        """The tool's exit code."""
        return main(arguments, self.root, rules or Rules())

    def load(self, name: str = "made", rules: Rules | None = None) -> Any:
        """Generates, and imports a sync module."""
        if self.run(rules=rules):
            raise AssertionError("the generator refused the source; see what it printed")
        return importlib.import_module(f"prime_made._sync.{name}")
