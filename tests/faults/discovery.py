"""What the packages hold, found rather than listed."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from prime_core.operations import Operation

__all__ = ["classes", "modules", "operations"]

PACKAGES = Path(__file__).parents[2] / "packages"


def modules() -> Iterator[ModuleType]:
    """Every module of every package."""
    for root in sorted(PACKAGES.glob("*/src/*/__init__.py")):
        package = importlib.import_module(root.parent.name)
        yield package
        for entry in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(entry.name)


def operations() -> dict[str, Operation]:
    """Every row of every package, by its name."""
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        if module.__name__.endswith(".operations")
        for name, value in vars(module).items()
        if isinstance(value, Operation)
    }


def classes() -> dict[str, type]:
    """Every class that a package defines, by its qualified name."""
    return {
        f"{module.__name__}.{name}": value
        for module in modules()
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }
