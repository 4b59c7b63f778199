"""The Python snippets of the readmes run unchanged."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from code_blocks import python_blocks

from prime_local import PlatformProcess

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.timeout(60)

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


def readme_blocks() -> list[tuple[str, str]]:
    """File and code of the Python blocks whose routes the local platform has."""
    names = [
        "README.md",
        "packages/prime-sandboxes/README.md",
        "packages/prime-compute/README.md",
        "packages/prime-inference/README.md",
        "packages/prime-traces/README.md",
    ]
    return [
        (name, code)
        for name in names
        for _, code in python_blocks((ROOT / name).read_text("utf-8"))
    ]


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
    ledger = server.ledger()
    sandboxes = ledger["sandboxes"]
    packages = ("prime_compute", "prime_inference", "prime_traces")
    others = any(package in code for package in packages)
    assert ledger["requests"] or "def " in code
    assert sandboxes["created"] > 0 or others
    assert sandboxes["live"] == 0
