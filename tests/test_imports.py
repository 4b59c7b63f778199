"""Importing a package costs next to nothing; what it names is loaded when it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = [
    "prime_core",
    "prime_compute",
    "prime_inference",
    "prime_sandboxes",
    "prime_traces",
    "prime_traces.runs",
    "prime_train",
    "prime_local",
]
HEAVY = ("aiohttp", "tenacity", "anyio", "pydantic", "google", "rich", "asyncio", "logging", "ssl")


def modules_after(statements: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{statements}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = modules_after(f"import {package}") - modules_after("")
    assert package in loaded
    assert loaded.intersection(HEAVY) == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_resolves_and_is_listed(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_every_exported_name(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    seen = {
        name
        for statement in ast.parse(Path(module.__file__).read_text("utf-8")).body
        if isinstance(statement, ast.If)
        for part in statement.body
        for name in names_of(part)
    }
    assert seen == set(module.__all__) - {"__version__"}


def names_of(statement: ast.stmt) -> list[str]:
    """What a statement binds by importing or assigning."""
    if isinstance(statement, ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error_that_says_where(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=package):
        _ = module.no_such_name
