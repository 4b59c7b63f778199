"""The compiled gateway messages agree with the contract, field by field."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, MethodOptions
from google.protobuf.json_format import MessageToDict

from prime_sandboxes._proto import command_session_pb2 as pb

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = pb.DESCRIPTOR.package

# Contract schemas whose name is not that of their message with `Pb` in front.
MESSAGE_OF_SCHEMA = {
    "PbPtySize": ["PTY.Size"],
    "PbSelector": ["CommandSessionSelector"],
    "PbSessionEvent": ["CommandSessionEvent"],
    "PbSessionInfo": ["CommandSessionInfo"],
    "PbInput": ["CommandInput"],
    "PbStartEvent": ["CommandSessionEvent.StartEvent"],
    "PbDataEvent": ["CommandSessionEvent.DataEvent"],
    "PbEndEvent": ["CommandSessionEvent.EndEvent"],
    "PbKeepAlive": ["CommandSessionEvent.KeepAlive", "StreamInputRequest.KeepAlive"],
    "PbStreamInputStart": ["StreamInputRequest.StartEvent"],
    "PbStreamInputData": ["StreamInputRequest.DataEvent"],
    "PbEmpty": [
        "UpdateResponse",
        "StreamInputResponse",
        "SendInputResponse",
        "SendSignalResponse",
    ],
}
SCALARS = {
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
}


def load_contract() -> dict[str, Any]:
    """Return the contract the local platform ships, else the shared one it was made from."""
    shipped = ROOT / "tools/prime-local/src/prime_local/contract/sandboxes.json"
    if shipped.is_file():
        return dict(json.loads(shipped.read_text("utf-8")))
    shared = Path(os.environ.get("PRIME_SHARED", ROOT.parent / "shared"))
    return dict(yaml.safe_load((shared / "contract/sandboxes.yaml").read_text("utf-8")))


CONTRACT = load_contract()
SCHEMAS: dict[str, dict[str, Any]] = {
    name: schema
    for name, schema in CONTRACT["components"]["schemas"].items()
    if name.startswith("Pb")
}
PAIRS = [
    (schema, message)
    for schema in SCHEMAS
    for message in MESSAGE_OF_SCHEMA.get(schema, [schema.removeprefix("Pb")])
]
RPCS: list[dict[str, Any]] = [
    item["post"]["x-rpc"] for item in CONTRACT["paths"].values() if "x-rpc" in item.get("post", {})
]


def descriptor(name: str) -> Descriptor:
    """Return the compiled message of a dotted name, without the package."""
    first, *rest = name.split(".")
    found = pb.DESCRIPTOR.message_types_by_name[first]
    for part in rest:
        found = found.nested_types_by_name[part]
    return found


def local_name(full_name: str) -> str:
    return full_name.removeprefix(f"{PACKAGE}.")


def as_proto(message: Descriptor) -> DescriptorProto:
    proto = DescriptorProto()
    message.CopyToProto(proto)
    return proto


def type_words(field: FieldDescriptor) -> str:
    """Return a field's type as the contract writes it, message names in full."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        return f"map<{type_words(key)},{type_words(value)}>"
    if field.message_type is not None:
        base = local_name(field.message_type.full_name)
    elif field.enum_type is not None:
        base = local_name(field.enum_type.full_name)
    else:
        base = SCALARS[field.type]
    assert field.containing_type is not None
    proto = next(p for p in as_proto(field.containing_type).field if p.number == field.number)
    if proto.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"repeated {base}"
    return f"optional {base}" if proto.proto3_optional else base


def test_every_message_of_the_file_stands_in_the_contract() -> None:
    compiled = set()
    pending = list(pb.DESCRIPTOR.message_types_by_name.values())
    while pending:
        message = pending.pop()
        if not message.GetOptions().map_entry:
            compiled.add(local_name(message.full_name))
            pending.extend(message.nested_types)
    assert compiled == {message for _, message in PAIRS}


@pytest.mark.parametrize(("schema", "message"), PAIRS)
def test_fields_have_the_contract_names_numbers_and_types(schema: str, message: str) -> None:
    compiled = {
        field.json_name: (field.number, type_words(field)) for field in descriptor(message).fields
    }
    expected = {}
    for name, spec in SCHEMAS[schema]["properties"].items():
        words = spec["x-proto-type"]
        # Events are nested in the message that carries them.
        if "event" in SCHEMAS[schema].get("x-proto-oneof", {}):
            words = f"{message}.{words}"
        expected[name] = (spec["x-proto-field"], words)
    assert compiled == expected


@pytest.mark.parametrize(("schema", "message"), PAIRS)
def test_oneofs_and_reserved_fields_are_those_of_the_contract(schema: str, message: str) -> None:
    compiled = descriptor(message)
    oneofs = {
        oneof.name: [field.json_name for field in oneof.fields]
        for oneof in compiled.oneofs
        if not oneof.name.startswith("_")
    }
    assert oneofs == SCHEMAS[schema].get("x-proto-oneof", {})

    reserved = SCHEMAS[schema].get("x-proto-reserved", {"numbers": [], "names": []})
    proto = as_proto(compiled)
    numbers = [n for span in proto.reserved_range for n in range(span.start, span.end)]
    assert numbers == reserved["numbers"]
    assert list(proto.reserved_name) == reserved["names"]


def test_signals_have_the_contract_numbers() -> None:
    spec = SCHEMAS["PbSendSignalRequest"]["properties"]["signal"]
    assert dict(pb.Signal.items()) == spec["x-enum-numbers"]


@pytest.mark.parametrize("rpc", RPCS, ids=lambda rpc: str(rpc["method"]))
def test_methods_have_the_contract_messages_and_streams(rpc: dict[str, Any]) -> None:
    service = pb.DESCRIPTOR.services_by_name["CommandSession"]
    assert service.full_name == rpc["service"]
    method = service.methods_by_name[rpc["method"]]
    assert method.input_type.full_name == rpc["request"]
    assert method.output_type.full_name == rpc["response"]
    assert method.client_streaming == rpc["client_streaming"]
    assert method.server_streaming == rpc["server_streaming"]
    is_pure = method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    assert is_pure == (rpc["idempotency"] == "no_side_effects")


def test_the_service_has_every_method_of_the_contract() -> None:
    service = pb.DESCRIPTOR.services_by_name["CommandSession"]
    assert set(service.methods_by_name) == {rpc["method"] for rpc in RPCS}
    assert len(RPCS) == 7


def test_a_negative_exit_code_is_zigzag_encoded() -> None:
    event = pb.CommandSessionEvent.EndEvent(exit_code=-1)
    assert event.SerializeToString() == b"\x08\x01"


def test_stdin_false_is_on_the_wire() -> None:
    assert pb.StartRequest(stdin=False).SerializeToString() == b"\x20\x00"
    assert pb.StartRequest().SerializeToString() == b""


def test_json_names_are_lower_camel_case() -> None:
    message = pb.StartRequest(session_uuid="u")
    assert MessageToDict(message) == {"sessionUuid": "u"}
