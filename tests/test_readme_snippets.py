"""The Python snippets of the readmes and of the platform's documentation run unchanged.

The documentation is read where it lies next to the repository, or where PRIME_SHARED says.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prime_local import FaultRule, PlatformProcess

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PRIME_SHARED") or ROOT.parent / "shared")
DOCUMENTATION = SHARED / "docs" / "platform-docs.txt"

pytestmark = pytest.mark.timeout(60)

# What the feature pages assume to be there.
CLIENT = """
from prime_sandboxes import *
client = SandboxClient(APIClient())
"""
SANDBOX = """
sandbox = client.create(CreateSandboxRequest(name="docs", docker_image="python:3.11-slim"))
client.wait_for_creation(sandbox.id)
"""
SAVED = (
    CLIENT
    + SANDBOX
    + """
sandbox_id = sandbox.id
"""
)
UNMOUNT = """
client.bulk_delete([sandbox.id for sandbox in client.iter(exclude_terminated=True)])
"""
ASYNC = """
import asyncio
from prime_sandboxes import AsyncSandboxClient, CreateSandboxRequest
"""
NETWORK = f"""{CLIENT}
network = client.create_lan_network("docs")
"""
LAUNCH = """
asyncio.run(create_many(["python:3.11-slim", "debian:12", "python:3.12"]))
"""

# By page and heading: what comes before and after the snippet, and what it prints.
SNIPPETS = {
    ("sandboxes/overview", "Quickstart"): ("", "", r"Python 3\.\d+\.\d+\n\n"),
    ("sandboxes/sdk", "Sync client"): ("", "", r"42\n\n"),
    ("sandboxes/sdk", "Async client"): ("", "", r"42\n"),
    ("sandboxes/sdk", "Launch a fleet"): (ASYNC, LAUNCH, r"Ready: batch-1, batch-2, batch-3\n"),
    ("sandboxes/lifecycle", "Create a sandbox"): (CLIENT, "", ""),
    ("sandboxes/lifecycle", "Start command"): (CLIENT, "", ""),
    ("sandboxes/lifecycle", "Timeouts"): (CLIENT, "", ""),
    ("sandboxes/lifecycle", "Labels"): (CLIENT, "", ""),
    ("sandboxes/lifecycle", "Delete"): (CLIENT, "", r"Deleted: \[.*\], Failed: \[\]\n"),
    ("sandboxes/checkpoints", "Checkpoint and restore"): (SAVED, "", ""),
    ("sandboxes/commands", "Run a command"): (CLIENT + SANDBOX, "", r"42\n  0\n"),
    ("sandboxes/network-isolation", "Network Isolation"): (CLIENT, "", ""),
    ("sandboxes/networks", "Complete Example"): ("", "", ""),
    ("sandboxes/networks", "Rules"): (NETWORK, "", ""),
    ("sandboxes/networks", "Exposing Ports to the Internet"): (NETWORK, "", ""),
    ("sandboxes/networks", "Managing Networks"): (NETWORK, "", r"net_\w+ docs False\n"),
}
# The other snippets create one sandbox and leave it running.
CREATES = {
    "Launch a fleet": 3,
    "Delete": 0,
    "Checkpoint and restore": 2,
    "Network Isolation": 0,
    "Complete Example": 0,
    "Rules": 0,
    "Exposing Ports to the Internet": 0,
    "Managing Networks": 0,
}
CLEAN_UP = {"Quickstart", "Sync client", "Async client"}
# What a snippet leaves in the variable `sandbox`.
LEFT: dict[str, dict[str, Any]] = {
    "Create a sandbox": {
        "name": "analytics-lab",
        "cpu_cores": 2,
        "memory_gb": 4,
        "disk_size_gb": 20,
        "timeout_minutes": 240,
    },
    "Timeouts": {"timeout_minutes": -1, "idle_timeout_minutes": 15},
    "Labels": {"labels": ["experiment", "ml-pipeline"]},
}


def python_blocks(document: Path) -> Iterator[tuple[str, str, str]]:
    """Page, heading and code of every Python block of a document."""
    page = heading = ""
    block: list[str] | None = None
    language = ""
    for line in document.read_text("utf-8").splitlines():
        if line.startswith("```"):
            if block is None:
                block, language = [], line[3:].partition(" ")[0]
            else:
                if language == "python":
                    yield page, heading, "\n".join(block)
                block = None
        elif block is not None:
            block.append(line)
        elif line.startswith("Source: "):
            page = line.partition("://")[2].partition("/")[2]
        elif line.startswith("#"):
            heading = line.lstrip("#").strip()


Point = Callable[[PlatformProcess], None]


@pytest.fixture
def point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Point:
    """Points the SDK at a platform."""

    def point(platform: PlatformProcess) -> None:
        for name in ("PRIME_TEAM_ID", "PRIME_USER_ID", "PRIME_CONTEXT", "PRIME_API_BASE_URL"):
            monkeypatch.delenv(name, raising=False)
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("HOME", str(tmp_path))

    return point


@pytest.fixture
def server(prime_platform_server: PlatformProcess, point: Point) -> Iterator[PlatformProcess]:
    prime_platform_server.reset()
    point(prime_platform_server)
    yield prime_platform_server
    prime_platform_server.reset()


@pytest.fixture
def isolated_server(point: Point) -> Iterator[PlatformProcess]:
    """A platform that can mount volumes and build images."""
    with contextlib.ExitStack() as stack:
        platform = PlatformProcess(["--no-limits"], isolation="bwrap")
        try:
            stack.enter_context(platform)
        except RuntimeError as error:
            if os.environ.get("PRIME_REQUIRE_ISOLATION"):
                raise
            pytest.skip(str(error))
        point(platform)
        yield platform


@pytest.mark.skipif(not DOCUMENTATION.is_file(), reason="the documentation is not here")
@pytest.mark.filterwarnings("ignore:unclosed Prime client:ResourceWarning")
@pytest.mark.parametrize(("page", "heading"), SNIPPETS, ids=lambda part: part)
def test_a_documented_snippet_runs_unchanged(
    page: str, heading: str, server: PlatformProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [code for *where, code in python_blocks(DOCUMENTATION) if where == [page, heading]]
    assert len(codes) == 1
    before, after, printed = SNIPPETS[page, heading]
    # Ids such as this one stand for the reader's own sandboxes.
    server.add_faults(
        FaultRule(
            "delete_sandbox",
            path_prefix="/api/v1/sandbox/sbx_123",
            status=200,
            body='{"success": true}',
        )
    )
    # As does `<sandbox-id>`, a member of the network.
    member = '{"sandbox_id": "sbx_123", "tags": [], "synced": false}'
    server.add_faults(FaultRule("put_lan_member", status=200, body=member))
    server.add_faults(FaultRule("remove_lan_member", status=200, body="{}"))
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(before + codes[0] + "\n" + after, names)
    assert re.fullmatch(printed, capsys.readouterr().out)
    for attribute, value in LEFT.get(heading, {}).items():
        assert getattr(names["sandbox"], attribute) == value
    sandboxes = server.ledger()["sandboxes"]
    assert sandboxes["created"] == CREATES.get(heading, 1)
    if heading in CLEAN_UP:
        assert sandboxes["live"] == 0


@pytest.mark.skipif(not DOCUMENTATION.is_file(), reason="the documentation is not here")
@pytest.mark.filterwarnings("ignore:unclosed Prime client:ResourceWarning")
def test_the_documented_transfers_run_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their /workspace is there in an isolated sandbox only."""
    [code] = [code for page, _, code in python_blocks(DOCUMENTATION) if page == "sandboxes/files"]
    report = "client.execute_command(sandbox.id, 'seq 20 > /workspace/report.csv')\n"
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "artifacts" / "model.bin").write_bytes(b"model")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    try:
        platform = PlatformProcess(["--no-limits"], isolation="bwrap").__enter__()
    except RuntimeError as error:
        pytest.skip(str(error))
    with contextlib.ExitStack() as stack:
        stack.push(platform.__exit__)
        for name, value in platform.env.items():
            monkeypatch.setenv(name, value)
        exec(CLIENT + SANDBOX + report + code + "\nclient.close()", {"__name__": "snippet"})
    text = "".join(f"{number}\n" for number in range(1, 21))
    assert (tmp_path / "reports" / "report.csv").read_text() == text
    assert capsys.readouterr().out == text[:80] + "\n"


