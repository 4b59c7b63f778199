"""Creation: what a request sends and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from prime_core.models import encode_request
from prime_sandboxes.models import (
    CREATE_TRANSPORT_FIELDS,
    CreateSandboxRequest,
    StartCommand,
    VolumeMount,
)


def request(**fields: object) -> CreateSandboxRequest:
    return CreateSandboxRequest.model_validate({"name": "n", "docker_image": "python"} | fields)


def body(create: CreateSandboxRequest) -> dict[str, Any]:
    return dict(json.loads(encode_request(create, exclude=CREATE_TRANSPORT_FIELDS)))


def test_a_create_sends_the_defaults_that_a_server_might_set_otherwise() -> None:
    assert body(CreateSandboxRequest(name="n", docker_image="python")) == {
        "name": "n",
        "docker_image": "python",
        "cpu_cores": 1.0,
        "memory_gb": 1.0,
        "disk_size_gb": 5.0,
        "gpu_count": 0,
        "timeout_minutes": 60,
        "labels": [],
        "vm": True,
    }


def test_a_restore_sends_no_image_and_no_disk() -> None:
    create = CreateSandboxRequest(name="n", checkpoint_id="ckpt_1", docker_image=None)
    assert set(body(create)) == {
        "name",
        "checkpoint_id",
        "cpu_cores",
        "memory_gb",
        "gpu_count",
        "timeout_minutes",
        "labels",
        "vm",
    }


def test_nulls_are_left_out_and_empty_lists_are_kept() -> None:
    sent = body(request(region=None, network_denylist=None, network_allowlist=[], volumes=[]))
    assert sent["network_allowlist"] == sent["volumes"] == []
    assert None not in sent.values()


def test_fields_of_the_transport_stay_off_the_body() -> None:
    create = request(idempotency_key="k", team_id="t")
    assert CREATE_TRANSPORT_FIELDS.isdisjoint(body(create))


def test_secrets_and_variables_are_sent_but_never_shown() -> None:
    create = request(secrets={"KEY": "s3cret"}, environment_vars={"MODE": "v4lue"})
    assert body(create)["secrets"] == {"KEY": "s3cret"}
    assert body(create)["environment_vars"] == {"MODE": "v4lue"}
    shown = f"{create!r} {create}"
    assert "s3cret" not in shown
    assert "v4lue" not in shown


@pytest.mark.parametrize(
    "wrong", [{"secrets": {"KEY": ["s3cret"]}}, {"secrets": {"KEY": "s3cret"}, "cpu_cores": 99}]
)
def test_a_refused_request_does_not_show_its_secrets(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        request(**wrong)
    assert "s3cret" not in str(caught.value) + repr(caught.value)


def test_nested_models_are_sent_whole_and_server_options_keep_their_nulls() -> None:
    sent = body(
        request(
            start_command=StartCommand(executable="python", args=["-m", "http.server"]),
            volumes=[VolumeMount(name="data", mount_path="/data", read_only=True)],
            advanced_configs={"option": None},
        )
    )
    assert sent["start_command"] == {"executable": "python", "args": ["-m", "http.server"]}
    assert sent["volumes"] == [{"name": "data", "mount_path": "/data", "read_only": True}]
    assert sent["advanced_configs"] == {"option": None}


def test_a_request_can_be_copied_with_more_labels() -> None:
    create = request(labels=["a"])
    copy = create.model_copy(update={"labels": [*create.labels, "b"]})
    assert body(copy)["labels"] == ["a", "b"]
    assert body(create)["labels"] == ["a"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"docker_image": None}, "exactly one of docker_image and checkpoint_id"),
        ({"checkpoint_id": "c"}, "exactly one of docker_image and checkpoint_id"),
        ({"docker_image": ""}, "docker_image"),
        ({"docker_image": None, "checkpoint_id": "c", "disk_size_gb": 5}, "from its checkpoint"),
        ({"docker_image": None, "checkpoint_id": "c", "arch": "arm64"}, "from its checkpoint"),
        ({"docker_image": None, "checkpoint_id": "c" * 65}, "checkpoint_id"),
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"arch": "riscv"}, "arch"),
        ({"cpu_cores": 0}, "cpu_cores"),
        ({"cpu_cores": 16.5}, "cpu_cores"),
        ({"cpu_cores": float("nan")}, "cpu_cores"),
        ({"memory_gb": 0.12}, "memory_gb"),
        ({"memory_gb": 64.5}, "memory_gb"),
        ({"disk_size_gb": 1.9}, "disk_size_gb"),
        ({"disk_size_gb": 129}, "disk_size_gb"),
        ({"gpu_count": 9, "gpu_type": "H100_80GB"}, "gpu_count"),
        ({"gpu_count": 1}, "gpu_type is required"),
        ({"gpu_type": "H100_80GB"}, "forbidden at 0"),
        ({"timeout_minutes": 0}, "timeout_minutes"),
        ({"idle_timeout_minutes": 0}, "idle_timeout_minutes"),
        ({"idle_timeout_minutes": 1441, "timeout_minutes": -1}, "idle_timeout_minutes"),
        ({"idle_timeout_minutes": 61}, "cannot exceed timeout_minutes"),
        ({"network_allowlist": [], "network_denylist": []}, "not both"),
        ({"network_denylist": ["a.example", "http://x"]}, r"denylist\[1\]"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
        ({"environment_vars": {"N": 1}}, "environment_vars"),
        ({"start_command": "python -m x"}, "start_command"),
        ({"start_command": {"executable": ""}}, "executable"),
        ({"start_command": {"executable": "a\0b"}}, "NUL"),
        ({"start_command": {"executable": "a", "args": ["", "\0"]}}, "NUL"),
        ({"start_command": {"executable": "a", "shell": True}}, "shell"),
        ({"volumes": [{"name": "Data", "mount_path": "/data"}]}, "name"),
        ({"volumes": [{"name": "d", "mount_path": "data"}]}, "absolute path"),
        ({"volumes": [{"name": "d", "mount_path": "/"}]}, "absolute path"),
        ({"volumes": [{"name": "d", "mount_path": "/data/.."}]}, "absolute path"),
        ({"volumes": [{"name": "d", "mount_path": p} for p in ("/a", "/a/")]}, "share"),
        ({"volumes": [{"name": "d", "mount_path": p} for p in ("/a/b", "/a")]}, "inside"),
        ({"volumes": [{"name": "d", "mount_path": f"/{n}"} for n in range(9)]}, "volumes"),
        ({"vm": False}, "vm"),
        ({"guaranteed": True}, "guaranteed"),
    ],
)
def test_a_request_outside_the_documented_limits_is_refused(
    fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        request(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "x" * 100},
        {"cpu_cores": 0.5, "memory_gb": 0.125, "disk_size_gb": 2},
        {"cpu_cores": 16, "memory_gb": 64, "disk_size_gb": 128},
        {"gpu_count": 8, "gpu_type": "H100_80GB"},
        {"timeout_minutes": -1, "idle_timeout_minutes": 1440},
        {"timeout_minutes": 60, "idle_timeout_minutes": 60},
        {"start_command": {"executable": "/bin/sh", "args": ["-c", "a | b", ""]}},
        {"volumes": [{"name": "d", "mount_path": p} for p in ("/a", "/ab", "/b/c")]},
        {"arch": "arm64", "checkpoint_id": None},
    ],
)
def test_a_request_at_the_documented_limits_is_accepted(fields: dict[str, object]) -> None:
    assert body(request(**fields))["vm"] is True
