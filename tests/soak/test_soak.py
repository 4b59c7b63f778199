"""The soak, in short; `PRIME_SOAK_SECONDS` makes it longer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parent / "soak.py"
SECONDS = float(os.environ.get("PRIME_SOAK_SECONDS", "20"))
# The last round's end, late clean-up, starting and stopping.
GRACE = 100.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc"),
    pytest.mark.timeout(SECONDS + GRACE + 10),
]


def test_random_faults_lose_nothing_double_nothing_and_leave_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--seconds", str(SECONDS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS + GRACE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
