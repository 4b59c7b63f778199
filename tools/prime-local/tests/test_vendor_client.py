"""Fidelity: the vendor's own client works against this platform.

It is installed, pinned, into an environment of its own and used by `programs/vendor_client.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from environments import INSTALL_SECONDS, environment_with

from prime_local import PlatformProcess
from prime_local.contract import load_contract

if TYPE_CHECKING:
    from conftest import PlatformOfMode

HERE = Path(__file__).parent
USE_SECONDS = 60
SEEN = {
    "sync": {
        "waited": ["RUNNING"] * 3,
        "command": ["env secret\n", "err\n", 3],
        "directory": "/\n",
        "timed_out": True,
        "jobs": [0, 7],
        "job": 7,
        "ran": [True, 8],
        "ssh": [True, 60],
        "listed": 4,
        "status": "RUNNING",
        "logs": "started\n",
        "restored": ["DURABLE", 1, "saved\n", ["CONFLICT"], []],
        "gone": "TERMINATED",
        "deleted": 4,
        "left": 0,
    },
    "async": {
        "commands": True,
        "large": 1_000_000,
        "process": ["got word\n", "err\n", 7],
        "killed": 137,
        "pull_failed": True,
        "saved": True,
        "listed": True,
        "left": 0,
    },
    "volumes": {
        "created": None,
        "head": True,
        "found": [1, ["NOT_FOUND"]],
        "refused": ["HTTP 409"] * 3,
        "read": "hello\n",
        "listed": ["data"],
        "forced": "DURABLE",
        "left": 0,
    },
}
NETWORKS_SEEN = {
    "rules": [["tag:web", "*", [1]]],
    "joined": [[["web"], True]],
    "retagged": ["db"],
    "changed": ["internet", 1],
    "listed": ["demo"],
    "members": 0,
    "open": ["*"],
    "saved": ["example.com", "10.1.2.3/32"],
    "applied": 0,
    "closed": [],
    "refused": True,
}
IMAGES_SEEN = {
    "built": "COMPLETED",
    "failed": "FAILED",
    "row": ["prime/local/app:v1", "COMPLETED", "PRIVATE"],
    "copied": ["python:3.12", None],
    "several": [None, "source image not found"],
    "dry": [True, "t1"],
    "changed": ["v2", "image_not_found"],
    "who": "vendor\n",
    "deleted": True,
    "left": [1, 2],
}
CURRENT = {
    operation.id
    for operation in load_contract().operations.values()
    if operation.area == "sandboxes" and operation.spec.get("x-status") != "legacy"
}
# Of live processes, which its sync client has not, it does not need everything.
UNUSED = {
    "command_session_connect",
    "command_session_list",
    "command_session_send_input",
    "command_session_send_signal",
    "command_session_stream_input",
    "command_session_update",
}
# Whatever the contract allows besides what we assume.
OTHERWISE = [
    "replayed_create=200",
    "batch_routes=404",
    "deleted_sandbox=missing",
    "create_token=absent",
    "gateway_url=slash",
    "list_paging=camelCase",
    "secrets=masked",
    "early_gateway=bad_gateway",
    "json_codec=refused",
    "keep_alive=0.05",
]


@pytest.fixture(scope="session")
def vendor_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose environment holds the vendor's client and nothing of ours."""
    return environment_with(HERE / "vendor-requirements.txt", tmp_path_factory)


@pytest.mark.timeout(INSTALL_SECONDS + 2 * USE_SECONDS)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("otherwise", [False, True], ids=["as assumed", "otherwise"])
def test_vendors_client_creates_waits_executes_lists_and_deletes(
    vendor_python: Path, tmp_path: Path, kind: str, otherwise: bool
) -> None:
    options = ["--gateway-delay", "1", *(f"--assume={answer}" for answer in OTHERWISE)]
    with PlatformProcess(["--isolation", "process", *(options if otherwise else [])]) as platform:
        assert use(vendor_python, platform, tmp_path, "vendor_client.py", kind) == SEEN[kind]
        assert platform.ledger()["sandboxes"]["live"] == 0


@pytest.mark.timeout(INSTALL_SECONDS + USE_SECONDS)
def test_vendors_client_rules_networks(vendor_python: Path, tmp_path: Path) -> None:
    options = ["--isolation", "process", "--assume", "unenforced_rules=applied"]
    with PlatformProcess(options) as platform:
        assert use(vendor_python, platform, tmp_path, "vendor_networks.py") == NETWORKS_SEEN


@pytest.mark.timeout(INSTALL_SECONDS + 2 * USE_SECONDS)
def test_vendors_client_attaches_and_publishes_volumes(
    vendor_python: Path, tmp_path: Path, platform_of_mode: PlatformOfMode
) -> None:
    platform = platform_of_mode("bwrap")
    assert use(vendor_python, platform, tmp_path, "vendor_client.py", "volumes") == SEEN["volumes"]
    assert platform.ledger()["sandboxes"]["live"] == 0
    platform.reset()


@pytest.mark.timeout(INSTALL_SECONDS + USE_SECONDS)
def test_vendors_client_builds_copies_changes_and_deletes_images(
    vendor_python: Path, tmp_path: Path
) -> None:
    with PlatformProcess(["--isolation", "process"]) as platform:
        assert use(vendor_python, platform, tmp_path, "vendor_images.py") == IMAGES_SEEN


@pytest.mark.timeout(INSTALL_SECONDS + 2 * USE_SECONDS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_vendors_client_can_do_whatever_it_offers(
    vendor_python: Path, tmp_path: Path, platform_of_mode: PlatformOfMode, kind: str
) -> None:
    # A mode with mounts: volumes and absolute paths need them.
    platform = platform_of_mode("bwrap")
    platform.reset()
    seen = use(vendor_python, platform, tmp_path, "vendor_scenario.py", kind)
    assert len(seen["calls"]) >= 40
    assert set(seen["offered"]) <= set(seen["calls"])
    ledger = platform.ledger()
    assert {each for each in CURRENT if each not in ledger["requests"]} <= UNUSED
    assert ledger["sandboxes"]["live"] == 0
    platform.check_contract()


def use(python: Path, platform: PlatformProcess, home: Path, program: str, *words: str) -> Any:
    done = subprocess.run(
        [str(python), str(HERE / "programs" / program), *words],
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **platform.env},
        capture_output=True,
        text=True,
        timeout=USE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
