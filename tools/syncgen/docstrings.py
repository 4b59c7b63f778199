"""Turns the docstrings of async classes into those of their sync twins."""

from __future__ import annotations

import ast
import re
from collections.abc import Set

from syncgen.annotations import ITERATORS, PREFIX
from syncgen.problems import Unsupported
from syncgen.rules import Constructor, Rules

LEFT_OVER = re.compile(
    r"\b(?:async|await|asyncio)\b|\bAsync[A-Z]\w*|\b__a(?:enter|exit|iter|next)__"
)


class Docstrings:
    """Args:
    rules: passages to replace.
    known: names of all async classes of the run.
    used: takes the names of the documented things whose rule was used.
    """

    def __init__(self, rules: Rules, known: Set[str], used: set[str]) -> None:
        self._rules = rules
        self._known = known
        self._used = used

    def literal(
        self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
    ) -> str:
        """The sync docstring as source text on its own lines, or nothing when there is none.

        Args:
            node: what it documents.
            name: its qualified name, as rules give it.
        """
        text = ast.get_docstring(node) or ""
        constructor = self._rules.constructors.get(name.removesuffix(".__init__"))
        if constructor:
            text = _changed(text, constructor)
        for replacement in self._rules.texts.get(name, ()):
            if replacement.old not in text:
                raise Unsupported(node, f"the docstring of {name} lacks {replacement.old!r}")
            self._used.add(name)
            text = text.replace(replacement.old, replacement.new)
        text = self._sync(text)
        left = LEFT_OVER.search(text)
        if left:
            raise Unsupported(node, f"{left[0]!r} in the docstring of {name}: needs a rule")
        return _quoted(text)

    def _sync(self, text: str) -> str:
        text = re.sub(rf"\b{PREFIX}[A-Z]\w*", lambda match: self._sync_name(match[0]), text)
        text = re.sub(r"\basync (?=(?:with|for|iterator|iterable)\b)", "", text)
        text = re.sub(r"\bawait (?=[A-Za-z_][\w.]*[(\[])", "", text)
        return re.sub(r"\baclose\b", "close", text)

    def _sync_name(self, name: str) -> str:
        if name in self._known:
            return name.removeprefix(PREFIX)
        return ITERATORS.get(name, name)


def _changed(text: str, rule: Constructor) -> str:
    """Leaves out the arguments that the sync constructor lacks, and renames the first."""
    for gone in rule.without:
        text = re.sub(rf"^    {gone}: .*\n(?:     .*\n?)*", "", text, flags=re.MULTILINE)
    return re.sub(rf"^    {rule.passed_as}: ", f"    {rule.first}: ", text, flags=re.MULTILINE)


def _quoted(text: str) -> str:
    if not text:
        return ""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = text.splitlines()
    ending = '"""' if len(lines) == 1 and not text.endswith('"') else '\n"""'
    return f'"""{text}{ending}'
