"""Bases of the pydantic models of every package.

A request refuses unknown fields and says exactly what its caller said; a response accepts what a
newer server adds. Models hold data only: what acts on them lives in the clients.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import fields
from datetime import datetime, timezone
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.main import IncEx
from pydantic_core import SchemaSerializer

__all__ = [
    "OpenEnum",
    "RequestModel",
    "ResponseModel",
    "ResponsePart",
    "SentSecret",
    "StrEnum",
    "UtcDatetime",
    "encode_request",
]


class StrEnum(str, Enum):
    """An enum whose members are their wire words: they compare, print and format as plain text.

    Stands in for `enum.StrEnum`, which Python 3.10 lacks.
    """

    def __str__(self) -> str:
        return str.__str__(self)


_E = TypeVar("_E", bound=Enum)

OpenEnum: TypeAlias = Annotated[_E | str, Field(union_mode="left_to_right")]
"""`OpenEnum[Colour]` reads a known word as a member and keeps any other as a plain `str`."""


def _assume_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value


UtcDatetime: TypeAlias = Annotated[datetime, AfterValidator(_assume_utc)]
"""An aware datetime; a time stamp without a zone reads as UTC, other offsets are kept."""


SentSecret: TypeAlias = Annotated[
    SecretStr, PlainSerializer(lambda secret: secret.get_secret_value(), when_used="json")
]
"""A secret of a request: hidden wherever it is shown, and sent as it is."""


class RequestModel(BaseModel):
    """Base of request bodies: unknown fields are refused, only what was set is sent.

    Fields are accepted by attribute name and by wire name. `encode_request` makes the JSON.

    A subclass may declare:
        always_sent: fields whose default goes on the wire too. List a default here when the
            server's own may differ, or when it is mutable: appending to it does not mark it as
            set.
        omits_null: `None` leaves a field out, for bodies in which null is not allowed.
    """

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        defer_build=True,
        hide_input_in_errors=True,
    )

    always_sent: ClassVar[frozenset[str]] = frozenset()
    omits_null: ClassVar[bool] = False

    def model_post_init(self, context: object, /) -> None:
        self.model_fields_set.update(self.always_sent)


class ResponseModel(BaseModel):
    """Base of replies: unknown fields are kept as attributes, both spellings are read.

    Validation errors do not quote the reply, which may hold a token.

    A subclass may declare:
        essential: the reply is paid for, so that an odd field does not spoil it: what can't be
            read is left out, and kept in the extra field ``unreadable`` by its place. Fields of
            these names are what it is about, and are never left out. An error in it is raised,
            whatever its status says.
    """

    essential: ClassVar[frozenset[str] | None] = None

    model_config = ConfigDict(
        extra="allow",
        populate_by_name=True,
        defer_build=True,
        hide_input_in_errors=True,
    )


class ResponsePart:
    """Base of the inner parts of replies of which thousands are held at once: chunks of streams.

    A subclass is a ``@dataclass(slots=True, kw_only=True, repr=False, eq=False)`` of pydantic's.
    As with `ResponseModel`, what a newer server adds is accepted. It has a third of the objects
    that a model consists of; the garbage collector, which goes through all of them again and
    again, took a quarter of the CPU time of 2,000 streams with models. The price: null and a field
    that was not sent are one, and an unknown field is included or excluded whole.
    """

    __slots__ = ("__dict__", "__weakref__")  # the unknown fields; made when asked for
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", defer_build=True, hide_input_in_errors=True
    )
    __pydantic_serializer__: ClassVar[SchemaSerializer]

    @property
    def model_extra(self) -> dict[str, Any]:
        """The unknown fields."""
        return self.__dict__

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: IncEx | None = None,
        exclude: IncEx | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """All fields as a dict.

        Args:
            mode: ``json`` for values that JSON has.
            include: only these fields.
            exclude: all but these fields.
            exclude_unset: as ``exclude_none``.
            exclude_defaults: leave out what has its default.
            exclude_none: leave out what is None.
        """
        dumped: dict[str, Any] = self.__pydantic_serializer__.to_python(
            self,
            mode=mode,
            include=include,
            exclude=exclude,
            exclude_unset=exclude_unset,
            exclude_defaults=exclude_defaults,
            exclude_none=exclude_none,
        )
        return dumped

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: IncEx | None = None,
        exclude: IncEx | None = None,
        exclude_unset: bool = False,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> str:
        """All fields as JSON.

        Args:
            indent: blanks of a level; all in one line without it.
            include: as for `model_dump`.
            exclude: as for `model_dump`.
            exclude_unset: as for `model_dump`.
            exclude_defaults: as for `model_dump`.
            exclude_none: as for `model_dump`.
        """
        return self.__pydantic_serializer__.to_json(
            self,
            indent=indent,
            include=include,
            exclude=exclude,
            exclude_unset=exclude_unset,
            exclude_defaults=exclude_defaults,
            exclude_none=exclude_none,
        ).decode()

    @model_serializer(mode="wrap")
    def _dump(
        self, handler: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        for name, value in self.__dict__.items():
            if (info.include is None or name in info.include) and name not in (info.exclude or ()):
                dumped[name] = value
        if info.exclude_unset or info.exclude_none:
            return {name: value for name, value in dumped.items() if value is not None}
        return dumped

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _values(self) == _values(other)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in _values(self).items())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> Iterable[tuple[str, object]]:
        return _values(self).items()


def _values(part: ResponsePart) -> dict[str, object]:
    known = {item.name: getattr(part, item.name) for item in fields(cast(Any, part))}
    return {**known, **part.__dict__}


class RequestBody(bytes):
    """A request's bytes, whose repr shows none of them: they may hold a sandbox's secrets."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


def encode_request(request: RequestModel, *, exclude: AbstractSet[str] = frozenset()) -> bytes:
    """Return the JSON body of a request, under wire names.

    Args:
        request: the model to send. A field that was never set is left out, a field set to `None`
            is sent as null, within what its class declares.
        exclude: attribute names to leave out, such as those the transport places itself.

    Returns:
        UTF-8 JSON without white space.
    """
    fields = request.model_fields_set
    left_out = fields & exclude
    if request.omits_null:
        left_out |= {name for name in fields if getattr(request, name) is None}
    # An empty set costs pydantic more than None.
    text = request.model_dump_json(by_alias=True, exclude_unset=True, exclude=left_out or None)
    return RequestBody(text.encode())
