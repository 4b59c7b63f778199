"""What follows from the record of a run: steps, stretches of training, checkpoints."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.sandboxes.record import Owner
from prime_local.training.runs.checkpoints import checkpoints, files, latest_step
from prime_local.training.runs.course import next_moment
from prime_local.training.runs.record import Moment, Run, Status, step

BEGAN = 1_800_000_000.0


def run(*timeline: tuple[str, float, int], **fields: Any) -> Run:
    """A run with steps of ten seconds, whose moments are given in seconds from its beginning."""
    made: dict[str, Any] = {
        "id": "r1",
        "owner": Owner("usr_1", None),
        "name": None,
        "mode": "rl",
        "config": {},
        "model": "m",
        "environments": [],
        "max_steps": 10,
        "gpus": 2,
        "gpu_type": "H200_141GB",
        "price": Decimal("2.69"),
        "image_tag": "main",
        "volume": None,
        "step_seconds": 10.0,
        "setup_seconds": 1.0,
    }
    moments = [Moment(Status(status), BEGAN + at, number) for status, at, number in timeline]
    return Run(**{**made, **fields}, timeline=moments)


TRAINING = (("PENDING", 0.0, 0), ("RUNNING", 5.0, 0))


@pytest.mark.parametrize(
    ("at", "done"), [(0, 0), (5, 0), (14.9, 0), (15, 1), (34, 2), (105, 10), (500, 10)]
)
def test_steps_pass_with_the_time(at: float, done: int) -> None:
    assert step(run(*TRAINING), BEGAN + at) == done


def test_a_run_that_went_on_begins_with_the_step_of_the_other() -> None:
    resumed = run(("PENDING", 0, 3), ("RUNNING", 5, 3), started_from=3)
    assert [step(resumed, BEGAN + at) for at in (-1, 5, 15)] == [3, 3, 4]


def test_a_restart_goes_back_and_begins_another_stretch() -> None:
    restarted = run(*TRAINING, ("PENDING", 30, 2), ("RUNNING", 40, 2))
    assert [step(restarted, BEGAN + at) for at in (29, 31, 49, 50)] == [2, 2, 2, 3]
    first, second = restarted.stretches(BEGAN + 60)
    assert (first.began_at, first.ended_at, first.first, first.last) == (
        BEGAN + 5,
        BEGAN + 30,
        0,
        2,
    )
    assert (second.ended_at, second.first, second.last) == (None, 2, 4)
    assert restarted.trained_seconds(BEGAN + 60) == 45


def test_pausing_lasts_to_the_end_of_the_step() -> None:
    pausing = run(*TRAINING, ("PAUSING", 27, 2))
    assert step(pausing, BEGAN + 30) == 2
    assert next_moment(pausing) == Moment(Status.PAUSED, BEGAN + 35, 3)


def test_the_last_step_ends_a_run() -> None:
    assert next_moment(run(*TRAINING)) == Moment(Status.COMPLETED, BEGAN + 105, 10)
    assert next_moment(run(*TRAINING, max_steps=None)) is None
    assert next_moment(run(*TRAINING, ("COMPLETED", 105, 10))) is None


def test_a_stop_comes_when_it_is_due_unless_the_run_ends_before() -> None:
    assert next_moment(run(*TRAINING, stops_at=BEGAN + 26)) == Moment(Status.STOPPED, BEGAN + 26, 2)
    ending = next_moment(run(*TRAINING, stops_at=BEGAN + 200))
    assert ending is not None
    assert ending.status is Status.COMPLETED


@pytest.mark.parametrize(
    ("table", "saved", "kept"),
    [
        (None, [], []),
        ({}, [10], [10]),
        ({"interval": 4}, [4, 8, 10], [4, 8, 10]),
        ({"interval": 5}, [5, 10], [5, 10]),
        ({"interval": 2, "keep_last": 2}, [2, 4, 6, 8, 10], [8, 10]),
        ({"interval": 2, "keep_last": 1, "keep_interval": 4}, [2, 4, 6, 8, 10], [4, 8, 10]),
        ({"interval": 3, "keep_interval": 6}, [3, 6, 9, 10], [6, 10]),
    ],
)
def test_checkpoints_are_saved_and_kept_as_the_config_says(
    table: Any, saved: list[int], kept: list[int]
) -> None:
    done = run(*TRAINING, ("COMPLETED", 105, 10), config={"ckpt": table})
    found = checkpoints(done, BEGAN + 200)
    assert [each.step for each in found] == saved
    assert [each.step for each in found if each.kept] == kept
    assert all(each.at == BEGAN + 5 + 10 * each.step for each in found)


def test_a_stopped_run_has_what_it_saved_before() -> None:
    stopped = run(*TRAINING, ("STOPPED", 100, 9), config={"ckpt": {"interval": 4}})
    assert [each.step for each in checkpoints(stopped, BEGAN + 200)] == [4, 8]
    assert latest_step(stopped, BEGAN + 200) == 8


def test_a_pause_saves_its_step_whatever_the_config_says() -> None:
    paused = run(*TRAINING, ("PAUSING", 27, 2), ("PAUSED", 35, 3))
    assert [(each.step, each.kept) for each in checkpoints(paused, BEGAN + 40)] == [(3, True)]


def test_the_files_of_a_checkpoint_are_always_the_same_and_its_own() -> None:
    first, again, other = (
        {key: b"".join(pieces) for key, pieces in files(run_id, number)}
        for run_id, number in (("r1", 3), ("r1", 3), ("r1", 4))
    )
    assert first == again
    assert set(first).isdisjoint(other)
    assert "runs/r1/checkpoints/step_3/trainer/.metadata" in first
    assert len({*first.values(), *other.values()}) == 6


@given(
    st.lists(st.floats(0, 50), min_size=1, max_size=6),
    st.floats(0.01, 20),
    st.floats(0, 400),
)
def test_steps_never_go_back_but_at_a_restart(
    pauses: list[float], seconds: float, at: float
) -> None:
    timeline, when, reached = [("PENDING", 0.0, 0)], 0.0, 0
    for pause in pauses:
        timeline.append(("RUNNING", when, reached))
        when += pause
        made = run(*timeline, step_seconds=seconds, max_steps=None)
        reached = step(made, BEGAN + when)
        timeline.append(("PENDING", when, reached))
    made = run(*timeline, step_seconds=seconds, max_steps=None)
    assert step(made, BEGAN + at) <= step(made, BEGAN + at + 1)
    assert made.trained_seconds(BEGAN + 1000) == pytest.approx(when, abs=1e-3)
    assert Run.from_row(json.loads(json.dumps(made.to_row()))) == made
