"""Logs that are read by tail windows: no line lost, none doubled."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from prime_train.log_windows import LogWindows, overlap

# Few words, so that lines repeat, and some that come once.
LINES = st.lists(st.sampled_from("abcc") | st.integers(0, 10**9).map(str), max_size=30)


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


@given(st.lists(st.tuples(LINES, st.integers(31, 60)), max_size=20), st.booleans())
def test_windows_of_any_size_with_repeated_lines_lose_and_double_nothing(
    steps: list[tuple[list[str], int]], joined: bool
) -> None:
    """A line of its own in each overlap is enough to find the place."""
    log: list[str] = []
    merged: list[str] = []
    windows = LogWindows(depth=60)
    for place, (lines, window) in enumerate(steps):
        log += [*lines[:29], f"step {place}"]
        text = "\n".join(log[-window:])
        merged += windows.feed(text if joined else text + "\n")
    assert merged + windows.finish() == log


@given(st.text("ab\n", max_size=60), st.sets(st.integers(0, 60), max_size=8))
def test_a_whole_log_that_is_cut_anywhere_comes_once(text: str, cuts: set[int]) -> None:
    windows = LogWindows()
    merged = [line for cut in sorted(cuts) for line in windows.feed(text[:cut])]
    merged += [*windows.feed(text), *windows.finish()]
    assert merged == text.removesuffix("\n").split("\n") if text else merged == []


def test_a_last_line_comes_once_it_stands_still() -> None:
    windows = LogWindows()
    assert windows.feed("a\nb") == ["a"]
    assert windows.feed("a\nb") == ["b"]
    assert windows.feed("a\nb") == []
    assert windows.feed("a\nb\n") == []
    assert windows.feed("a\nb\nb") == []
    assert windows.feed("a\nb\nb") == ["b"]
    assert windows.feed("b\nb\nc\n") == ["c"]
    assert windows.finish() == []


def test_a_line_that_goes_on_after_it_came_does_not_double_the_others() -> None:
    windows = LogWindows()
    windows.feed("a\nb\nc")
    assert windows.feed("a\nb\nc") == ["c"]
    assert windows.feed("a\nb\nc and more\nd\n") == ["c and more", "d"]
    assert windows.feed("b\nc and more\nd\ne\n") == ["e"]


def test_windows_that_have_nothing_in_common_are_all_new() -> None:
    windows = LogWindows()
    assert windows.feed("a\nb\n") == ["a", "b"]
    assert not windows.place("c\n").joins
    assert windows.feed("c\n") == ["c"]
    assert windows.place("c\nd\n").joins
    assert windows.feed("") == []
    assert windows.place("").joins


def test_a_larger_window_finds_its_place_in_what_was_read_before_the_last() -> None:
    windows = LogWindows(depth=4)
    windows.feed("a\nb\nc\nd\n")
    windows.feed("d\ne\n")
    assert windows.feed("b\nc\nd\ne\nf\n") == ["f"]


def test_lines_that_repeat_do_not_tell_a_place() -> None:
    windows = LogWindows(depth=9)
    windows.feed("a\nwait\nwait\nb\nwait\n")
    lost = windows.place("wait\nc\n")  # of another place, as far as anybody knows
    assert (lost.known, lost.joins, lost.sure) == (1, True, False)
    found = windows.place("b\nwait\nc\n")
    assert (found.known, found.joins, found.sure) == (2, True, True)
    apart = windows.place("d\nwait\n")
    assert (apart.known, apart.joins, apart.sure) == (0, False, False)


def test_a_window_may_begin_with_the_line_that_was_held_back() -> None:
    windows = LogWindows()
    assert windows.feed("a\nb") == ["a"]
    placed = windows.place("b\nc\n")
    assert (placed.known, placed.joins, placed.sure) == (0, True, True)
    assert windows.take(placed) == ["b", "c"]


def test_a_line_that_was_held_back_is_not_lost_with_what_followed_it() -> None:
    windows = LogWindows()
    assert windows.feed("a\nb") == ["a"]
    assert windows.feed("") == []
    assert windows.feed("d\ne\n") == ["b", "d", "e"]
    assert windows.feed("d\ne\nf\n") == ["f"]


def test_an_overlap_takes_time_in_proportion_to_the_lines() -> None:
    before = ["same"] * 200_000
    started = time.process_time()
    assert overlap(before, ["same"] * 199_999 + ["other"]) == 199_999
    assert overlap(before, before) == 200_000
    assert time.process_time() - started < 2
