"""Records on their way: stamped, encoded, kept on disk, summed up."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_ground import episode, trace

from prime_traces.errors import InvalidRecordError, TraceTooLargeError
from prime_traces.runs import metrics
from prime_traces.runs.figures import metrics_line, summary_values
from prime_traces.runs.parcels import Parcel, Refusal
from prime_traces.runs.records import Packer, has_members
from prime_traces.runs.samples import samples_of
from prime_traces.runs.unsent import UnsentRecords


def packed(*records: object, target: int = 10**6) -> list[Parcel | Refusal]:
    return list(Packer("run-1", "eval", target).pack(records))


def lines_of(parcel: Parcel | Refusal) -> list[dict[str, Any]]:
    assert isinstance(parcel, Parcel)
    return [json.loads(line) for line in parcel.lines]


class Produced:
    """An object of a producer."""

    def __init__(self, record: object) -> None:
        self._record = record

    def to_record(self) -> Any:
        if isinstance(self._record, Exception):
            raise self._record
        return self._record


def test_a_record_and_its_members_name_the_run_and_keep_the_rest() -> None:
    work = {"type": "train", "step": 3}
    member = trace(run={"id": "own", "name": "n", "work": work}, x=1)
    given = episode(member, trace(), run={"work": work})
    (parcel,) = packed(given)
    (line,) = lines_of(parcel)
    assert line["run"] == {"work": work, "id": "run-1", "type": "eval"}
    assert line["traces"][0]["run"] == {"id": "run-1", "name": "n", "work": work, "type": "eval"}
    assert line["traces"][1]["run"] == {"id": "run-1", "type": "eval"}
    assert line["traces"][0]["x"] == 1
    assert member["run"]["id"] == "own"  # the program's own record is left alone


def test_traces_and_episodes_are_told_apart_and_keep_their_order() -> None:
    parcels = packed(trace(), trace(), episode(), trace())
    kinds = [each.kind for each in parcels if isinstance(each, Parcel)]
    assert kinds == ["trace", "episode", "trace"]


def test_a_parcel_ends_before_it_grows_beyond_its_size() -> None:
    parcels = packed(*(trace() for _ in range(5)), target=900)
    assert [len(lines_of(parcel)) for parcel in parcels] == [2, 2, 1]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (trace(value=math.nan), "nan"),
        ({"id": "t"}, "timing.start"),
        (7, "a record is a mapping"),
        (Produced(KeyError("broken producer")), "broken producer"),
        (Produced(None), "a record is a mapping"),
        (trace(value={1, 2}), "set"),
        (episode({"id": "t"}), r"traces\[0\]"),
        ({"id": "e", "traces": None}, "traces"),
    ],
)
def test_a_bad_record_is_refused_alone(bad: object, reason: str) -> None:
    first, last = trace(), trace()
    found = packed(first, bad, last)
    refusals = [each for each in found if isinstance(each, Refusal)]
    good = [line["id"] for each in found if isinstance(each, Parcel) for line in lines_of(each)]
    assert good == [first["id"], last["id"]]
    assert len(refusals) == 1
    assert reason.replace("\\", "") in str(refusals[0].error)
    assert refusals[0].parcel.lines[0].endswith(b"\n")


def test_a_bad_record_is_named_by_its_place() -> None:
    (_, refusal) = sorted(packed(trace(), {"id": ""}), key=lambda each: isinstance(each, Refusal))
    assert isinstance(refusal, Refusal)
    assert isinstance(refusal.error, InvalidRecordError)
    assert "line 2" in str(refusal.error)


def test_a_line_beyond_the_documented_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prime_traces.runs.records.MAX_LINE_BYTES", 1000)
    (refusal,) = packed(trace(text="x" * 1000))
    assert isinstance(refusal, Refusal)
    assert isinstance(refusal.error, TraceTooLargeError)


def test_an_empty_episode_is_known_by_its_line() -> None:
    empty, full = packed(episode(info={"traces": [1]}), episode(trace(info={"traces": []})))[
        0
    ].lines  # type: ignore[union-attr]
    assert not has_members(empty)
    assert has_members(full)


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=2, max_size=9))
def test_halves_are_the_whole(lines: list[bytes]) -> None:
    whole = Parcel("trace", tuple(lines))
    first, second = whole.halves()
    assert first.lines
    assert second.lines
    assert first.joined(second) == whole


def test_metrics_are_flat_finite_and_dated() -> None:
    class Tensor:
        def item(self) -> float:
            return 0.25

    given = {"loss": Tensor(), "nan": math.nan, "text": "x", "inf": -math.inf, "bad": [1]}
    line, problems = metrics_line(given, 3)
    row = json.loads(line)
    assert row.pop("_timestamp") > 1.7e9
    assert row == {"loss": 0.25, "text": "x", "step": 3}
    assert [str(problem) for problem in problems] == [
        "metrics: bad is a number or a text, not a list"
    ]


def test_metrics_without_a_step_have_none() -> None:
    line, _ = metrics_line({"_timestamp": 5.0}, None)
    assert json.loads(line) == {"_timestamp": 5.0}


def test_a_summary_keeps_what_json_has_a_form_for() -> None:
    good, problems = summary_values({"a": {"b": 1}, "nan": math.nan, "set": {1}})
    assert good == {"a": {"b": 1}}
    assert len(problems) == 2


def test_averages_are_over_trainable_traces() -> None:
    judge = trace(None, agent={"trainable": False}, metrics={"m": 100}, ok=False)
    scored = trace(
        None,
        rewards={"a": {"score": 1.0, "weight": 0.5}, "b": {"score": 0.25}, "c": None},
        metrics={"m": 1, "other": None},
    )
    failed = trace(None, metrics={"m": 3, "n": 7}, errors=[{"type": "X"}])
    found = metrics.from_episodes([episode(judge, scored), Produced(episode(failed))])
    assert found == {"avg_reward": 0.75, "avg_metrics": {"m": 2.0, "n": 7.0}, "avg_error": 0.5}
    assert metrics.from_episodes([], traces=[judge]) == {
        "avg_reward": None,
        "avg_metrics": {"m": 100.0},
        "avg_error": 1.0,
    }
    assert metrics.from_episodes([]) == {"avg_reward": None, "avg_metrics": {}, "avg_error": None}


def test_a_trace_becomes_a_row_of_the_legacy_storage() -> None:
    task = {"data": {"idx": 4, "answer": "18"}}
    given = episode(trace(task=task, metrics={"m": 1}), trace(None), task={"data": {"idx": 5}})
    (parcel,) = packed(given)
    assert isinstance(parcel, Parcel)
    first, second = samples_of(parcel)
    assert first["prompt"] == [{"role": "user", "content": "9+9?"}]
    assert first["completion"] == [{"role": "assistant", "content": "18"}]
    expected = {"example_id": 4, "answer": "18", "reward": 0.5, "metrics": {"m": 1}}
    assert expected.items() <= first.items()
    assert {"episode_id": given["id"], "rollout_number": 1, "example_id": 5}.items() <= (
        second.items()
    )
    assert "reward" not in second


def test_unsent_lines_are_appended_and_survive(tmp_path: Path) -> None:
    unsent = UnsentRecords(tmp_path, "../run.1")
    first = unsent.write(Parcel("trace", (b"1\n",)))
    unsent.write(Parcel("trace", (b"2\n", b"3\n")))
    assert first == tmp_path / "%2E%2E%2Frun%2E1" / "traces.jsonl"
    assert first.read_bytes() == b"1\n2\n3\n"
    rejected = unsent.write(Parcel("episode", (b"4\n",)), rejected=True)
    assert (rejected.name, rejected.read_bytes()) == ("rejected-episodes.jsonl", b"4\n")


def test_a_write_that_fails_leaves_no_torn_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsent = UnsentRecords(tmp_path, "run")
    path = unsent.write(Parcel("trace", (b"1\n",)))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            unsent.write(Parcel("trace", (b"2\n",)))
    unsent.write(Parcel("trace", (b"3\n",)))
    assert path.read_bytes() == b"1\n3\n"
