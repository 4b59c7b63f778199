"""The names, parameters, defaults and exceptions that the documentation promises exist."""

from __future__ import annotations

import builtins
import inspect
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import prime_sandboxes

# Signatures as documented, of the part that exists so far. What we may add: parameters with a
# default, after the documented ones. What we may not: move, rename or drop one of these.
DOCUMENTED = """
class Config:
    DEFAULT_BASE_URL = "https://api.primeintellect.ai"
    def __init__(self): ...
class APIClient:
    def __init__(self, api_key=None, require_auth=True, user_agent=None): ...
    def request(
        self, method, endpoint, params=None, json=None, timeout=None, idempotent_post=False
    ): ...
    def get(self, endpoint, params=None): ...
    def post(self, endpoint, json=None): ...
    def patch(self, endpoint, json=None): ...
    def delete(self, endpoint): ...
class SandboxClient:
    def __init__(
        self, api_client, *, background_job_output_concurrency=20,
        background_job_output_queue_size=200, background_job_output_cache_bytes=67108864,
    ): ...
    def clear_auth_cache(self): ...
    def create(self, request): ...
    def list(
        self, team_id=None, status=None, labels=None, page=1, per_page=50,
        exclude_terminated=None, user_id=None,
    ): ...
    def get(self, sandbox_id): ...
    def checkpoint(self, sandbox_id): ...
    def get_checkpoint(self, checkpoint_id): ...
    def delete_checkpoint(self, checkpoint_id): ...
    def delete_sandbox_checkpoints(self, sandbox_id): ...
    def get_checkpoints(self, checkpoint_ids): ...
    def wait_for_checkpoint(self, checkpoint_id, timeout_seconds=300): ...
    def list_checkpoints(self, sandbox_id, checkpoint_id=None): ...
    def get_sandbox_statuses(self, sandbox_ids): ...
    def delete(self, sandbox_id): ...
    def bulk_delete(
        self, sandbox_ids=None, labels=None, team_id=None, user_id=None, all_users=False
    ): ...
    def get_logs(self, sandbox_id): ...
    def execute_command(
        self, sandbox_id, command, working_dir=None, env=None, timeout=None, user=None
    ): ...
    def start_background_job(
        self, sandbox_id, command, working_dir=None, env=None, user=None
    ): ...
    def get_background_job(self, sandbox_id, job, timeout=None): ...
    def get_background_job_status(self, sandbox_id, job, timeout=None): ...
    def get_background_job_statuses(self, jobs, timeout=None): ...
    def get_background_jobs(self, jobs, timeout=None): ...
    def run_background_job(
        self, sandbox_id, command, timeout=900, working_dir=None, env=None, poll_interval=3
    ): ...
    def create_ssh_session(self, sandbox_id, public_key, ttl_seconds=None): ...
    def close_ssh_session(self, sandbox_id, session_id): ...
    def wait_for_creation(
        self, sandbox_id, max_attempts=60, stability_checks=1, image_build_timeout_seconds=3000
    ): ...
    def bulk_wait_for_creation(
        self, sandbox_ids, max_attempts=60, image_build_timeout_seconds=3000
    ): ...
    def get_network(self, sandbox_id): ...
    def set_network(self, sandbox_id, *, allow=None, deny=None): ...
    def create_lan_network(self, name, team_id=None, rules=None): ...
    def list_lan_networks(self, team_id=None): ...
    def get_lan_network(self, network_id): ...
    def delete_lan_network(self, network_id): ...
    def set_lan_rules(self, network_id, rules): ...
    def add_lan_member(self, network_id, sandbox_id, tags=None): ...
    def remove_lan_member(self, network_id, sandbox_id): ...
class Volumes:
    def create(self, name, *, team_id=None): ...
    def list(self, *, team_id=None, page=1, per_page=50): ...
    def get(self, name, *, team_id=None): ...
    def delete(self, name, *, team_id=None): ...
    def publish(self, sandbox_id, name, force=False, wait=True): ...
class AsyncVolumes(Volumes): ...
class AsyncAPIClient(APIClient):
    def aclose(self): ...
class AsyncSandboxClient(SandboxClient):
    def __init__(
        self, api_key=None, max_connections=1000, max_keepalive_connections=200, *,
        background_job_output_concurrency=20, background_job_output_queue_size=200,
        background_job_output_cache_bytes=67108864,
    ): ...
    def aclose(self): ...
"""
# Short calls need few connections, and each costs memory; streams have a pool of their own.
OTHER_DEFAULTS = {("AsyncSandboxClient", "__init__", "max_connections"): 128}

