"""Values that fit a JSON schema, as a model with structured output makes them up."""

from __future__ import annotations

import math
from typing import Any

from prime_local.contract.document import JsonObject
from prime_local.inference.text import Writer

_FULL_DEPTH = 3
_MAX_DEPTH = 8
_MAX_VALUES = 5_000  # lists of lists grow quickly
_RANGE = 100


class Sampler:
    """Makes up values.

    Args:
        schema: the outermost schema, which local references point into.
        writer: makes up their words and numbers.
        word: what the first text is to be; None to make it up.
    """

    def __init__(self, schema: JsonObject, writer: Writer, word: str | None = None) -> None:
        self._root = schema
        self._writer = writer
        self._word = word
        self._left = _MAX_VALUES

    def sample(self) -> Any:
        """Return a value."""
        return self._value(self._root, 0)

    def _value(self, schema: Any, depth: int) -> Any:
        self._left -= 1
        if not isinstance(schema, dict) or depth > _MAX_DEPTH or self._left < 0:
            return None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return schema["enum"][self._writer.number(0, len(schema["enum"]) - 1)]
        for name in ("anyOf", "oneOf"):
            if schema.get(name):
                return self._value(schema[name][0], depth + 1)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kind = kind[0] if isinstance(kind, list) and kind else kind
        if kind == "object":
            properties = schema.get("properties") or {}
            # Further in, only what must be there: schemas of trees refer to themselves.
            names = properties if depth < _FULL_DEPTH else schema.get("required", ())
            return {name: self._value(properties.get(name), depth + 1) for name in names}
        if kind == "array":
            count = min(max(1, schema.get("minItems", 1)), max(1, self._left))
            return [self._value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            return self._number(schema)
        if kind == "boolean":
            return self._writer.number(0, 1) == 1
        return None if kind == "null" else self._text()

    def _number(self, schema: JsonObject) -> int:
        least, most = schema.get("minimum"), schema.get("maximum")
        highest = None if most is None else math.floor(most)
        lowest = math.ceil(least) if least is not None else min(0, highest or 0)
        return self._writer.number(
            lowest, max(lowest, lowest + _RANGE if highest is None else highest)
        )

    def _resolved(self, schema: JsonObject) -> JsonObject:
        """Follow a reference into the outermost schema, and merge the parts of an `allOf`."""
        target: Any = schema
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target = self._root
            for part in reference.lstrip("#/").split("/"):
                target = target.get(part, {}) if part and isinstance(target, dict) else target
        merged: JsonObject = {}
        for part in target.get("allOf") or ():
            merged.update(part)
        return {**target, **merged}

    def _text(self) -> str:
        word, self._word = self._word, None
        return word or self._writer.word()
