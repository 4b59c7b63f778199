"""Leaving the block of a rented pod by any road gives it and its disk back."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from interrupting import PATIENCE, interrupt

from prime_local import FaultRule
from prime_local.subprocess_server import PlatformProcess

PROGRAM = Path(__file__).parent / "programs" / "rental_program.py"

pytestmark = pytest.mark.timeout(90)
either_style = pytest.mark.parametrize("style", ["async", "sync"])


def run(
    style: str,
    how: str,
    environment: dict[str, str],
    signals: Sequence[int] = (),
    until: str | None = None,
    platform: PlatformProcess | None = None,
    pause: float = 0.15,
) -> tuple[int, str]:
    """Interrupts the program once it works; its exit code and what it wrote to stderr.

    ``until`` is an operation that must have been asked for before the interruption, ``pause``
    the seconds after each signal.
    """
    return interrupt(
        PROGRAM,
        [style, how],
        environment,
        signals,
        announced=until is None or how in ("create", "thread"),
        until=until,
        platform=platform,
        pause=pause,
    )


def nothing_lives(platform: PlatformProcess) -> None:
    ledger = platform.ledger()
    assert (ledger["pods"]["live"], ledger["disks"]["live"]) == (0, 0)


@either_style
@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGINT],
        [signal.SIGINT] * 3,
        [signal.SIGTERM],
        [signal.SIGHUP, signal.SIGINT],
    ],
    ids=lambda signals: "+".join(each.name for each in signals),
)
def test_a_signal_in_the_block_leaves_nothing(
    style: str,
    signals: list[signal.Signals],
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    code, stderr = run(style, "wait", program_environment, signals)
    assert code != 0, stderr
    ledger = platform_process.ledger()
    assert (ledger["pods"]["created"], ledger["disks"]["created"]) == (1, 1)
    nothing_lives(platform_process)


@either_style
@pytest.mark.parametrize(("how", "code"), [("body", 1), ("exit", 7)])
def test_an_end_from_within_leaves_nothing(
    style: str,
    how: str,
    code: int,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    found, stderr = run(style, how, program_environment)
    assert found == code, stderr
    nothing_lives(platform_process)


@either_style
@pytest.mark.parametrize(
    ("operation", "number"),
    [
        ("create_disk", signal.SIGTERM),
        ("create_pod", signal.SIGINT),
        ("create_pod", signal.SIGTERM),
        ("get_pods_status", signal.SIGINT),
    ],
)
def test_a_signal_on_the_way_into_the_block_leaves_nothing(
    style: str,
    operation: str,
    number: signal.Signals,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    platform_process.add_faults(FaultRule(operation, delay_before=0.2, delay_after=0.3))
    code, stderr = run(style, "wait", program_environment, [number], operation, platform_process)
    assert code != 0, stderr
    nothing_lives(platform_process)


@either_style
@pytest.mark.parametrize("answer", ["late", "lost"])
def test_ctrl_c_in_a_plain_create_leaves_nothing(
    style: str,
    answer: str,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    platform_process.add_faults(
        FaultRule("create_pod", delay_before=0.3, reset="after_commit")
        if answer == "lost"
        else FaultRule("create_pod", delay_before=0.3, delay_after=0.3)
    )
    code, stderr = run(
        style, "create", program_environment, [signal.SIGINT], "create_pod", platform_process
    )
    assert code != 0, stderr
    assert platform_process.ledger()["pods"]["created"] == 1
    nothing_lives(platform_process)


@either_style
@pytest.mark.parametrize("pause", [0.003, 0.01, 0.03])
def test_ctrl_c_in_quick_succession_leaves_nothing(
    style: str,
    pause: float,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    code, stderr = run(style, "wait", program_environment, [signal.SIGINT] * 2, pause=pause)
    assert code != 0, stderr
    nothing_lives(platform_process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@either_style
def test_a_second_signal_in_the_clean_up_leaves_nothing_and_the_signals_exit_code(
    style: str,
    number: signal.Signals,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    platform_process.add_faults(FaultRule("delete_pod", delay_before=0.6))
    code, stderr = run(style, "wait", program_environment, [number] * 2)
    assert code == 128 + number, stderr
    nothing_lives(platform_process)


@pytest.mark.parametrize(
    ("style", "how"), [("async", "create"), ("sync", "create"), ("sync", "thread")]
)
def test_an_end_in_a_create_that_made_nothing_is_soon_and_told_as_it_is(
    style: str,
    how: str,
    platform_process: PlatformProcess,
    program_environment: dict[str, str],
) -> None:
    platform_process.add_faults(FaultRule("create_pod", delay_before=0.3, reset="before_commit"))
    began = time.monotonic()
    code, stderr = run(
        style, how, program_environment, [signal.SIGINT], "create_pod", platform_process
    )
    assert code != 0, stderr
    assert "if it was made, had not appeared when the program ended" in stderr
    assert "left behind" not in stderr
    assert time.monotonic() - began < PATIENCE, "with the start of the program"
    assert platform_process.ledger()["pods"]["created"] == 0