EXCEPTIONS = {
    "APIError": (Exception,),
    "UnauthorizedError": ("APIError",),
    "PaymentRequiredError": ("APIError",),
    "APITimeoutError": ("APIError",),
    "BatchStatusUnsupportedError": ("APIError",),
    "SandboxNotRunningError": (RuntimeError,),
    "SandboxOOMError": ("SandboxNotRunningError",),
    "SandboxTimeoutError": ("SandboxNotRunningError",),
    "SandboxImagePullError": ("SandboxNotRunningError",),
    "CommandTimeoutError": (RuntimeError,),
}

# Attribute: default, or ... where the field is required.
MODELS: dict[str, dict[str, Any]] = {
    "CreateSandboxRequest": {
        "name": ...,
        "docker_image": None,
        "checkpoint_id": None,
        "arch": None,
        "start_command": None,
        "cpu_cores": 1.0,
        "memory_gb": 1.0,
        "disk_size_gb": None,
        "gpu_count": 0,
        "gpu_type": None,
        "network_allowlist": None,
        "network_denylist": None,
        "timeout_minutes": 60,
        "idle_timeout_minutes": None,
        "environment_vars": None,
        "secrets": None,
        "labels": [],
        "team_id": None,
        "region": None,
        "advanced_configs": None,
        "idempotency_key": None,
        "lan_network_id": None,
        "lan_tags": None,
        "volumes": None,
    },
    "StartCommand": {"executable": ..., "args": []},
    "AdvancedConfigs": {},
    "VolumeMount": {"name": ..., "mount_path": ..., "read_only": False},
    "Sandbox": {
        **dict.fromkeys(["id", "name", "docker_image", "cpu_cores", "memory_gb"], ...),
        **dict.fromkeys(["disk_size_gb", "disk_mount_path", "gpu_count", "status"], ...),
        **dict.fromkeys(["timeout_minutes", "created_at", "updated_at"], ...),
        **dict.fromkeys(["start_command", "gpu_type", "network_allowlist", "network_denylist"]),
        **dict.fromkeys(["idle_timeout_minutes", "termination_reason", "environment_vars"]),
        **dict.fromkeys(["secrets", "advanced_configs", "started_at", "terminated_at"]),
        **dict.fromkeys(["exit_code", "error_type", "error_message", "user_id", "team_id"]),
        **dict.fromkeys(["region", "pending_image_build_id"]),
        "vm": False,
        "labels": [],
    },
    "SandboxListResponse": dict.fromkeys(
        ["sandboxes", "total", "page", "per_page", "has_next"], ...
    ),
    "SandboxStatusSnapshot": {
        "sandbox_id": ...,
        "status": ...,
        "error_type": None,
        "error_message": None,
        "pending_image_build_id": None,
    },
    "SandboxStatusLookupError": dict.fromkeys(["sandbox_id", "code", "message"], ...),
    "BatchSandboxStatusResponse": dict.fromkeys(["statuses", "errors"], ...),
    "SandboxCheckpoint": {
        **dict.fromkeys(["id", "sandbox_id", "state", "depth", "docker_image"], ...),
        **dict.fromkeys(["created_at", "updated_at"], ...),
        **dict.fromkeys(["parent_id", "team_id", "disk_size_bytes", "stored_bytes", "error"]),
        "occupied_bytes": 0,
    },
    "CheckpointLookupError": dict.fromkeys(["checkpoint_id", "code", "message"], ...),
    "BatchCheckpointResponse": dict.fromkeys(["checkpoints", "errors"], ...),
    "CheckpointDeleteError": dict.fromkeys(["checkpoint_id", "code", "message"], ...),
    "DeleteSandboxCheckpointsResponse": dict.fromkeys(["deleted", "errors"], ...),
    "Volume": {
        **dict.fromkeys(["id", "name", "created_at"], ...),
        **dict.fromkeys(["user_id", "team_id", "head_checkpoint_id"]),
        **dict.fromkeys(["account_storage_used_bytes", "account_storage_limit_gb"]),
        "occupied_bytes": 0,
    },
    "VolumeListResponse": {
        **dict.fromkeys(["volumes", "total", "page", "per_page", "has_next"], ...),
        **dict.fromkeys(["storage_used_bytes", "storage_limit_gb"]),
    },
    "BulkDeleteSandboxRequest": {
        "sandbox_ids": None,
        "labels": None,
        "team_id": None,
        "user_id": None,
        "all_users": False,
    },
    "BulkDeleteSandboxResponse": dict.fromkeys(["succeeded", "failed", "message"], ...),
    "SandboxEgressPolicy": {"allowlist": None, "denylist": None},
    "EgressPolicyStatus": dict.fromkeys(
        ["policy", "generation", "applied_generation", "applied"], ...
    ),
    "LanRule": {"from_": ..., "to": ..., "ports": None},
    "LanNetworkMember": dict.fromkeys(["sandbox_id", "tags", "synced"], ...),
    "LanNetwork": {
        **dict.fromkeys(["id", "name", "rules", "version", "synced", "created_at"], ...),
        "team_id": None,
        "members": None,
    },
    "CommandResponse": dict.fromkeys(["stdout", "stderr", "exit_code"], ...),
    "BackgroundJob": dict.fromkeys(
        ["job_id", "sandbox_id", "stdout_log_file", "stderr_log_file", "exit_file"], ...
    ),
    "BackgroundJobStatus": {
        **dict.fromkeys(["job_id", "completed"], ...),
        **dict.fromkeys(["exit_code", "stdout", "stderr", "stdout_error", "stderr_error"]),
        **dict.fromkeys(["stdout_truncated", "stderr_truncated"], False),
    },
    "BackgroundJobStatusSnapshot": {
        **dict.fromkeys(["sandbox_id", "job_id", "completed"], ...),
        "exit_code": None,
    },
    "SSHSession": dict.fromkeys(
        ["session_id", "sandbox_id", "host", "port", "expires_at", "ttl_seconds"], ...
    ),
}


