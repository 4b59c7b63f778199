"""Importing a package costs next to nothing; what it names is loaded when it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = [
    "prime_core",
    "prime_compute",
    "prime_inference",
    "prime_sandboxes",
    "prime_traces",
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
def test_an_unknown_name_is_an_attribute_error_that_says_where(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=package):
        _ = module.no_such_name
