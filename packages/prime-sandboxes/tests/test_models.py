from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from prime_core.models import encode_request
from prime_sandboxes.models import (
    TERMINAL_STATUSES,
    BatchSandboxStatusRequest,
    BatchSandboxStatusResponse,
    BulkDeleteSandboxRequest,
    BulkDeleteSandboxResponse,
    CreatedSandbox,
    ErrorContext,
    GatewayAuth,
    Sandbox,
    SandboxListResponse,
    SandboxStatus,
    StartCommand,
)

REPLY: dict[str, Any] = {
    "id": "sbx_1",
    "name": "worker",
    "dockerImage": "python:3.11-slim",
    "startCommand": None,
    "cpuCores": 2,
    "memoryGB": 3,
    "diskSizeGB": 12,
    "diskMountPath": "/sandbox-workspace",
    "gpuCount": 0,
    "vm": True,
    "status": "RUNNING",
    "timeoutMinutes": 180,
    "labels": ["experiment"],
    "createdAt": "2026-11-20T09:15:00",
    "updatedAt": "2026-11-20T09:15:21Z",
}
AUTH = {
    "gateway_url": "https://gateway.example.com",
    "user_ns": "ns",
    "job_id": "job",
    "token": "t0ken",
    "expires_at": "2026-11-20T09:45:21",
}


def sandbox(**changes: object) -> Sandbox:
    return Sandbox.model_validate_json(json.dumps(REPLY | changes))


def test_a_sandbox_is_read_with_aware_times() -> None:
    read = sandbox(startedAt="2026-11-20T09:15:20Z")
    assert (read.memory_gb, read.disk_size_gb, read.docker_image) == (3, 12, "python:3.11-slim")
    assert read.created_at == datetime(2026, 11, 20, 9, 15, tzinfo=timezone.utc)
    assert read.started_at is not None
    assert read.started_at < read.updated_at
    assert read.terminated_at is None


def test_a_sandbox_is_read_by_attribute_names_too() -> None:
    read = sandbox()
    assert Sandbox.model_validate_json(read.model_dump_json()) == read
    assert Sandbox.model_validate_json(read.model_dump_json(by_alias=True)) == read


def test_a_known_state_is_a_member_that_compares_and_prints_as_text() -> None:
    status = sandbox().status
    assert status is SandboxStatus.RUNNING
    assert status == "RUNNING"
    assert f"{status}" == "RUNNING"


def test_an_unknown_state_and_unknown_fields_are_kept() -> None:
    read = sandbox(status="TERMINATING", kubernetesJobId="k")
    assert read.status == "TERMINATING"
    assert read.status not in TERMINAL_STATUSES
    assert read.model_extra == {"kubernetesJobId": "k"}


@pytest.mark.parametrize("word", ["ERROR", "TERMINATED", "TIMEOUT"])
def test_final_states_are_recognized_as_members_and_as_text(word: str) -> None:
    assert word in TERMINAL_STATUSES
    assert SandboxStatus(word) in TERMINAL_STATUSES
    assert len(TERMINAL_STATUSES) == 3


def test_unknown_fields_of_a_start_command_do_not_break_a_reply() -> None:
    read = sandbox(startCommand={"executable": "python", "args": ["x"], "shell": None})
    assert read.start_command == StartCommand(executable="python", args=["x"])


def test_internal_egress_state_is_hidden_from_server_options() -> None:
    read = sandbox(advancedConfigs={"vmEgressPolicy": {"generation": 1}, "option": 2})
    assert read.advanced_configs is not None
    assert read.advanced_configs.model_extra == {"option": 2}


def test_variables_of_a_sandbox_are_left_out_of_its_repr() -> None:
    read = sandbox(environmentVars={"A": "v4lue"}, secrets={"KEY": "m4sked"})
    assert read.environment_vars == {"A": "v4lue"}
    assert "v4lue" not in repr(read)
    assert "m4sked" not in repr(read)


def test_the_token_of_a_create_reply_is_neither_shown_nor_dumped() -> None:
    created = CreatedSandbox.model_validate_json(json.dumps(REPLY | {"gatewayAuth": AUTH}))
    auth = created.gateway_auth
    assert auth is not None
    assert auth.token.get_secret_value() == "t0ken"
    assert auth.expires_at == datetime(2026, 11, 20, 9, 45, 21, tzinfo=timezone.utc)
    shown = f"{created!r} {created} {created.model_dump()} {created.model_dump_json()} {auth!r}"
    assert "t0ken" not in shown
    created.gateway_auth = None
    assert b"t0ken" not in pickle.dumps(created)


