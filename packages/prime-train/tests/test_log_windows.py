"""Logs that are read by tail windows: no line lost, none doubled."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from prime_train.log_windows import LogWindows, overlap


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_an_overlap_is_the_longest(before: list[str], after: list[str]) -> None:
    sizes = range(min(len(before), len(after)) + 1)
    fitting = [size for size in sizes if before[len(before) - size :] == after[:size]]
    assert overlap(before, after) == max(fitting)


@given(st.lists(st.integers(1, 20), max_size=30), st.integers(20, 40))
def test_windows_of_a_growing_log_lose_and_double_nothing(steps: list[int], window: int) -> None:
    log: list[str] = []
    merged: list[str] = []
    windows = LogWindows()
    for step in steps:
        log += [f"line {len(log) + number}" for number in range(step)]
        merged += windows.feed("".join(f"{line}\n" for line in log[-window:]))
    assert merged + windows.finish() == log


@given(st.text("ab\n", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_a_whole_log_that_is_cut_anywhere_comes_once(text: str, cuts: list[int]) -> None:
    windows = LogWindows()
    merged = [line for cut in sorted(cuts) for line in windows.feed(text[:cut])]
    merged += [*windows.feed(text), *windows.finish()]
    assert merged == text.removesuffix("\n").split("\n") if text else merged == []


def test_windows_that_have_nothing_in_common_are_all_new() -> None:
    windows = LogWindows()
    assert windows.feed("a\nb\n") == ["a", "b"]
    assert windows.feed("c\n") == ["c"]
    assert windows.feed("") == []


def test_an_overlap_takes_time_in_proportion_to_the_lines() -> None:
    before = ["same"] * 200_000
    started = time.process_time()
    assert overlap(before, ["same"] * 199_999 + ["other"]) == 199_999
    assert overlap(before, before) == 200_000
    assert time.process_time() - started < 2
