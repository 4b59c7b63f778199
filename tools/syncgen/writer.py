"""Writes the sync twin of one module."""

from __future__ import annotations

from syncgen.classes import ClassWriter
from syncgen.docstrings import Docstrings
from syncgen.imports import Imports
from syncgen.problems import Unsupported, collected
from syncgen.reader import Module, parameter_names, read_class
from syncgen.rules import Rules


def sync_source(module: Module, rules: Rules, used: set[str], problems: list[Unsupported]) -> str:
    """The source of the sync twin, unformatted; empty when the module needs none.

    Args:
        module: the async source.
        rules: what the source does not say.
        used: takes the names whose rule was used.
        problems: takes what could not be carried over.
    """
    taken = parameter_names(module.tree) | module.imports.keys() | module.definitions.keys()
    imports = Imports(module, taken)
    docstrings = Docstrings(rules, module.annotations.known, used)
    body = []
    with collected(problems):
        exports = [imports.exported(name) for name in module.exports]
        body.append(f"__all__ = {exports!r}" if exports else "")
    for node in module.classes:
        with collected(problems):
            writer = ClassWriter(module, read_class(module, node), imports, docstrings, problems)
            body.append(writer.text(rules, used))
    with collected(problems):
        body.insert(0, docstrings.literal(module.tree, module.import_path))
        if any(body[1:]):
            body.insert(1, imports.text())
    return "\n\n".join(filter(None, body))