def documented_methods() -> list[tuple[str, str, Any]]:
    classes: dict[str, Any] = {}
    exec(DOCUMENTED, classes)
    return [
        (name, method, function)
        for name, documented in classes.items()
        if inspect.isclass(documented)
        for method, function in inspect.getmembers(documented, inspect.isfunction)
    ]


def find_class(name: str) -> Any:
    """A class by its name; those of volumes are reached through a client only."""
    if name in ("Volumes", "AsyncVolumes"):
        client = (
            prime_sandboxes.AsyncSandboxClient
            if "Async" in name
            else (prime_sandboxes.SandboxClient)
        )
        return type(client().volumes)
    return getattr(prime_sandboxes, name)


@pytest.mark.parametrize(
    ("cls", "method", "documented"),
    documented_methods(),
    ids=lambda part: part if isinstance(part, str) else "signature",
)
def test_a_method_takes_its_documented_parameters(cls: str, method: str, documented: Any) -> None:
    function = getattr(find_class(cls), method)
    ours = list(inspect.signature(function).parameters.values())
    wanted = list(inspect.signature(documented).parameters.values())
    for mine, theirs in zip(ours, wanted, strict=False):
        assert mine.name == theirs.name
        assert mine.kind is theirs.kind
        default = OTHER_DEFAULTS.get((cls, method, theirs.name), theirs.default)
        # A parameter that the documentation requires may get a default.
        assert mine.default == default or default is inspect.Parameter.empty
    assert len(ours) >= len(wanted)
    for added in ours[len(wanted) :]:
        assert added.default is not inspect.Parameter.empty


