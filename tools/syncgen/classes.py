"""Writes one sync class."""

from __future__ import annotations

import ast
from textwrap import indent

from syncgen.annotations import PREFIX, arguments, head, is_none
from syncgen.conversions import Conversions, needs_name
from syncgen.docstrings import Docstrings
from syncgen.imports import Imports
from syncgen.problems import Unsupported, collected
from syncgen.reader import (
    CLASS_LEVEL,
    PROPERTIES,
    AsyncClass,
    Function,
    Module,
    decorator_name,
    is_generator,
    parameters,
)
from syncgen.rules import Rules
from syncgen.signatures import changed, forwarded, signature, without_first

CONTEXT = {"__aenter__": "enter", "__aexit__": "leave"}
RENAMED = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "aclose": "close",
}
NO_CONSTRUCTOR = ast.parse("def __init__(self) -> None: ...").body[0]


class ClassWriter:
    """Args:
    module: the async source.
    cls: the class to write.
    imports: takes what the code needs.
    docstrings: translates them.
    problems: takes what could not be carried over.
    """

    def __init__(
        self,
        module: Module,
        cls: AsyncClass,
        imports: Imports,
        docstrings: Docstrings,
        problems: list[Unsupported],
    ) -> None:
        self._annotations = module.annotations
        self._class = cls
        self._key = f"{module.package}.{cls.name}"
        self._imports = imports
        self._docstrings = docstrings
        self._problems = problems

    def text(self, rules: Rules, used: set[str]) -> str:
        """The class statement, unformatted; ``used`` takes the class when it has a rule."""
        heading = self._heading()
        body = [self._docstrings.literal(self._class.node, self._key)]
        if self._inherits:
            body.append(f"_async: {self._class.name}")
        body += [f"{name} = {self._class.name}.{name}" for name in self._class.constants]
        with collected(self._problems):
            body.append(self._constructor(rules, used))
        for name, annotation in self._class.attributes.items():
            with collected(self._problems):
                body.append(self._attribute(name, annotation))
        for method in self._class.methods:
            if method.name != "__init__":
                with collected(self._problems):
                    body.append(self._method(method))
        return heading + "\n" + indent("\n\n".join(filter(None, body)), "    ")

    @property
    def _inherits(self) -> bool:
        return any(head(base) in self._annotations.known for base in self._class.node.bases)

    def _heading(self) -> str:
        node, name = self._class.node, self._class.name
        if node.keywords or any(head(item) != "final" for item in node.decorator_list):
            raise Unsupported(node, f"a decorator or keyword of {name} has no sync form")
        bases: list[str] = []
        wrapped = name
        for base in node.bases:
            if head(base) in self._annotations.known:
                self._imports.twin(head(base), base)
            elif head(base) == "Generic":
                wrapped = ast.unparse(base).replace("Generic", name, 1)
            else:
                raise Unsupported(base, f"the base {ast.unparse(base)}: make it an Async class")
            bases.append(self._shown(base))
        self._imports.wrapped(name)
        if not self._inherits:
            bases.insert(0, f"{self._imports.helper('Facade')}[{wrapped}]")
        decorators = "".join(self._decorator(item) for item in node.decorator_list)
        return f"{decorators}class {name.removeprefix(PREFIX)}({', '.join(bases)}):"

    def _constructor(self, rules: Rules, used: set[str]) -> str:
        name, maker = self._class.name, rules.made_by.get(self._key)
        if maker:
            used.add(self._key)
            message = f"{name.removeprefix(PREFIX)} is made by {maker}"
            return f"def __init__(self) -> None:\n    raise TypeError({message!r})"
        found = [method for method in self._class.methods if method.name == "__init__"]
        if len(found) != 1 and (found or self._inherits):
            raise Unsupported(self._class.node, f"{name} needs one __init__ of its own")
        node = found[0] if found else NO_CONSTRUCTOR
        assert isinstance(node, ast.FunctionDef)
        given, passed_as, rule = node.args, {}, rules.constructors.get(self._key)
        if rule:
            used.add(self._key)
            given = changed(node, rule)
            passed_as = {rule.first: rule.passed_as}
        rest = without_first(given)
        call = forwarded(rest, self._annotations, self._conversions("self", rest), passed_as)
        return self._function(
            f"def __init__({self._signature(given)}) -> None:",
            self._docstrings.literal(node, f"{self._key}.__init__"),
            [f"self._async = {name}({call})"],
        )

    def _attribute(self, name: str, annotation: ast.expr) -> str:
        returned = self._annotations.read(annotation, self._class.node)
        conversions = Conversions(self._annotations, self._imports, "self", set())
        return self._function(
            f"@property\ndef {name}(self) -> {self._shown(returned)}:",
            "",
            self._returning(returned, f"self._async.{name}", conversions),
        )

    def _method(self, node: Function) -> str:
        decorators = {decorator_name(item) for item in node.decorator_list}
        returned = self._annotations.read(node.returns, node)
        coroutine = isinstance(node, ast.AsyncFunctionDef) and not is_generator(node)
        if head(returned) == "Coroutine" and isinstance(node, ast.FunctionDef):
            coroutine, returned = True, arguments(returned)[-1]
        heading = (
            "".join(self._decorator(item) for item in node.decorator_list)
            + f"def {RENAMED.get(node.name, node.name)}({self._signature(node.args)})"
            + f" -> {self._shown(returned)}:"
        )
        docstring = self._docstrings.literal(node, f"{self._key}.{node.name}")
        if "overload" in decorators:
            return self._function(heading, docstring, ["..."])
        lines = self._body(node, decorators, returned, coroutine=coroutine)
        return self._function(heading, docstring, lines)

    def _body(
        self, node: Function, decorators: set[str], returned: ast.expr, *, coroutine: bool
    ) -> list[str]:
        rest = node.args if "staticmethod" in decorators else without_first(node.args)
        conversions = self._conversions("cls" if "classmethod" in decorators else "self", rest)
        call = f"{self._class.name if decorators & CLASS_LEVEL else 'self._async'}.{node.name}"
        lines = []
        overloaded = sum(method.name == node.name for method in self._class.methods) > 1
        if overloaded:
            # The implementation's wide types match none of the overloads.
            lines.append(f"overloaded: {self._imports.any()} = {call}")
            call = "overloaded"
        if not decorators & PROPERTIES:
            call += f"({forwarded(rest, self._annotations, conversions)})"
        if node.name in CONTEXT:
            # These also guard the main thread, where the async object does not run.
            given = ", ".join(
                filter(None, ["self._async", forwarded(rest, self._annotations, conversions)])
            )
            call = f"{self._imports.helper(CONTEXT[node.name])}({given})"
        elif node.name == "__anext__":
            call = f"{self._imports.helper('next_of')}(self._async)"
        elif coroutine:
            call = f"{self._imports.helper('run')}({call})"
        if node.name == "__aenter__" and head(returned) in ("Self", self._class.name):
            return [call, "return self"]
        if overloaded and not is_none(returned) and not self._annotations.converts(returned):
            return [*lines, f"result: {self._shown(returned)} = {call}", "return result"]
        return [*lines, *self._returning(returned, call, conversions, coroutine=coroutine)]

    def _returning(
        self, returned: ast.expr, value: str, conversions: Conversions, *, coroutine: bool = False
    ) -> list[str]:
        if is_none(returned):
            return [value]
        if self._annotations.converts(returned) and needs_name(returned, coroutine=coroutine):
            name = conversions.free("result")
            return [f"{name} = {value}", f"return {conversions.to_sync(returned, name)}"]
        return [f"return {conversions.to_sync(returned, value)}"]

    def _function(self, heading: str, docstring: str, lines: list[str]) -> str:
        body = [docstring, *self._imports.take_local(), *lines]
        return heading + "\n" + indent("\n".join(filter(None, body)), "    ")

    def _signature(self, given: ast.arguments) -> str:
        constants = set(self._class.constants)
        return signature(given, self._annotations, self._imports, constants)

    def _shown(self, annotation: ast.expr) -> str:
        shown = self._annotations.sync(annotation)
        self._imports.annotation(shown)
        return ast.unparse(shown)

    def _decorator(self, node: ast.expr) -> str:
        if decorator_name(node) in PROPERTIES:
            return "@property\n"
        self._imports.annotation(node)
        return f"@{ast.unparse(node)}\n"

    def _conversions(self, receiver: str, given: ast.arguments) -> Conversions:
        taken = {item.arg for item in parameters(given)}
        return Conversions(self._annotations, self._imports, receiver, taken)
