"""Configs laid over one another, with the place that each value comes from.

Follows the page "prime-rl/configuration", "TOML Composition" and "CLI Overrides".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from math import isfinite
from pathlib import Path
from typing import TypeAlias, cast

from prime_train.configs.positions import find_lines, split_key
from prime_train.configs.toml import TomlError, parse_toml
from prime_train.configs.values import DISABLED, KeyPath, Table, Value, dotted
from prime_train.errors import ConfigIssue, InvalidConfigError

__all__ = ["Composition", "ConfigSource", "compose", "merged", "parse_override"]

ConfigSource: TypeAlias = str | os.PathLike[str] | Mapping[str, object]
"""A TOML file, or the same as nested mappings."""

OVERRIDE = "override"
MAX_DEPTH = 64


@dataclass(frozen=True)
class _Layer:
    """One source: its name, where its keys stand, and the folder its paths are relative to."""

    name: str | None
    lines: Mapping[KeyPath, int | None]
    folder: Path = field(default_factory=Path)


@dataclass(frozen=True)
class Composition:
    """All sources as one table.

    Attributes:
        table: the values; later sources win.
    """

    table: Table
    _layers: tuple[_Layer, ...] = ()

    def issue(
        self, path: KeyPath, message: str, *, error: bool = True, near: KeyPath = ()
    ) -> ConfigIssue:
        """Make an issue that points at a key; at the table it is missing in when there is none.

        Args:
            path: the key.
            message: what is wrong.
            error: whether it stops a dispatch.
            near: where to point when nothing on the path exists.
        """
        places = [path[:length] for length in range(len(path), 0, -1)] + [near]
        file, line = next(filter(None, map(self._position, places)), self._start())
        return ConfigIssue(message, dotted(path), file, line, "error" if error else "warning")

    def _position(self, path: KeyPath) -> tuple[str | None, int | None] | None:
        layer = self._layer(path)
        return (layer.name, layer.lines[path]) if layer else None

    def _start(self) -> tuple[str | None, int | None]:
        file = next((layer.name for layer in self._layers), None)
        return file, 1 if file not in (None, OVERRIDE) else None

    def folder(self, path: KeyPath) -> Path:
        """The folder that a path written at a key is relative to."""
        layer = self._layer(path)
        return layer.folder if layer else Path()

    def without(self, *keys: str) -> Composition:
        """The same without some top-level keys."""
        table = {key: value for key, value in self.table.items() if key not in keys}
        return Composition(table, self._layers)

    def replaced(self, key: str, value: Value) -> Composition:
        """The same with another value of a top-level key."""
        return Composition({**self.table, key: value}, self._layers)

    def _layer(self, path: KeyPath) -> _Layer | None:
        return next((layer for layer in reversed(self._layers) if path in layer.lines), None)


def compose(sources: Sequence[ConfigSource], overrides: Sequence[str] = ()) -> Composition:
    """Lay sources over one another, later ones on top, then overrides.

    Tables merge; lists and all other values are replaced.

    Raises:
        InvalidConfigError: a file can't be read or is not TOML, or an override is malformed.
    """
    table: Table = {}
    layers: list[_Layer] = []
    for source in sources:
        content, layer = _read(source)
        table = merged(table, content)
        layers.append(layer)
    for text in overrides:
        parts, value = parse_override(text)
        before = table
        table, path = _override(table, parts, value)
        places = [*_made_tables(before, path), path, *_paths(value, path)]
        layers.append(_Layer(OVERRIDE, dict.fromkeys(places)))
    return Composition(table, tuple(layers))


def merged(base: Mapping[str, Value], overlay: Mapping[str, Value]) -> Table:
    """Lay one table over another; neither is changed."""
    result = dict(base)
    for key, value in overlay.items():
        result[key] = _merged_value(result.get(key), value)
    return result


def _merged_value(base: Value, overlay: Value) -> Value:
    if isinstance(base, dict) and isinstance(overlay, dict):
        return merged(base, overlay)
    return overlay


def parse_override(text: str) -> tuple[tuple[str, ...], Value]:
    """Split ``dotted.key=value``. The value is TOML or JSON; anything else is a string.

    Raises:
        InvalidConfigError: there is no key, or no ``=``.
    """
    name, equals, value = text.partition("=")
    parts = split_key(name.strip())
    if not equals or parts is None or len(parts) > MAX_DEPTH:
        # Not quoted: what stands there may be a value, and a secret.
        raise InvalidConfigError(
            [ConfigIssue("an override is written as dotted.key=value", file=OVERRIDE)]
        )
    return parts, _override_value(value.strip())


def _override_value(text: str) -> Value:
    try:
        return _plain(_toml_or_json(text))
    except (ValueError, RecursionError):
        return text


def _toml_or_json(text: str) -> object:
    try:
        table = parse_toml(f"value = {text}")
    except TomlError:
        return json.loads(text, parse_constant=str) if text.startswith(("{", "[", '"')) else text
    found = table.pop("value")
    unwanted = isinstance(found, (date, time)) or (isinstance(found, float) and not isfinite(found))
    # A line break could have brought in more keys.
    return text if table or unwanted else found


def _override(table: Table, parts: tuple[str, ...], value: Value) -> tuple[Table, KeyPath]:
    try:
        result, path = _set(table, parts, value)
    except IndexError:
        issue = ConfigIssue("the list has no such element", ".".join(parts), OVERRIDE)
        raise InvalidConfigError([issue]) from None
    return cast(Table, result), path


def _set(base: Value, parts: tuple[str, ...], value: Value) -> tuple[Value, KeyPath]:
    """Set what a path leads to in a copy; numbers lead into the lists that there are."""
    if not parts:
        return _merged_value(base, value), ()
    first, *others = parts
    if isinstance(base, list) and first.isdecimal():
        index = int(first)
        inner, path = _set(base[index], tuple(others), value)
        return [*base[:index], inner, *base[index + 1 :]], (index, *path)
    table = base if isinstance(base, dict) else {}
    inner, path = _set(table.get(first), tuple(others), value)
    return {**table, first: inner}, (first, *path)


def _made_tables(base: Value, path: KeyPath) -> list[KeyPath]:
    """The places on the way to an overridden one that were values or nothing before."""
    for length, part in enumerate(path):
        if isinstance(base, dict) and isinstance(part, str):
            base = base.get(part)
        elif isinstance(base, list) and isinstance(part, int):
            base = base[part]
        else:
            return [path[:made] for made in range(max(length, 1), len(path))]
    return []


def _read(source: ConfigSource) -> tuple[Table, _Layer]:
    if isinstance(source, Mapping):
        try:
            table = _plain_table(source)
        except TomlError as error:
            raise InvalidConfigError([ConfigIssue(str(error))]) from None
        return table, _Layer(None, dict.fromkeys(_paths(table)))
    path = Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = _plain_table(parse_toml(text))
    except UnicodeDecodeError:
        raise InvalidConfigError([ConfigIssue("is not UTF-8 text", file=str(path))]) from None
    except TomlError as error:
        issue = ConfigIssue(str(error), "", str(path), error.line)
        raise InvalidConfigError([issue]) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        issue = ConfigIssue(f"can't be read: {reason}", file=str(path))
        raise InvalidConfigError([issue]) from None
    return table, _Layer(str(path), find_lines(text), path.parent)


def _plain_table(source: Mapping[str, object], depth: int = 0) -> Table:
    """Copy a caller's mapping, so that what is changed there later changes nothing here.

    Raises:
        TomlError: it is nested so deeply that what follows could not walk through it.
    """
    table: Table = {}
    for key, value in source.items():
        if not isinstance(key, str):
            raise TypeError(f"keys of a config are strings, not {type(key).__name__}")
        table[key] = _plain(value, depth + 1)
    return table


def _plain(value: object, depth: int = 0) -> Value:
    if depth > MAX_DEPTH:
        raise TomlError("is nested too deeply")
    if isinstance(value, Mapping):
        return _plain_table(value, depth)
    if isinstance(value, (list, tuple)):
        return [_plain(element, depth + 1) for element in value]
    return DISABLED if value is None else cast(Value, value)


def _paths(value: Value, path: KeyPath = ()) -> list[KeyPath]:
    """All paths below a value."""
    inner: list[tuple[KeyPath, Value]] = []
    if isinstance(value, dict):
        inner = [((*path, key), part) for key, part in value.items()]
    elif isinstance(value, list):
        inner = [((*path, index), part) for index, part in enumerate(value)]
    return [found for place, part in inner for found in (place, *_paths(part, place))]
