from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.contract import ContractChecks, load_contract
from prime_local.contract.document import CONTROL, GATEWAY
from prime_local.contract.protobuf import CommandMessages
from prime_local.contract.validation import QueryValues

CONTRACT = load_contract()
CHECKS = ContractChecks(CONTRACT)
MESSAGES = CommandMessages(CONTRACT)


def test_every_operation_is_found_by_its_own_path() -> None:
    for operation in CONTRACT.operations.values():
        match = CONTRACT.find(operation.service, operation.method, operation.path)
        assert match is not None
        assert match.operation == operation


def test_literal_segments_win_over_parameters() -> None:
    match = CONTRACT.find(CONTROL, "GET", "/api/v1/sandbox/networks")
    assert match is not None
    assert match.operation is not None
    assert match.operation.id == "list_lan_networks"


def test_gateway_paths_do_not_live_on_the_control_plane() -> None:
    path = "/ns/job/command_session.CommandSession/Start"
    assert CONTRACT.find(GATEWAY, "POST", path) is not None
    assert CONTRACT.find(CONTROL, "POST", path) is None


@given(st.text(max_size=60), st.sampled_from(["GET", "POST", "DELETE"]))
def test_any_path_is_found_or_not_but_never_fails(path: str, method: str) -> None:
    CONTRACT.find(CONTROL, method, "/api/v1/sandbox/" + path)


def test_examples_of_the_contract_pass_its_own_checks() -> None:
    checked = 0
    for operation in CONTRACT.operations.values():
        body = operation.spec.get("requestBody", {}).get("content", {}).get("application/json", {})
        if "example" in body:
            assert CHECKS.body(operation, body["example"]) == [], operation.id
            checked += 1
        for status, declared in operation.spec["responses"].items():
            answer = (
                CONTRACT.resolve(declared, operation.area)
                .get("content", {})
                .get("application/json", {})
            )
            if "example" in answer and status.isdigit():
                problems = CHECKS.answer(operation, int(status), answer["example"])
                assert problems == [], (operation.id, status)
                checked += 1
    assert checked > 50


def test_undocumented_answer_is_a_problem() -> None:
    operation = CONTRACT.operations["get_sandbox"]
    assert CHECKS.answer(operation, 418, {})
    assert CHECKS.answer(operation, 200, {"id": "x"})
    assert not CHECKS.answer(operation, 503, {"detail": "down"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["name", "docker_image", "labels", "vm"]), json_values))
def test_any_json_body_is_judged_without_failing(body: dict[str, object]) -> None:
    for problem in CHECKS.body(CONTRACT.operations["create_sandbox"], body):
        assert problem.loc[0] == "body"
        json.dumps(problem.to_wire())


def test_query_values_are_read_by_their_type() -> None:
    query = QueryValues([("labels", "a"), ("labels", "b"), ("is_active", "true"), ("page", "3")])
    values, problems = CHECKS.parameters(CONTRACT.operations["list_sandboxes"], query, {})
    assert problems == []
    assert values == {"labels": ["a", "b"], "is_active": True, "page": 3, "per_page": 50}


def test_messages_carry_the_contracts_field_numbers() -> None:
    spec = MESSAGES.new("CommandSpec", cmd="c", args=["a"], envs={"k": "v"}, cwd="d", user="u")
    assert spec.SerializeToString() == (
        b"\x0a\x01c" + b"\x12\x01a" + b"\x1a\x06\x0a\x01k\x12\x01v" + b"\x22\x01d" + b"\x2a\x01u"
    )
    request = MESSAGES.new("StartRequest", stdin=False, session_uuid="s")
    assert request.SerializeToString() == b"\x20\x00" + b"\x2a\x01s"
    assert MESSAGES.new("CommandSessionSelector", session_uuid="s").SerializeToString() == (
        b"\x1a\x01s"
    )


def test_exit_code_is_zigzag() -> None:
    assert MESSAGES.new("EndEvent", exit_code=-1).SerializeToString() == b"\x08\x01"
    assert MESSAGES.new("EndEvent", exit_code=3).SerializeToString() == b"\x08\x06"


def test_oneofs_hold_one_member() -> None:
    data = MESSAGES.new("DataEvent", stdout=b"a")
    data.stderr = b"b"
    assert data.WhichOneof("output") == "stderr"
    assert not data.HasField("stdout")


def test_signal_numbers_come_from_the_contract() -> None:
    request = MESSAGES.new("SendSignalRequest", signal=15)
    assert request.SerializeToString() == b"\x10\x0f"


def test_shipped_json_is_the_published_contract() -> None:
    folder = os.environ.get("PRIME_SHARED")
    if folder is None:
        pytest.skip("PRIME_SHARED does not name the published contract")
    tool = Path(__file__).parents[1] / "convert_contract.py"
    command = [sys.executable, str(tool), "--check", str(Path(folder) / "contract")]
    subprocess.run(command, check=True, timeout=60)
