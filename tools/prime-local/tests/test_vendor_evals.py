"""Fidelity: the vendor's own evaluations client works against this platform.

It is installed, pinned, into an environment of its own and used by `programs/vendor_evals.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from environments import INSTALL_SECONDS, environment_with

from prime_local import PlatformProcess

HERE = Path(__file__).parent
USE_SECONDS = 60


@pytest.fixture(scope="session")
def vendor_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose environment holds the vendor's client and nothing of ours."""
    return environment_with(HERE / "vendor-evals-requirements.txt", tmp_path_factory)


@pytest.mark.timeout(INSTALL_SECONDS + USE_SECONDS)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_vendors_evaluations_client_can_do_whatever_it_offers(
    vendor_python: Path, tmp_path: Path, kind: str
) -> None:
    options = ["--isolation", "process", "--no-limits", "--rollout-time", "1"]
    with PlatformProcess(options) as platform:
        done = subprocess.run(
            [str(vendor_python), str(HERE / "programs" / "vendor_evals.py"), kind],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **platform.env},
            capture_output=True,
            text=True,
            timeout=USE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        assert set(seen["offered"]) <= set(seen["calls"])
        platform.check_contract()
