"""Every current operation of the contract has its `Operation` row, which says the same."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import prime_compute.operations
import prime_core.login.operations
import prime_inference.operations
import prime_sandboxes.operations
import prime_traces.operations
import prime_traces.runs.operations
import prime_train.operations
from prime_core.operations import Operation, RateLimit
from prime_local.contract import Contract, load_contract
from prime_local.contract import Operation as Documented

CONTRACT: Contract = load_contract()
MODULES = [
    prime_compute.operations,
    prime_core.login.operations,
    prime_inference.operations,
    prime_sandboxes.operations,
    prime_traces.operations,
    prime_train.operations,
]
ROWS = {
    name: value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Operation)
}

# A retry attaches to the session, but what it wrote meanwhile is gone: worse than an error.
STRICTER = {"command_session_start": "unsafe"}
# A stub that answers 500, by the contract's own word.
UNIMPLEMENTED = {"export_traces"}
# The team of a bulk delete is the caller's to name, so that a scope is never widened for him;
# that of a build is too, as the documentation has it, and an image of the platform has none.
TEAM_OF_THE_CALLER = {
    "bulk_delete_sandboxes",
    "initiate_image_build",
    "list_images",
    "delete_image",
}

TEAM_NAMES = {"team_id", "teamId", "team.teamId"}

# A transfer holds its connection for as long as it moves.
TRANSFERS = {"upload_file", "download_file"}

# A model can take minutes to answer, whole or as a stream.
MODEL_CALLS = {
    "create_chat_completion",
    "create_inference_evaluation",
    "create_inference_evaluation_v4",
}

ROOTS = [importlib.import_module(module.__name__.partition(".")[0]) for module in MODULES]
FOLDERS = [Path(inspect.getfile(root)).parent for root in ROOTS]
# It has rows of its own, under the names of another package's.
RUN_LOGGING = Path(inspect.getfile(prime_traces.runs.operations)).parent
SOURCES = [
    path.read_text("utf-8")
    for folder in FOLDERS
    for path in folder.rglob("*.py")
    if "operations" not in (path.stem, path.parent.name) and path.parent != RUN_LOGGING
]

each_row = pytest.mark.parametrize(("name", "row"), ROWS.items(), ids=ROWS)


def documented(row: Operation) -> Documented:
    return CONTRACT.operations[row.id]


def schema_of_body(operation: Documented) -> dict[str, Any]:
    body = CONTRACT.resolve(operation.spec.get("requestBody", {}), operation.area)
    media = body.get("content", {}).get("application/json", {})
    return CONTRACT.resolve(media.get("schema", {}), operation.area)


@each_row
def test_a_row_has_the_id_method_and_path_of_the_contract(name: str, row: Operation) -> None:
    operation = documented(row)
    assert name == row.id.upper()
    assert (row.method, row.path) == (operation.method, operation.path)
    assert operation.spec.get("x-status") != "legacy"


def test_rows_that_run_logging_has_for_itself_are_those_of_their_package() -> None:
    copies = {
        name: row
        for name, row in vars(prime_traces.runs.operations).items()
        if isinstance(row, Operation)
    }
    assert copies
    assert copies == {name: ROWS[name] for name in copies}


def test_no_two_rows_are_about_one_route() -> None:
    assert len({row.id for row in ROWS.values()}) == len(ROWS)
    assert len({(row.method, row.path) for row in ROWS.values()}) == len(ROWS)


@each_row
def test_a_row_is_repeated_when_the_contract_allows_it(name: str, row: Operation) -> None:
    words = {True: "safe", "with-idempotency-key": "keyed", False: "unsafe"}
    allowed = words[documented(row).spec["x-retry-safe"]]
    if row.id in STRICTER:
        assert allowed != "unsafe", "an exception that is none any more"
        allowed = STRICTER[row.id]
    assert row.safety == allowed


@each_row
def test_a_key_travels_where_the_contract_has_it(name: str, row: Operation) -> None:
    operation = documented(row)
    idempotency = operation.spec.get("x-idempotency")
    assert row.key_field == (idempotency and idempotency["key"])
    if row.key_field is not None:
        assert row.safety == "keyed"
        assert row.key_field in schema_of_body(operation)["properties"]
    parameters = [CONTRACT.resolve(item, operation.area) for item in operation.spec["parameters"]]
    headers = {item["name"] for item in parameters if item["in"] == "header"}
    assert row.key_header == ("Idempotency-Key" if "Idempotency-Key" in headers else None)


@each_row
def test_a_row_needs_a_key_unless_the_contract_says_otherwise(name: str, row: Operation) -> None:
    assert row.keyless == ({} in documented(row).spec.get("security", []))


@each_row
def test_parameters_of_several_segments_are_those_of_the_contract(
    name: str, row: Operation
) -> None:
    operation = documented(row)
    parameters = [CONTRACT.resolve(item, operation.area) for item in operation.spec["parameters"]]
    several = {
        item["name"] for item in parameters if item.get("x-greedy") or item.get("x-multi-segment")
    }
    assert row.raw == several


@each_row
def test_a_row_goes_to_the_host_of_the_contract(name: str, row: Operation) -> None:
    hosts = {"control": "control", "gateway": "control", "store": "control"}
    service = documented(row).service
    assert row.service == hosts.get(service, service)


@each_row
def test_the_team_travels_where_the_contract_has_it(name: str, row: Operation) -> None:
    operation = documented(row)
    parameters = [CONTRACT.resolve(item, operation.area) for item in operation.spec["parameters"]]
    in_query = {item["name"] for item in parameters if item["in"] == "query"}
    properties = schema_of_body(operation).get("properties", {})
    in_body = {"team.teamId" if name == "team" else name for name in properties}
    place = "query" if in_query & TEAM_NAMES else "body" if in_body & TEAM_NAMES else "none"
    if row.id in TEAM_OF_THE_CALLER:
        assert place != "none", "an exception that is none any more"
        assert row.team == "none"
        return
    assert row.team == place
    if place != "none":
        assert {row.team_name} == (in_query | in_body) & TEAM_NAMES


@each_row
def test_a_row_is_paced_by_documented_limits_alone(name: str, row: Operation) -> None:
    spec = documented(row).spec
    burst = spec.get("x-account-limits", {}).get("creation_burst") or spec.get("x-rate-limit", {})
    if not burst or burst.get("evidence") == "older-description":
        assert row.scope.limit is None
    else:
        assert row.scope.limit == RateLimit(burst["requests"], burst["per_seconds"])


@each_row
def test_long_lived_streams_have_a_pool_of_their_own(name: str, row: Operation) -> None:
    rpc = documented(row).spec.get("x-rpc", {})
    streams = rpc.get("server_streaming") or rpc.get("client_streaming")
    slow = streams or row.id in TRANSFERS | MODEL_CALLS
    assert row.pool == ("stream" if slow else "control")


@each_row
def test_a_row_is_used(name: str, row: Operation) -> None:
    assert any(re.search(rf"\b{name}\b", source) for source in SOURCES)


def test_every_current_operation_has_a_row() -> None:
    current = {
        operation.id
        for operation in CONTRACT.operations.values()
        if operation.spec.get("x-status") not in ("legacy", "removed")
        and operation.id not in UNIMPLEMENTED
    }
    assert {row.id for row in ROWS.values()} == current


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_scopes_with_one_name_are_one_scope(module: Any) -> None:
    scopes = {row.scope for row in vars(module).values() if isinstance(row, Operation)}
    assert len({scope.name for scope in scopes}) == len(scopes)
