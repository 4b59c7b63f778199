"""The contract document: loading it and finding the operation of a request."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any
from urllib.parse import unquote

JsonObject = dict[str, Any]

CONTROL, GATEWAY, STORE = "control", "gateway", "store"
TRACES, INFERENCE = "traces", "inference"
AREAS = ("sandboxes", "compute", "inference", "traces", "training")
# Areas with a host of their own; the others share the control plane.
_HOSTS = {"traces": TRACES, "inference": INFERENCE}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


@dataclass(frozen=True)
class Operation:
    """One operation of the contract.

    Args:
        id: the contract's `operationId`.
        method: upper-case HTTP method.
        service: which host it lives on: control plane, gateway, upload store, traces or
            inference.
        path: the path template.
        area: the document that it stands in.
        spec: the contract's operation object, path-level parameters included.
    """

    id: str
    method: str
    service: str
    path: str
    area: str
    spec: JsonObject


@dataclass(frozen=True)
class RouteMatch:
    """A path that the contract knows.

    `operation` is None when the path exists but not with this method; `allowed` lists its methods.
    """

    operation: Operation | None
    parameters: dict[str, str]
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class _Path:
    segments: tuple[str, ...]
    operations: dict[str, Operation]
    greedy: int | None = None  # place of the parameter that may hold slashes

    def match(self, segments: list[str]) -> dict[str, str] | None:
        if self.greedy is not None:
            end = self.greedy + len(segments) - len(self.segments) + 1
            taken = segments[self.greedy : end]
            if len(taken) < 1 or not all(taken):
                return None
            segments = [*segments[: self.greedy], "/".join(taken), *segments[end:]]
        found = {}
        for template, actual in zip(self.segments, segments, strict=True):
            literal, brace, name = template.partition("{")
            if brace:  # as in "{owner}" and "@{version}"
                if not actual.startswith(literal) or actual == literal:
                    return None
                found[name[:-1]] = actual.removeprefix(literal)
            elif template != actual:
                return None
        return found


class Contract:
    """The loaded documents of the contract, by area, with one route table."""

    def __init__(self, documents: Mapping[str, JsonObject]) -> None:
        self.documents = documents
        self.operations: dict[str, Operation] = {}
        self._paths: dict[tuple[str, int], list[_Path]] = defaultdict(list)
        self._greedy: dict[str, list[_Path]] = defaultdict(list)
        for area, document in documents.items():
            for template, item in document["paths"].items():
                self._add_path(area, template, item)
        for paths in self._paths.values():
            # A literal segment wins over a parameter at the same place (x-route-order).
            paths.sort(key=lambda path: [part.startswith("{") for part in path.segments])

    def _add_path(self, area: str, template: str, item: JsonObject) -> None:
        service = _service_of(item, _HOSTS.get(area, CONTROL))
        shared = item.get("parameters", [])
        operations = {}
        for verb, spec in item.items():
            if verb not in _METHODS:
                continue
            merged = {**spec, "parameters": [*shared, *spec.get("parameters", [])]}
            operation = Operation(
                id=spec["operationId"],
                method=verb.upper(),
                service=_service_of(spec, service),
                path=template,
                area=area,
                spec=merged,
            )
            operations[operation.method] = operation
            self.operations[operation.id] = operation
        segments = tuple(template.strip("/").split("/"))
        self._paths[service, len(segments)].append(_Path(segments, operations))
        place = _greedy_place(segments, operations)
        if place is not None:
            self._greedy[service].append(_Path(segments, operations, place))

    def find(self, service: str, method: str, raw_path: str) -> RouteMatch | None:
        """Find the operation for a percent-encoded path, or None when no path matches."""
        segments = [unquote(part) for part in raw_path.strip("/").split("/")]
        for path in self._paths.get((service, len(segments)), ()):
            parameters = path.match(segments)
            if parameters is not None:
                allowed = tuple(sorted(path.operations))
                return RouteMatch(path.operations.get(method), parameters, allowed)
        for path in self._greedy.get(service, ()):
            operation = path.operations.get(method)
            parameters = path.match(segments) if operation is not None else None
            if parameters is not None:
                return RouteMatch(operation, parameters, (method,))
        return None

    def resolve(self, node: JsonObject, area: str) -> JsonObject:
        """Follow a local `$ref` of an area's document, if the node is one."""
        reference = node.get("$ref")
        if reference is None:
            return node
        target: Any = self.documents[area]
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        resolved: JsonObject = target
        return resolved


def _greedy_place(segments: tuple[str, ...], operations: dict[str, Operation]) -> int | None:
    """Return the place of the segment whose parameter may hold slashes, if there is one."""
    for operation in operations.values():
        for parameter in operation.spec["parameters"]:
            if parameter.get("x-greedy") or parameter.get("x-multi-segment"):
                return segments.index(f"{{{parameter['name']}}}")
    return None


def _service_of(item: JsonObject, default: str) -> str:
    servers = item.get("servers")
    if not servers:
        return default
    return GATEWAY if "gateway_url" in servers[0]["url"] else STORE


@lru_cache(maxsize=1)
def load_contract() -> Contract:
    """Load the shipped contract (once per process)."""
    folder = resources.files(__package__)
    texts = {area: folder.joinpath(f"{area}.json").read_text("utf-8") for area in AREAS}
    return Contract({area: json.loads(text) for area, text in texts.items()})
