"""Collects the imports of one generated module: only what its code uses."""

from __future__ import annotations

import ast
import builtins

from syncgen.annotations import ITERATORS, PREFIX
from syncgen.problems import Unsupported
from syncgen.reader import Binding, Module


class Imports:
    """Args:
    module: the async source.
    taken: names that the generated code uses otherwise, so that no helper hides behind one.
    """

    def __init__(self, module: Module, taken: set[str]) -> None:
        self._module = module
        self._taken = taken
        self._runtime: set[str] = set()
        self._typing: set[str] = set()
        self._local: set[str] = set()

    def helper(self, name: str) -> str:
        """Imports a name of ``prime_core.sync`` and returns what it is called here."""
        alias = f"{name}_sync" if name in self._taken else name
        self._add("prime_core.sync", name, alias)
        return alias

    def any(self) -> str:
        self._add("typing", "Any")
        return "Any"

    def wrapped(self, name: str) -> None:
        """Imports an async class, to be made or named as what a facade wraps."""
        self._add(self._module.import_path, name)

    def wrapped_elsewhere(self, name: str, node: ast.AST) -> None:
        """Imports an async class of any module, to tell its objects from others."""
        binding = self._module.imports.get(name)
        if binding is not None:
            self._bound(name, binding, node)
        else:
            self.wrapped(name)

    def twin(self, name: str, node: ast.AST) -> str:
        """Makes a sync class usable at run time, by the async class's name."""
        sync = name.removeprefix(PREFIX)
        if name in self._module.definitions:
            return sync
        binding = self._module.imports.get(name)
        if binding is None:
            raise Unsupported(node, f"{name} is not imported here")
        line = f"from {_sync_origin(binding.module)} import {sync}"
        # The async modules may import each other in a circle; a twin must not close it.
        (self._local if binding.typing_only else self._runtime).add(line)
        return sync

    def take_local(self) -> list[str]:
        """The imports that the function written last has to make itself."""
        lines, self._local = sorted(self._local), set()
        return lines

    def annotation(self, node: ast.expr) -> None:
        """Imports every name of a sync annotation."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self._name(part.id, part)

    def value(self, node: ast.expr) -> None:
        """Imports every name of an expression that is evaluated at run time."""
        if self._module.annotations.is_async(node):
            raise Unsupported(node, f"{ast.unparse(node)} has no sync form")
        self.annotation(node)

    def exported(self, name: str) -> str:
        """Imports a name of ``__all__`` and returns what it is called here."""
        sync = name.removeprefix(PREFIX) if name in self._module.annotations.known else name
        self._name(sync, None)
        return sync

    def _name(self, name: str, node: ast.AST | None) -> None:
        module = self._module
        binding = module.imports.get(name)
        asynchronous = module.imports.get(PREFIX + name)
        if PREFIX + name in module.annotations.known and PREFIX + name in module.definitions:
            return
        if binding is not None:
            self._bound(name, binding, node)
        elif name in module.definitions:
            if module.annotations.is_async(module.definitions[name]):
                raise Unsupported(node, f"{name} has async parts, so it has no sync form")
            self._add(module.import_path, name)
        elif asynchronous is not None and PREFIX + name in module.annotations.known:
            origin = _sync_origin(asynchronous.module)
            self._add(origin, name, typing_only=asynchronous.typing_only)
        elif name in ITERATORS.values():
            origins = [key for key, value in ITERATORS.items() if value == name]
            typing_only = any(
                module.imports[key].typing_only for key in origins if key in module.imports
            )
            self._add("collections.abc", name, typing_only=typing_only)
        elif not hasattr(builtins, name):
            raise Unsupported(node, f"{name} is not defined in this module")

    def _bound(self, name: str, binding: Binding, node: ast.AST | None) -> None:
        origin, typing_only = binding.module, binding.typing_only
        if "asyncio" in (origin, binding.name):
            raise Unsupported(node, f"{name} of asyncio has no sync form")
        if not origin:
            renamed = f" as {name}" if name != binding.name.partition(".")[0] else ""
            (self._typing if typing_only else self._runtime).add(f"import {binding.name}{renamed}")
            return
        if origin.startswith(".") and not origin.startswith(".."):
            origin = f"{self._module.package}._async{origin.rstrip('.')}"
        self._add(origin, binding.name, name, typing_only=typing_only)

    def _add(self, origin: str, name: str, alias: str = "", *, typing_only: bool = False) -> None:
        line = f"from {origin} import {name}" + (f" as {alias}" if alias not in ("", name) else "")
        (self._typing if typing_only else self._runtime).add(line)

    def text(self) -> str:
        """The import statements, unsorted."""
        lines = ["from __future__ import annotations", *sorted(self._runtime)]
        typing_only = sorted(self._typing - self._runtime)
        if typing_only:
            lines.append("from typing import TYPE_CHECKING")
            lines.append("if TYPE_CHECKING:")
            lines += [f"    {line}" for line in typing_only]
        return "\n".join(lines) + "\n"


def _sync_origin(module: str) -> str:
    """The module that holds the sync classes of an ``_async`` module."""
    return ".".join("_sync" if part == "_async" else part for part in module.split("."))