def test_the_default_address_is_the_documented_one() -> None:
    assert prime_sandboxes.Config.DEFAULT_BASE_URL == "https://api.primeintellect.ai"
    for name in ("api_key", "team_id", "user_id", "base_url"):
        assert isinstance(inspect.getattr_static(prime_sandboxes.Config, name), property)


@pytest.mark.parametrize("cls", ["APIClient", "AsyncAPIClient"])
def test_the_connections_tell_their_configuration(cls: str) -> None:
    client = getattr(prime_sandboxes, cls)("key-1", False)
    assert (client.api_key, client.require_auth) == ("key-1", False)
    assert client.base_url == client.config.base_url


@pytest.mark.parametrize(("name", "bases"), EXCEPTIONS.items(), ids=EXCEPTIONS)
def test_an_exception_has_its_documented_place(name: str, bases: tuple[Any, ...]) -> None:
    error = getattr(prime_sandboxes, name)
    assert issubclass(error, prime_sandboxes.PrimeError)
    for base in bases:
        assert issubclass(error, getattr(prime_sandboxes, base) if isinstance(base, str) else base)
    # Lifecycle and command errors are none of the API's, and the other way round.
    assert issubclass(error, prime_sandboxes.APIError) != issubclass(error, RuntimeError)


def test_the_timeout_alias_is_the_error_of_the_api() -> None:
    assert prime_sandboxes.TimeoutError is prime_sandboxes.APITimeoutError
    assert issubclass(prime_sandboxes.TimeoutError, builtins.TimeoutError)


def test_every_error_that_can_be_raised_is_at_the_root() -> None:
    from prime_core import errors as core
    from prime_sandboxes import errors as own

    for module in (core, own):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and not name.startswith("Login"):  # of prime_core.Login
                assert getattr(prime_sandboxes, name) is value


def test_errors_are_made_as_documented() -> None:
    error = prime_sandboxes.SandboxNotRunningError("sbx_1", "ERROR", "OOM_KILLED", "make", "text")
    assert (error.sandbox_id, error.status) == ("sbx_1", "ERROR")
    assert (error.error_type, error.command) == ("OOM_KILLED", "make")
    for part in ("sbx_1", "ERROR", "OOM_KILLED", "text"):
        assert part in str(error)
    late = prime_sandboxes.CommandTimeoutError("sbx_1", "sleep 9", 5)
    assert (late.sandbox_id, late.command, late.timeout) == ("sbx_1", "sleep 9", 5)
    assert str(prime_sandboxes.APIError("HTTP 418: tea")).startswith("HTTP 418: ")


@pytest.mark.parametrize(("name", "fields"), MODELS.items(), ids=MODELS)
def test_a_model_has_its_documented_fields(name: str, fields: dict[str, Any]) -> None:
    model: type[BaseModel] = getattr(prime_sandboxes, name)
    for field, default in fields.items():
        info = model.model_fields[field]
        if default is ...:
            assert info.is_required(), field
        else:
            assert info.get_default(call_default_factory=True) == default, field
            assert info.default is not PydanticUndefined or info.default_factory is not None


def test_the_states_are_the_documented_ones() -> None:
    states = {state.name: state.value for state in prime_sandboxes.SandboxStatus}
    names = ["PENDING", "PROVISIONING", "RUNNING", "PAUSED", "ERROR", "TERMINATED", "TIMEOUT"]
    assert states == {name: name for name in names}


def test_all_documented_names_are_exported() -> None:
    for name in (*EXCEPTIONS, *MODELS, "TimeoutError", "SandboxStatus", "Config"):
        assert name in prime_sandboxes.__all__