def test_a_create_reply_without_a_token_is_read() -> None:
    assert CreatedSandbox.model_validate_json(json.dumps(REPLY)).gateway_auth is None


def test_unknown_fields_of_a_token_are_dropped() -> None:
    auth = GatewayAuth.model_validate_json(json.dumps(AUTH | {"refresh_token": "s3cret"}))
    assert "s3cret" not in repr(auth)
    assert auth.model_extra is None


@pytest.mark.parametrize(
    "paging",
    [{"per_page": 50, "has_next": True}, {"perPage": 50, "hasNext": True}],
    ids=["snake_case", "camelCase"],
)
def test_a_page_is_read_in_both_spellings(paging: dict[str, object]) -> None:
    text = json.dumps({"sandboxes": [REPLY], "total": 51, "page": 1} | paging)
    page = SandboxListResponse.model_validate_json(text)
    assert (page.per_page, page.has_next, page.sandboxes) == (50, True, [sandbox()])


def test_an_error_context_is_read_in_both_spellings_or_empty() -> None:
    for keys in (("errorType", "errorMessage"), ("error_type", "error_message")):
        text = json.dumps({"status": "TERMINATED", keys[0]: "OOM_KILLED", keys[1]: "full"})
        context = ErrorContext.model_validate_json(text)
        assert context.status is SandboxStatus.TERMINATED
        assert (context.error_type, context.error_message) == ("OOM_KILLED", "full")
    assert ErrorContext.model_validate_json("{}") == ErrorContext(status=None)


def test_a_batch_reply_tolerates_new_states_and_new_codes() -> None:
    text = json.dumps(
        {
            "statuses": [{"sandbox_id": "a", "status": "TERMINATING"}],
            "errors": [{"sandbox_id": "b", "code": "MOVED", "message": "elsewhere"}],
        }
    )
    batch = BatchSandboxStatusResponse.model_validate_json(text)
    assert batch.statuses[0].status == "TERMINATING"
    assert batch.errors[0].code == "MOVED"


def test_a_bulk_delete_says_whom_it_covers_and_sends_no_nulls() -> None:
    delete = BulkDeleteSandboxRequest(sandbox_ids=["a"], labels=None, team_id=None)
    assert json.loads(encode_request(delete)) == {"sandbox_ids": ["a"], "all_users": False}


@pytest.mark.parametrize(
    "fields",
    [
        {"sandbox_ids": ["a"], "labels": ["b"]},
        {"sandbox_ids": []},
        {"sandbox_ids": ["a"] * 501},
        {"labels": []},
        {"labels": ["a"] * 51},
        {"ids": ["a"]},
    ],
)
def test_a_bulk_delete_outside_the_limits_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BulkDeleteSandboxRequest.model_validate(fields)


def test_new_entries_of_a_failed_delete_do_not_break_the_reply() -> None:
    text = json.dumps(
        {
            "succeeded": ["a"],
            "failed": [{"sandbox_id": "b", "error": "gone", "retryable": False}],
            "message": "1 of 2",
        }
    )
    reply = BulkDeleteSandboxResponse.model_validate_json(text)
    assert reply.failed == [{"sandbox_id": "b", "error": "gone"}]


@pytest.mark.parametrize("ids", [[], ["a", "a"], [str(n) for n in range(101)]])
def test_a_batch_look_up_takes_one_to_a_hundred_different_ids(ids: list[str]) -> None:
    with pytest.raises(ValidationError):
        BatchSandboxStatusRequest(sandbox_ids=ids)
    full = BatchSandboxStatusRequest(sandbox_ids=[str(n) for n in range(100)])
    assert len(json.loads(encode_request(full))["sandbox_ids"]) == 100


def test_models_survive_pickling_in_a_process_that_never_used_them() -> None:
    script = "import pickle, sys; print(pickle.load(sys.stdin.buffer).status)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(sandbox()),
        capture_output=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (b"RUNNING", b"")


def test_models_can_first_be_used_from_many_threads_at_once() -> None:
    script = """
import sys, threading
from prime_sandboxes.models import CreateSandboxRequest, Sandbox
text, failures, barrier = sys.stdin.read(), [], threading.Barrier(16)
def use():
    barrier.wait()
    try:
        Sandbox.model_validate_json(text)
        CreateSandboxRequest(name="n", docker_image="i")
    except BaseException as error:
        failures.append(error)
threads = [threading.Thread(target=use) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(failures)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(REPLY).encode(),
        capture_output=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (b"[]", b"")
