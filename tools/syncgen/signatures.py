"""The parameters of a sync function, and how they are passed on to the async one."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Set
from types import MappingProxyType

from syncgen.annotations import Annotations
from syncgen.conversions import Conversions
from syncgen.imports import Imports
from syncgen.problems import Unsupported
from syncgen.reader import parameters
from syncgen.rules import Constructor


def signature(
    arguments: ast.arguments, annotations: Annotations, imports: Imports, constants: Set[str]
) -> str:
    """The sync parameter list; ``constants`` are names that defaults find in the class."""
    shown = copy.deepcopy(arguments)
    for item in parameters(shown):
        if item.annotation is not None:
            item.annotation = annotations.sync(annotations.read(item.annotation, item))
            imports.annotation(item.annotation)
    for default in [*shown.defaults, *shown.kw_defaults]:
        if default is not None and not (isinstance(default, ast.Name) and default.id in constants):
            imports.value(default)
    return ast.unparse(shown)


def forwarded(
    arguments: ast.arguments,
    annotations: Annotations,
    conversions: Conversions,
    passed_as: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The argument list of the call behind.

    Args:
        arguments: the parameters without ``self`` or ``cls``.
        annotations: reads them.
        conversions: unwraps the arguments.
        passed_as: keywords of the async function for parameters called otherwise.
    """
    named = {item.arg: item.arg for item in arguments.kwonlyargs} | dict(passed_as)
    parts = []
    for item in parameters(arguments):
        annotation = annotations.read(item.annotation, item)
        value = conversions.to_async(annotation, item.arg)
        if item in (arguments.vararg, arguments.kwarg):
            if value != item.arg:
                raise Unsupported(item, f"no sync form is known for the variadic {item.arg}")
            value = ("*" if item is arguments.vararg else "**") + value
        parts.append(f"{named[item.arg]}={value}" if item.arg in named else value)
    return ", ".join(parts)


def without_first(arguments: ast.arguments) -> ast.arguments:
    """The parameters after ``self`` or ``cls``."""
    rest = copy.copy(arguments)
    if rest.posonlyargs:
        rest.posonlyargs = rest.posonlyargs[1:]
    else:
        rest.args = rest.args[1:]
    return rest


def changed(node: ast.FunctionDef, rule: Constructor) -> ast.arguments:
    """The constructor's parameters as its rule has them: one first, the others by keyword."""
    given = node.args
    positional = given.args[1:]
    required: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    rows = dict(zip(positional, [*required, *given.defaults], strict=True))
    rows |= zip(given.kwonlyargs, given.kw_defaults, strict=True)
    by_name = {item.arg: item for item in rows}
    missing = {rule.passed_as, *rule.without} - by_name.keys()
    if missing or given.posonlyargs or given.vararg or given.kwarg:
        raise Unsupported(node, f"its rule does not fit; it lacks {sorted(missing)}")
    for name in rule.without:
        del rows[by_name[name]]
    default = rows.pop(by_name[rule.passed_as])
    return ast.arguments(
        posonlyargs=[],
        args=[given.args[0], ast.arg(rule.first, by_name[rule.passed_as].annotation)],
        defaults=[] if default is None else [default],
        kwonlyargs=list(rows),
        kw_defaults=list(rows.values()),
    )
