"""An instance of anything that the packages define, made from what its annotations say."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import types
from datetime import datetime, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from discovery import classes
from pydantic import BaseModel, JsonValue, SecretStr
from pydantic.dataclasses import is_pydantic_dataclass, rebuild_dataclass
from pydantic.fields import FieldInfo

from prime_core.sync import Facade

__all__ = ["sample"]

PLAIN: dict[object, object] = {
    str: "text",
    int: 3,
    float: 1.5,
    bool: True,
    bytes: b"bytes",
    object: "anything",
    Any: "anything",
    datetime: datetime(2027, 1, 15, 8, tzinfo=timezone.utc),
    SecretStr: SecretStr("hidden"),
    Decimal: Decimal("0.10"),
    JsonValue: {"any": ["json", 1]},
    BaseException: ValueError("why"),
}
SEQUENCES = (list, collections.abc.Sequence, collections.abc.Iterable)
MAPPINGS = (dict, collections.abc.Mapping)


def sample(kind: Any) -> Any:
    """A value of a type, with every optional part filled in.

    Raises:
        TypeError: a type that is not known here yet.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if isinstance(kind, TypeVar):
        return "anything"
    if origin is Annotated:
        return sample(arguments[0])
    if origin in (Union, types.UnionType):
        return sample(next(choice for choice in arguments if choice is not type(None)))
    if origin is Literal:
        return arguments[0]
    if origin in SEQUENCES:
        return [sample(arguments[0])]
    if origin is tuple:
        return tuple(sample(item) for item in arguments if item is not ...)
    if origin in MAPPINGS:
        return {sample(arguments[0]): sample(arguments[1])}
    if isinstance(kind, type):
        return _instance(kind)
    raise TypeError(f"no sample of {kind!r} is known")


def _instance(cls: type[Any]) -> Any:
    if issubclass(cls, enum.Enum):
        return next(iter(cls))
    if issubclass(cls, BaseModel):
        # Unchecked: what is tested is not whether the values make sense together.
        return cls.model_construct(**_fields(cls.model_fields))
    if is_pydantic_dataclass(cls):
        rebuild_dataclass(cls)  # built when first needed, as models are
        return cls(**_fields(cls.__pydantic_fields__))
    if issubclass(cls, str):
        return cls("text")
    if issubclass(cls, Facade):
        asynchronous = classes()[_async_twin(cls)]
        return cls._wrap(sample(asynchronous))
    return cls(**_arguments(cls))


def _fields(fields: dict[str, FieldInfo]) -> dict[str, Any]:
    return {name: sample(field.annotation) for name, field in fields.items()}


def _async_twin(cls: type[Any]) -> str:
    return f"{cls.__module__.replace('._sync.', '._async.')}.Async{cls.__name__}"


def _arguments(cls: type[Any]) -> dict[str, Any]:
    """What a class is made from; an optional argument only where it is data."""
    known = {name.rpartition(".")[2]: found for name, found in classes().items()}
    hints = get_type_hints(cls.__init__, localns=known, include_extras=True)
    data = dataclasses.is_dataclass(cls) or issubclass(cls, BaseException)
    return {
        name: sample(hints[name])
        for name, parameter in inspect.signature(cls.__init__).parameters.items()
        if name != "self"
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (data or parameter.default is parameter.empty)
    }
