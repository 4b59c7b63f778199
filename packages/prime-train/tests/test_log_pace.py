"""How often a log is looked at."""

from __future__ import annotations

import pytest

from prime_train.log_pace import LinePace


@pytest.mark.parametrize("rate", [0.1, 10, 400, 700, 2000, 9000])
def test_a_steady_log_is_looked_at_before_half_a_window_has_come(rate: float) -> None:
    pace = LinePace(whole=False)
    seconds = 0.5
    for _ in range(20):
        pace.grown(int(rate * seconds), seconds)
        seconds = pace.interval
        assert rate * seconds <= 2600
    assert seconds == pytest.approx(min(5.0, 2500 / rate), rel=0.1)
    assert 1000 <= pace.lines <= 5000


def test_a_log_that_falls_silent_is_looked_at_less_and_less_often() -> None:
    pace = LinePace(whole=False)
    pace.grown(2000, 1.0)
    intervals = []
    for _ in range(8):
        intervals.append(pace.interval)
        pace.grown(0, pace.interval)
    assert intervals == sorted(intervals)
    assert (intervals[0], intervals[-1]) == (1.25, 5.0)


def test_a_whole_log_is_looked_at_as_seldom_as_a_quiet_one() -> None:
    pace = LinePace(whole=True)
    for _ in range(9):
        pace.grown(100_000, 1.0)
    assert pace.interval == 5.0
