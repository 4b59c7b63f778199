"""Loads a name of a package root when it is first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping


def load(package: str, name: str, exports: Mapping[str, str]) -> object:
    """Imports what an export table names, and keeps it in the package.

    Args:
        package: the package root's name.
        name: the attribute that was asked for.
        exports: module, or ``module:attribute`` where the name differs, by exported name.

    Raises:
        AttributeError: the package exports no such name.
    """
    if name not in exports:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module, _, attribute = exports[name].partition(":")
    value: object = getattr(importlib.import_module(module), attribute or name)
    setattr(sys.modules[package], name, value)
    return value
