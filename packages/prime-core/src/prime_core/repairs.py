"""Answers that one odd field would spoil, where losing them costs more than that field."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel
from pydantic import ValidationError as InvalidData

__all__ = ["ODD_NAMES", "repaired", "repaired_data"]

M = TypeVar("M", bound=BaseModel)
_Steps: TypeAlias = list[tuple[Any, Any]]  # a container and the key or number in it

# An unknown field is set on its `ResponsePart`: one called ``__class__``, for one, can't be.
ODD_NAMES = (AttributeError, TypeError)

# Each round leaves something out; an answer with more that is odd is none.
ROUNDS = 10


def repaired(model: type[M], text: str) -> M | None:
    """Reads what was not valid as it stands without the fields that are odd.

    Args:
        model: what to read; see ``ResponseModel.essential``.
        text: JSON.

    Returns:
        The model; None when it can't be read, or is not to be.
    """
    if getattr(model, "essential", None) is None:
        return None
    try:
        data = _without_halves(json.loads(text, parse_float=_finite, parse_constant=str))
    except (ValueError, RecursionError):
        return None
    return repaired_data(model, data)


def repaired_data(model: type[M], data: object) -> M | None:
    """Does so for what has been parsed; it is changed."""
    essential: frozenset[str] = getattr(model, "essential", None) or frozenset()
    left_out: dict[str, object] = {}
    for _ in range(ROUNDS):
        try:
            item = model.model_validate(data)
        except InvalidData as error:
            if not _mend(data, error, essential, left_out):
                return None
        except ODD_NAMES:
            return None
        else:
            if left_out and item.model_extra is not None:
                before = item.model_extra.get("unreadable")
                known = before if isinstance(before, dict) else {}
                item.model_extra["unreadable"] = {**known, **left_out}
            return item
    return None


def _mend(
    data: object, error: InvalidData, essential: frozenset[str], left_out: dict[str, object]
) -> bool:
    """Changes the first thing that is odd; False when that can't be."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    kind, place = problems[0]["type"], problems[0]["loc"]
    if kind == "missing" and place[-1] in essential:
        return False
    steps = _steps_to(data, place)
    if kind == "string_type" and _join_parts(steps, left_out):
        return True
    return _leave_out(steps, essential, left_out)


def _steps_to(data: object, place: tuple[int | str, ...]) -> _Steps:
    """The way to a place, without what is missing and without the names of a union's members."""
    steps: _Steps = []
    for key in place:
        container: Any = data
        if (isinstance(data, dict) and key in data) or (
            isinstance(data, list) and isinstance(key, int) and key < len(data)
        ):
            steps.append((container, key))
            data = container[key]
    return steps


def _leave_out(steps: _Steps, essential: frozenset[str], left_out: dict[str, object]) -> bool:
    """Leaves out the innermost field of a place that is not essential."""
    for number in range(len(steps) - 1, -1, -1):
        container, key = steps[number]
        if isinstance(container, dict) and (key not in essential or container[key] is None):
            left_out[_name(steps[: number + 1])] = container.pop(key)
            return True
    return False


def _join_parts(steps: _Steps, left_out: dict[str, object]) -> bool:
    """Makes a text of one that comes in parts, as messages have it."""
    if not steps:
        return False
    container, key = steps[-1]
    parts = container[key]
    if not isinstance(parts, list) or not all(
        isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts
    ):
        return False
    left_out[_name(steps)] = parts
    container[key] = "".join(part["text"] for part in parts)
    return True


def _name(steps: _Steps) -> str:
    return ".".join(str(key) for _, key in steps)


def _finite(text: str) -> float | str:
    """A number; one that is none for us, such as 1e400, stays text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _without_halves(value: object) -> object:
    """The value with U+FFFD for halves of characters, which no text may hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    if isinstance(value, dict):
        return {_without_halves(key): _without_halves(item) for key, item in value.items()}
    return value
