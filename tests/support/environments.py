"""Python environments of their own, for packages that must not stand beside ours."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

INSTALL_SECONDS = 300


def environment_with(
    requirements: Path, tmp_path_factory: pytest.TempPathFactory, *, all_named: bool = False
) -> Path:
    """An interpreter whose environment holds what a file names; made once in a test run.

    Args:
        requirements: the file, which pins each package.
        all_named: whether it names all that is needed: what its packages want besides stays
            away.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = shared / f"environment-{digest}"
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may be making it
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, requirements, ["--no-deps"] if all_named else [])
            (folder / "complete").touch()
    return folder / "bin" / "python"


def _make(folder: Path, requirements: Path, options: list[str]) -> None:
    uv = _uv()
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    environment["UV_SYSTEM_CERTS"] = "1"
    python = str(folder / "bin" / "python")
    for command in (
        [*uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [*uv, "pip", "install", "--quiet", *options, "--python", python, "-r", str(requirements)],
    ):
        # Outside the workspace, whose pins are not theirs.
        done = subprocess.run(
            command,
            cwd=folder.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
        assert done.returncode == 0, done.stderr


def _uv() -> list[str]:
    """Return the command that is uv: the one that runs these tests, or another."""
    if "UV" in os.environ:
        return [os.environ["UV"]]
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-m", "uv"]
    found = shutil.which("uv")
    if found is None:
        pytest.fail("this test needs uv: python -m pip install uv")
    return [found]
