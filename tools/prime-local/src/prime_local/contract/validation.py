"""Checks of requests and of our own answers against the contract's schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from prime_local.contract.document import Contract, JsonObject, Operation

_DOCUMENT = "urn:contract:"


@dataclass(frozen=True)
class Problem:
    """One way in which a request or an answer departs from the contract."""

    loc: tuple[str | int, ...]
    msg: str
    type: str

    @property
    def text(self) -> str:
        """Place and problem in one line."""
        return f"{'.'.join(map(str, self.loc))}: {self.msg}"

    def to_wire(self) -> JsonObject:
        """Return the form that a 422 answer lists under `detail`."""
        return {"loc": list(self.loc), "msg": self.msg, "type": self.type}


class QueryValues:
    """Query values by name, repeated keys kept."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str] | None:
        return self._values.get(name)


class ContractChecks:
    """Validators of one contract, compiled when first needed and kept."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._registry = jsonschema_rs.Registry(
            [
                (_DOCUMENT + area, {"components": document["components"]})
                for area, document in contract.documents.items()
            ]
        )
        self._validators: dict[tuple[str, ...], jsonschema_rs.Validator | None] = {}

    def parameters(
        self, operation: Operation, query: QueryValues, path: Mapping[str, str]
    ) -> tuple[JsonObject, list[Problem]]:
        """Read path and query parameters.

        Returns the values by name, defaults included, and every problem found. Parameters that
        the contract does not name are ignored, as are headers.
        """
        values: JsonObject = {}
        problems: list[Problem] = []
        for declared in operation.spec["parameters"]:
            parameter = self._contract.resolve(declared, operation.area)
            name, place = parameter["name"], parameter["in"]
            if place not in ("query", "path"):
                continue
            schema = self._contract.resolve(parameter["schema"], operation.area)
            given = [path[name]] if place == "path" else query.all(name)
            if given is None:
                if parameter.get("required"):
                    problems.append(Problem((place, name), "Field required", "missing"))
                elif "default" in schema:
                    values[name] = schema["default"]
                continue
            value = _read_text(given, schema)
            validator = self._validator(operation, (place, name), parameter["schema"])
            problems += _problems(validator, value, (place, name))
            values[name] = value
        return values, problems

    def body(self, operation: Operation, body: object) -> list[Problem]:
        """Return every problem of a JSON request body."""
        media = operation.spec["requestBody"]["content"]["application/json"]
        validator = self._validator(operation, ("body",), media["schema"])
        return _problems(validator, body, ("body",))

    def answer(self, operation: Operation, status: int, body: object) -> list[Problem]:
        """Return every problem of one of our own JSON answers."""
        responses = operation.spec["responses"]
        for key in (str(status), f"{status // 100}XX", "default"):
            if key in responses:
                break
        else:
            known = ", ".join(responses)
            return [Problem(("status",), f"{status} is not one of {known}", "undocumented")]
        response = self._contract.resolve(responses[key], operation.area)
        media = response.get("content", {}).get("application/json")
        if media is None:
            return []
        validator = self._validator(operation, ("answer", key), media["schema"])
        return _problems(validator, body, ("answer",))

    def event(self, operation: Operation, data: object) -> list[Problem]:
        """Return every problem of the data of an event that we stream."""
        media = operation.spec["responses"]["200"]["content"]["text/event-stream"]
        validator = self._validator(operation, ("event",), media["x-event-data"])
        return _problems(validator, data, ("event",))

    def _validator(
        self, operation: Operation, place: tuple[str, ...], schema: JsonObject
    ) -> jsonschema_rs.Validator:
        key = (operation.id, *place)
        validator = self._validators.get(key)
        if validator is None:
            validator = jsonschema_rs.Draft202012Validator(
                _absolute(schema, _DOCUMENT + operation.area),
                registry=self._registry,
                validate_formats=True,
                # A message must not repeat a value: it may be a secret.
                mask="the value",
            )
            self._validators[key] = validator
        return validator


def _absolute(node: Any, document: str) -> Any:
    """Rewrite local references so that they point into a registered document."""
    if isinstance(node, dict):
        return {
            key: document + value if key == "$ref" else _absolute(value, document)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_absolute(item, document) for item in node]
    return node


def _read_text(given: list[str], schema: JsonObject) -> object:
    kind = schema.get("type")
    if isinstance(kind, list):  # null can't be written in a query
        kind = next((each for each in kind if each != "null"), None)
    if kind == "array":
        return given
    text = given[-1]
    if kind == "integer":
        try:
            return int(text)
        except ValueError:
            return text
    if kind == "number":
        try:
            return float(text)
        except ValueError:
            return text
    if kind == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    return text


def _problems(
    validator: jsonschema_rs.Validator, instance: object, place: tuple[str, ...]
) -> list[Problem]:
    if validator.is_valid(instance):
        return []
    return [_problem(error, place) for error in validator.iter_errors(instance)]


def _problem(error: jsonschema_rs.ValidationError, place: tuple[str, ...]) -> Problem:
    loc = (*place, *error.instance_path)
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return Problem((*loc, kind.property), "Field required", "missing")
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.OneOfNotValid):
        return Problem(loc, " or ".join(_branch(branch) for branch in kind.context), "one_of")
    return Problem(loc, error.message, str(error.schema_path[-1]))


def _branch(errors: list[jsonschema_rs.ValidationError]) -> str:
    return " and ".join(error.message for error in errors)
