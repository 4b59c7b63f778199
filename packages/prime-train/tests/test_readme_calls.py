"""Snippets of the readme that call the platform run as they stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import python_blocks

from prime_local import PlatformProcess

README = Path(__file__).resolve().parent.parent / "README.md"
CALLED = {
    "capacity.estimate": {"list_available_fft_models", "list_available_gpu_types"},
    "external_runs.create": {
        "create_external_run",
        "log_external_run_metrics",
        "presign_external_run_samples",
        "confirm_external_run_samples",
        "finalize_external_run",
    },
}

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def server(
    clean_environment: None,
    prime_platform_server: PlatformProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[PlatformProcess]:
    prime_platform_server.reset()
    for name, value in prime_platform_server.env.items():
        monkeypatch.setenv(name, value)
    yield prime_platform_server
    prime_platform_server.reset()


@pytest.mark.parametrize("method", CALLED)
def test_a_snippet_of_the_readme_runs(
    method: str, server: PlatformProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [code] = [code for _, code in python_blocks(README.read_text("utf-8")) if method in code]
    (tmp_path / "rl.toml").write_text("[inference]\n")
    (tmp_path / "step_10.parquet").write_bytes(b"PAR1 columns and a footer PAR1")
    monkeypatch.chdir(tmp_path)
    exec(code, {"__name__": "snippet"})
    assert set(server.ledger()["requests"]) == CALLED[method]
