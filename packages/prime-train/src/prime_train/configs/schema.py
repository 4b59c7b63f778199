"""Checks a config's keys, words and types against the typed sections."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated, get_args, get_origin

from pydantic import ValidationError

from prime_train.configs.composition import Composition
from prime_train.configs.sections.base import Known, Section
from prime_train.configs.sections.rl import RLConfig
from prime_train.configs.sections.sft import SFTConfig
from prime_train.configs.values import KeyPath, Table, Value, look_up, unsendable, with_nulls
from prime_train.errors import ConfigIssue

__all__ = ["suggestion", "validate"]


def validate(
    model: type[RLConfig] | type[SFTConfig], composition: Composition, *, strict: bool
) -> tuple[RLConfig | SFTConfig | None, list[ConfigIssue]]:
    """Read a config as a typed one; return it, or `None`, and all there is to say of it.

    Args:
        model: the config's class.
        composition: the config.
        strict: unknown keys and words are errors, not warnings.
    """
    table = with_nulls(composition.table)
    issues = [composition.issue(path, message) for path, message in unsendable(table)]
    issues += [
        composition.issue(path, message, error=strict) for path, message in _strange(model, table)
    ]
    try:
        settings = model.model_validate(table)
    except ValidationError as error:
        return None, issues + _type_issues(error, composition, table)
    return settings, issues


def suggestion(word: str, known: Iterable[str]) -> str:
    """Say what may have been meant, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _type_issues(
    error: ValidationError, composition: Composition, table: Table
) -> list[ConfigIssue]:
    """One issue per key; the alternatives of a union each say what they expected."""
    found: list[tuple[KeyPath, str]] = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        _, steps = look_up(table, detail["loc"])
        found.append((detail["loc"][:steps], detail["msg"]))
    found.sort(key=lambda item: [str(part) for part in item[0]])
    return [
        composition.issue(path, " or: ".join(dict.fromkeys(message for _, message in group)))
        for path, group in groupby(found, key=lambda item: item[0])
    ]


def _strange(
    model: type[Section], table: Table, path: KeyPath = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Yield keys and words that the documentation does not have."""
    fields = model.model_fields
    for key, value in table.items():
        place = (*path, key)
        if key in fields:
            field = fields[key]
            yield from _strange_value([field.annotation, *field.metadata], value, place)
        elif not model.is_open:
            yield place, f"is not a documented key{suggestion(key, fields)}"
    yield from _of_another_variant(model, table, path)


def _strange_value(
    annotations: Iterable[object], value: Value, path: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    parts = [part for annotation in annotations for part in _flattened(annotation)]
    if isinstance(value, list):
        inner = [part for part in parts if get_origin(part) is list]
        for index, element in enumerate(value):
            yield from _strange_value(_arguments(inner, 0), element, (*path, index))
    elif isinstance(value, dict):
        for part in parts:
            if get_origin(part) is None and isinstance(part, type) and issubclass(part, Section):
                yield from _strange(part, value, path)
        inner = [part for part in parts if get_origin(part) is dict]
        for key, element in value.items() if inner else ():
            yield from _strange_value(_arguments(inner, 1), element, (*path, key))
    elif isinstance(value, str):
        words = _known_words(parts)
        if words and value not in words:
            known = ", ".join(words)
            yield path, f"is none of the documented words: {known}{suggestion(value, words)}"


def _of_another_variant(
    model: type[Section], table: Table, path: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    if not model.variants:
        return
    chosen = table.get("type")
    if chosen is None and not any(isinstance(part, int) for part in path):
        # What stands in a list may take its type from its group.
        chosen = model.model_fields["type"].default
    if chosen not in _known_words(_flattened(model.model_fields["type"].annotation)):
        return
    for key in table:
        owner = model.variants.get(key, chosen)
        if owner != chosen:
            yield (*path, key), f'goes with type = "{owner}" alone'


def _flattened(annotation: object) -> Iterator[object]:
    """The alternatives of an annotation, and what annotates them."""
    origin = get_origin(annotation)
    if annotation is None or annotation is type(None):
        return
    if origin is Annotated:
        for part in get_args(annotation):
            yield from _flattened(part)
    elif origin is None or origin in (list, dict):
        yield annotation
    else:
        for part in get_args(annotation):
            yield from _flattened(part)


def _known_words(parts: Iterable[object]) -> list[str]:
    return [word for part in parts if isinstance(part, Known) for word in part.words]


def _arguments(generics: Iterable[object], position: int) -> list[object]:
    return [get_args(generic)[position] for generic in generics]
