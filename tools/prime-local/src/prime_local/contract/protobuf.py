"""Protobuf messages of the gateway, built at run time from the contract's `x-proto-*` notes.

The server reads field numbers from the contract and not from the client's generated code, so that
a wrong number in either shows up as a failing exchange.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from prime_local.contract.document import Contract, JsonObject

PACKAGE = "command_session"

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "uint32": _Field.TYPE_UINT32,
    "sint32": _Field.TYPE_SINT32,
}


class CommandMessages:
    """Message classes of the package `command_session`, by message name."""

    def __init__(self, contract: Contract) -> None:
        schemas = contract.documents["sandboxes"]["components"]["schemas"]
        self._schemas: dict[str, JsonObject] = {
            name: schema for name, schema in schemas.items() if name.startswith("Pb")
        }
        self._names = _message_names(self._schemas)
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3"
        )
        for schema_name, schema in self._schemas.items():
            self._add_message(file, self._names[schema_name], schema)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        self._classes: dict[str, type[Message]] = {}
        for name in self._names.values():
            descriptor = pool.FindMessageTypeByName(f"{PACKAGE}.{name}")
            self._classes[name] = message_factory.GetMessageClass(descriptor)

    def new(self, name: str, **fields: object) -> Any:
        """Make a message, e.g. `new("StartEvent", pid=1)`; its fields follow the contract."""
        return self._classes[name](**fields)

    def _add_message(
        self, file: descriptor_pb2.FileDescriptorProto, name: str, schema: JsonObject
    ) -> None:
        message = file.message_type.add(name=name)
        oneof_of = {}
        for index, (oneof, members) in enumerate(schema.get("x-proto-oneof", {}).items()):
            message.oneof_decl.add(name=oneof)
            oneof_of.update(dict.fromkeys(members, index))
        for json_name, prop in schema["properties"].items():
            field = message.field.add(
                name=_snake(json_name),
                json_name=json_name,
                number=prop["x-proto-field"],
                label=_Field.LABEL_OPTIONAL,
            )
            if json_name in oneof_of:
                field.oneof_index = oneof_of[json_name]
            self._set_type(file, message, field, prop)
        _add_presence_oneofs(message)
        reserved = schema.get("x-proto-reserved", {})
        for number in reserved.get("numbers", ()):
            message.reserved_range.add(start=number, end=number + 1)
        message.reserved_name.extend(reserved.get("names", ()))

    def _set_type(
        self,
        file: descriptor_pb2.FileDescriptorProto,
        message: descriptor_pb2.DescriptorProto,
        field: descriptor_pb2.FieldDescriptorProto,
        prop: JsonObject,
    ) -> None:
        kind: str = prop["x-proto-type"]
        if kind.startswith("optional "):
            field.proto3_optional = True
        if kind.startswith("repeated "):
            field.label = _Field.LABEL_REPEATED
        kind = kind.removeprefix("optional ").removeprefix("repeated ")
        if kind == "map<string,string>":
            entry = _add_map_entry(message, field.name)
            field.label = _Field.LABEL_REPEATED
            field.type = _Field.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{message.name}.{entry}"
        elif kind in _SCALARS:
            field.type = _SCALARS[kind]
        elif "x-enum-numbers" in prop:
            _add_enum(file, kind, prop["x-enum-numbers"])
            field.type = _Field.TYPE_ENUM
            field.type_name = f".{PACKAGE}.{kind}"
        else:
            field.type = _Field.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{self._names[_referenced_schema(prop)]}"


def _message_names(schemas: dict[str, JsonObject]) -> dict[str, str]:
    """Name each schema's message as its users do, or after the schema where two would clash."""
    claims: dict[str, set[str]] = defaultdict(set)
    for schema in schemas.values():
        for prop in schema["properties"].values():
            kind = prop["x-proto-type"].removeprefix("optional ").removeprefix("repeated ")
            target = _referenced_schema(prop)
            if target and kind.isidentifier():
                claims[kind].add(target)
    names = {name: name.removeprefix("Pb") for name in schemas}
    for kind, claimed in claims.items():
        if len(claimed) == 1:
            names[claimed.pop()] = kind
    return names


def _referenced_schema(prop: JsonObject) -> str:
    holder = prop.get("items", prop)
    reference: str = holder.get("allOf", [holder])[0].get("$ref", "")
    return reference.rpartition("/")[2]


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _add_presence_oneofs(message: descriptor_pb2.DescriptorProto) -> None:
    """Give each proto3 `optional` field its own oneof; these must follow the real ones."""
    for field in message.field:
        if field.proto3_optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")


def _add_map_entry(message: descriptor_pb2.DescriptorProto, field_name: str) -> str:
    entry = message.nested_type.add(name=f"{field_name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    for number, name in ((1, "key"), (2, "value")):
        entry.field.add(
            name=name, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING
        )
    return entry.name


def _add_enum(file: descriptor_pb2.FileDescriptorProto, name: str, numbers: dict[str, int]) -> None:
    enum = file.enum_type.add(name=name)
    for value_name, number in numbers.items():
        enum.value.add(name=value_name, number=number)