def test_the_documented_snippets_of_volumes_run_unchanged(
    isolated_server: PlatformProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = python_blocks(DOCUMENTATION)
    codes = [code for page, _, code in blocks if page == "sandboxes/volumes"]
    assert len(codes) == 2
    names: dict[str, Any] = {"__name__": "snippet"}
    exec(codes[0], names)
    assert capsys.readouterr().out == "hello\n\n"
    exec(UNMOUNT + codes[1], names)
    assert re.fullmatch(r"\[Volume\(.*\)\] False\nckpt_\w+\n", capsys.readouterr().out)
    assert names["client"].volumes.list().volumes == []


def readme_blocks() -> list[tuple[str, str]]:
    """File and code of the Python blocks whose routes the local platform has."""
    names = ["README.md", "packages/prime-sandboxes/README.md"]
    return [(name, code) for name in names for _, _, code in python_blocks(ROOT / name)]


@pytest.mark.filterwarnings("ignore:unclosed Prime client:ResourceWarning")
@pytest.mark.parametrize(("name", "code"), readme_blocks(), ids=lambda part: part[:34])
def test_a_snippet_of_a_readme_runs_and_leaves_nothing_running(
    name: str,
    code: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    isolated = "VolumeMount" in code or "ImageClient" in code
    kind = "isolated_server" if isolated else "server"
    server: PlatformProcess = request.getfixturevalue(kind)
    monkeypatch.chdir(tmp_path)
    exec(code, {"__name__": "snippet"})
    sandboxes = server.ledger()["sandboxes"]
    assert sandboxes["created"] > 0
    assert sandboxes["live"] == 0
