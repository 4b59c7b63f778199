"""Expressions that carry a value between a sync client and the async object behind it."""

from __future__ import annotations

import ast
from string import ascii_lowercase

from syncgen.annotations import (
    AWAITABLES,
    ITERATORS,
    Annotations,
    arguments,
    head,
    members,
    without_none,
)
from syncgen.imports import Imports
from syncgen.problems import Unsupported


class Conversions:
    """The conversions of one method.

    Args:
        annotations: the reader of the module's annotations.
        imports: takes what the expressions need.
        receiver: ``self`` or ``cls``.
        taken: names that an expression must not bind anew.
    """

    def __init__(
        self, annotations: Annotations, imports: Imports, receiver: str, taken: set[str]
    ) -> None:
        self._annotations = annotations
        self._imports = imports
        self._receiver = receiver
        self._taken = taken

    def free(self, name: str) -> str:
        """A local name like ``name`` that hides no parameter."""
        while name in self._taken:
            name += "_"
        return name

    def to_sync(self, annotation: ast.expr, value: str) -> str:
        """What the sync caller gets for an async value; an optional one must be a name."""
        if not self._annotations.converts(annotation):
            return value
        name, parts, others = head(annotation), arguments(annotation), without_none(annotation)
        known = self._annotations.known
        if len(others) == 1 and len(members(annotation)) == 2:
            return f"None if {value} is None else {self.to_sync(others[0], value)}"
        converting = [other for other in others if self._annotations.converts(other)]
        if len(others) > 1 and len(converting) == 1 and head(converting[0]) in known:
            self._imports.wrapped_elsewhere(head(converting[0]), annotation)
            wrapped = self.to_sync(converting[0], value)
            return f"{wrapped} if isinstance({value}, {head(converting[0])}) else {value}"
        if name == "Self":
            return f"{self._receiver}._wrap({value})"
        if name in self._annotations.known:
            return f"{self._imports.twin(name, annotation)}._wrap({value})"
        if name in ("list", "List"):
            return f"[{self.to_sync(parts[0], 'item')} for item in {value}]"
        if name in ("dict", "Dict") and not self._annotations.converts(parts[0]):
            item = self.to_sync(parts[1], "item")
            return f"{{key: {item} for key, item in {value}.items()}}"
        if name in ITERATORS and name != "AsyncIterable":
            items = f"{self._imports.helper('iterate')}(lambda: {value})"
            if not self._annotations.converts(parts[0]):
                return items
            return f"({self.to_sync(parts[0], 'item')} for item in {items})"
        raise Unsupported(annotation, f"no sync form is known for {ast.unparse(annotation)}")

    def to_async(self, annotation: ast.expr, value: str) -> str:
        """What the async method is given for an argument, whose name is ``value``."""
        if not self._annotations.converts(annotation):
            return value
        name, parts, others = head(annotation), arguments(annotation), without_none(annotation)
        if len(others) < len(members(annotation)):
            inner = others[0]
            for other in others[1:]:
                inner = ast.copy_location(ast.BinOp(inner, ast.BitOr(), other), annotation)
            return f"None if {value} is None else {self.to_async(inner, value)}"
        if name in self._annotations.known:
            return f"{self._imports.helper('unwrap')}({value})"
        if name == "Callable":
            return self._callback(annotation, value)
        if name in ("list", "List", "Sequence"):
            return f"[{self.to_async(parts[0], 'item')} for item in {value}]"
        if name in ("AsyncIterator", "AsyncIterable") or _is_any_iterable(others):
            item = arguments(others[0])[0]
            if self._annotations.converts(item):
                value = f"({self.to_async(item, 'item')} for item in {value})"
            return f"{self._imports.helper('from_iterable')}({value})"
        raise Unsupported(annotation, f"no sync form is known for {ast.unparse(annotation)}")

    def _callback(self, annotation: ast.expr, value: str) -> str:
        given, result = arguments(annotation)
        awaited = [item for item in members(result) if head(item) in AWAITABLES]
        if not awaited:
            raise Unsupported(annotation, "a callback with async parts has to be awaitable")
        returned = arguments(awaited[0])[-1]
        function = value
        if self._annotations.converts(given) or self._annotations.converts(returned):
            function = self._adapter(given, returned, value)
        return f"{self._imports.helper('in_thread')}({function})"

    def _adapter(self, given: ast.expr, returned: ast.expr, function: str) -> str:
        if not isinstance(given, ast.List):
            raise Unsupported(given, "write out the parameters of a callback with async parts")
        free = (letter for letter in ascii_lowercase if letter not in self._taken)
        names = [name for _, name in zip(given.elts, free, strict=False)]
        values = [self.to_sync(item, name) for item, name in zip(given.elts, names, strict=True)]
        call = f"{function}({', '.join(values)})"
        if self._annotations.converts(returned) and head(returned) not in self._annotations.known:
            raise Unsupported(returned, "a callback can't return this")
        return f"lambda {', '.join(names)}: {self.to_async(returned, call)}"


def _is_any_iterable(union: list[ast.expr]) -> bool:
    """Whether it says ``Iterable[T] | AsyncIterable[T]``."""
    return {head(member) for member in union} == {"Iterable", "AsyncIterable"} and len(
        {ast.unparse(arguments(member)[0]) for member in union if arguments(member)}
    ) == 1


def needs_name(annotation: ast.expr, *, coroutine: bool) -> bool:
    """Whether a result has to be had before it is converted."""
    several = len(members(annotation)) > 1
    return several or (coroutine and head(annotation) in ITERATORS)
