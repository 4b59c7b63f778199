"""Ctrl-C while a training run is dispatched leaves none behind."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from interrupting import interrupt

from prime_local import FaultRule
from prime_local.subprocess_server import PlatformProcess

PROGRAM = Path(__file__).parent / "programs" / "run_program.py"

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("style", ["async", "sync"])
@pytest.mark.parametrize("answer", ["late", "lost"])
def test_ctrl_c_in_a_dispatch_leaves_nothing(
    style: str,
    answer: str,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    platform_process.add_faults(
        FaultRule("create_training_run", delay_before=0.3, reset="after_commit")
        if answer == "lost"
        else FaultRule("create_training_run", delay_before=0.3, delay_after=0.3)
    )
    code, stderr = interrupt(
        PROGRAM,
        [style],
        program_environment,
        [signal.SIGINT],
        until="create_training_run",
        platform=platform_process,
    )
    assert code != 0, stderr
    assert "AssertionError" not in stderr
    runs = platform_process.ledger()["runs"]
    assert (runs["created"], runs["live"], runs["deleted"]) == (1, 0, 1)
