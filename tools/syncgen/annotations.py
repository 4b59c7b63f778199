"""What an async annotation says, and its sync counterpart."""

from __future__ import annotations

import ast
import copy
from collections.abc import Set

from syncgen.problems import Unsupported

ITERATORS = {
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Iterator",
    "AsyncIterable": "Iterable",
}
AWAITABLES = frozenset({"Awaitable", "Coroutine"})
PREFIX = "Async"


def head(node: ast.expr | None) -> str:
    """The name an annotation starts with: ``list`` for ``builtins.list[int]``."""
    if isinstance(node, ast.Subscript):
        return head(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def arguments(node: ast.expr) -> list[ast.expr]:
    """What stands between an annotation's brackets."""
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def members(node: ast.expr) -> list[ast.expr]:
    """The members of a union written with ``|``, in order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*members(node.left), *members(node.right)]
    return [node]


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def without_none(node: ast.expr) -> list[ast.expr]:
    return [member for member in members(node) if not is_none(member)]


class Annotations:
    """Reads the annotations of a module.

    Args:
        known: names of all async classes of the run.
    """

    def __init__(self, known: Set[str]) -> None:
        self.known = known
        self._translator = _Translator(known)

    def read(self, node: ast.expr | None, owner: ast.AST) -> ast.expr:
        """The annotation of something that stands at ``owner``, with its strings parsed."""
        if node is None:
            raise Unsupported(owner, "an annotation is missing")
        result = _Unquoted().visit(copy.deepcopy(node))
        assert isinstance(result, ast.expr)
        return result

    def is_async(self, node: ast.AST) -> bool:
        """Whether any part of it reads otherwise in the sync client."""
        return any(
            isinstance(part, (ast.AsyncFunctionDef, ast.Name, ast.Attribute))
            and _is_async_name(part)
            for part in ast.walk(node)
        )

    def converts(self, node: ast.expr) -> bool:
        """Whether a value of this type is another object in the sync client."""
        return self.is_async(node) or any(
            isinstance(part, ast.Name) and part.id == "Self" for part in ast.walk(node)
        )

    def sync(self, node: ast.expr) -> ast.expr:
        """The annotation that the sync client shows."""
        result = self._translator.visit(copy.deepcopy(node))
        assert isinstance(result, ast.expr)
        return result


def _is_async_name(node: ast.AsyncFunctionDef | ast.Name | ast.Attribute) -> bool:
    if isinstance(node, ast.AsyncFunctionDef):
        return True
    name = head(node)
    return PREFIX in name or name in AWAITABLES


class _Unquoted(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str):
            return node
        parsed = ast.parse(node.value, mode="eval").body
        for part in ast.walk(parsed):
            ast.copy_location(part, node)
        return parsed

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if head(node) == "Annotated" and isinstance(node.slice, ast.Tuple):
            node.slice.elts[0] = self.visit(node.slice.elts[0])
        elif head(node) != "Literal":
            self.generic_visit(node)
        return node


class _Translator(ast.NodeTransformer):
    def __init__(self, known: Set[str]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._known:
            return ast.copy_location(ast.Name(node.id.removeprefix(PREFIX)), node)
        if _is_async_name(node):
            raise Unsupported(node, f"no sync form is known for {node.id}")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if _is_async_name(node):
            raise Unsupported(node, f"import {node.attr} by its own name")
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name, parts = head(node), arguments(node)
        if name == "Literal":
            return node
        if name in AWAITABLES:
            return self._visit(parts[-1])
        if name in ITERATORS:
            item = ast.Subscript(ast.Name(ITERATORS[name]), self._visit(parts[0]))
            return ast.copy_location(item, node)
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        # Members can become equal, as Iterable[T] | AsyncIterable[T] does.
        distinct = {ast.unparse(item): item for item in map(self._visit, members(node))}
        first, *rest = distinct.values()
        for item in rest:
            first = ast.copy_location(ast.BinOp(first, ast.BitOr(), item), node)
        return first

    def _visit(self, node: ast.expr) -> ast.expr:
        result = self.visit(node)
        assert isinstance(result, ast.expr)
        return result
