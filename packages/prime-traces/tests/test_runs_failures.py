"""What a run can not send: it goes elsewhere, or is on disk and said so."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
from run_ground import TEAM, Ground, episode, trace
from run_ground import ground as ground
from run_ground import platform_process as platform_process

import prime_traces.runs as prime_runs
from prime_core.errors import APIError, NotFoundError, ServerError
from prime_local import FaultRule, PlatformProcess
from prime_traces import LineFormat, TracesClient, ValidationRejectedError
from prime_traces.runs.outlet import MAX_PARCELS, PATIENCE

EVAL: dict[str, Any] = {"environments": ["primeintellect/gsm8k"], "finish_timeout": 20}
TRAIN: dict[str, Any] = {"kind": "train", "model": "m", "team_id": TEAM, "finish_timeout": 20}


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pauses between attempts."""
    monkeypatch.setattr("prime_core.retries.BASE_DELAY", 0.001)
    monkeypatch.setattr("prime_traces.runs.outlet.PAUSES", (0.01, 0.02))


def test_an_opted_out_evaluation_keeps_to_the_legacy_storage(ground: Ground) -> None:
    with prime_runs.init(traces_opt_out=True, **EVAL) as run:
        run.log_episodes([episode(trace(1.0), trace(0.0))])
        run.log_traces([trace()])
    assert len(ground.samples(run.id)) == 3
    assert ground.requests("upload_traces") == 0
    assert ground.evaluation(run.id)["avg_score"] == 0.5
    assert "prime_runs.traces_episodes_written" not in ground.evaluation(run.id)["metrics"]


def test_an_account_that_is_opted_out_falls_back(ground: Ground) -> None:
    ground.refuse("upload_traces", 403, "service_not_enabled")
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace()])
        assert run.flush()
        run.log_traces([trace()])
    assert len(ground.samples(run.id)) == 2
    assert ground.requests("upload_traces") == 1
    assert run.errors == []


@pytest.mark.parametrize(
    ("status", "code"), [(403, "permission_denied"), (401, None), (402, None), (404, None)]
)
def test_no_other_failure_falls_back(ground: Ground, status: int, code: str | None) -> None:
    ground.refuse("upload_traces", status, code)
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace()])
        assert not run.flush()
        run.log_traces([trace(), trace()])
    assert ground.samples(run.id) == []
    assert ground.requests("upload_traces") == 1  # an error that does not pass ends the sending
    assert run.unsent_records == len(ground.unsent(run.id, "traces.jsonl")) == 3


def test_no_fallback_once_prime_traces_has_taken_something(ground: Ground) -> None:
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace()])
        assert run.flush()
        ground.refuse("upload_traces", 403, "service_not_enabled")
        run.log_traces([trace()])
    assert ground.samples(run.id) == []
    assert len(ground.unsent(run.id, "traces.jsonl")) == 1


def test_a_training_run_of_an_account_that_is_opted_out_is_kept_on_disk(ground: Ground) -> None:
    ground.refuse("upload_traces", 403, "service_not_enabled")
    with prime_runs.init(**TRAIN) as run:
        run.log_traces([trace()])
        run.log_metrics({"loss": 1}, step=0)
    assert len(ground.unsent(run.id, "traces.jsonl")) == 1
    assert len(ground.metrics(run.id)) == 1


def test_a_refused_record_costs_itself_alone(ground: Ground) -> None:
    good = [trace() for _ in range(20)]
    old = trace(timing={"start": 1.0})
    with prime_runs.init(**EVAL) as run:
        run.log_traces([*good[:13], old, *good[13:]])
        run.log_traces([trace(value=float("nan"))])
    assert ground.trace_ids(run.id) == {each["id"] for each in good}
    assert run.failed_records == 2
    assert {each["id"] for each in ground.unsent(run.id, "rejected-traces.jsonl")} >= {old["id"]}
    assert any(isinstance(error, ValidationRejectedError) for error in run.errors)
    assert run.status == "completed"


def test_what_could_not_be_sent_is_sent_later(
    ground: Ground, quick_retries: None, caplog: pytest.LogCaptureFixture
) -> None:
    ground.refuse("upload_traces", 500)
    traces, episodes = [trace() for _ in range(3)], [episode(trace(), trace())]
    with prime_runs.init(**EVAL) as run:
        run.log_traces(traces)
        run.log_episodes(episodes)
        assert not run.flush()
    assert run.unsent_dir == ground.folder / "prime-runs" / run.id
    assert f"are kept in {run.unsent_dir}" in caplog.text
    assert run.unsent_records == 4
    assert isinstance(run.errors[0], ServerError)
    ground.platform.clear_faults()
    with TracesClient() as client:
        client.upload_file(run.unsent_dir / "traces.jsonl")
        client.upload_file(run.unsent_dir / "episodes.jsonl", line_format=LineFormat.EPISODE)
    logged = {each["id"] for each in [*traces, *episodes[0]["traces"]]}
    assert ground.trace_ids(run.id) == logged


def test_a_failure_that_passes_costs_nothing(ground: Ground, quick_retries: None) -> None:
    attempts = 3
    ground.refuse("upload_traces", 500, times=2 * attempts)
    ground.refuse("update_evaluation", 500, times=2 * attempts)
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace()])
        run.log_metrics({"acc": 1})
        assert run.flush()
    assert len(ground.traces(run.id)) == 1
    assert (run.errors, run.unsent_dir) == ([], None)


def test_samples_that_may_have_arrived_are_not_sent_again(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("push_evaluation_samples", reset="after_commit", nth=1))
    with prime_runs.init(traces_opt_out=True, **EVAL) as run:
        run.log_traces([trace()])
        run.flush()
        run.log_traces([trace()])
    assert len(ground.samples(run.id)) == 2
    assert len(ground.unsent(run.id, "traces.jsonl")) == 1


def test_three_failures_in_a_row_end_the_sending(ground: Ground, quick_retries: None) -> None:
    ground.refuse("upload_traces", 500)
    with prime_runs.init(**EVAL) as run:
        for _ in range(5):
            run.log_traces([trace()])
            run.flush()
    attempts = 3
    assert ground.requests("upload_traces") == 3 * attempts
    assert len(ground.unsent(run.id, "traces.jsonl")) == 5


def test_a_training_run_tries_again_after_a_pause(
    ground: Ground, quick_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_traces.runs.outlet.SHUT", 0.3)
    ground.refuse("log_external_run_metrics", 500)
    with prime_runs.init(**TRAIN) as run:
        for step in range(4):
            run.log_metrics({"loss": 1}, step=step)
            run.flush()
        ground.platform.clear_faults()
        time.sleep(0.3)
        run.log_metrics({"loss": 1}, step=4)
    assert [row["step"] for row in ground.metrics(run.id)] == [4]
    assert [row["step"] for row in ground.unsent(run.id, "metrics.jsonl")] == [0, 1, 2, 3]


def test_failures_are_raised_where_that_is_asked_for(ground: Ground) -> None:
    ground.refuse("upload_traces", 402)
    run = prime_runs.init(on_error="raise", **EVAL)
    run.log_traces([trace()])
    with pytest.raises(APIError) as caught:
        run.flush()
    assert caught.value.status_code == 402
    run.finish()  # each is raised once
    assert ground.evaluation(run.id)["status"] == "COMPLETED"


def test_an_end_that_cannot_be_reported_is_written_down(
    ground: Ground,
    quick_retries: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("prime_traces.runs.recorder.REPORT_PATIENCE", 0.5)
    run = prime_runs.init(**EVAL)
    ground.refuse("finalize_evaluation", 500)
    run.finish({"acc": 0.5})
    end = json.loads((ground.folder / "prime-runs" / run.id / "run.json").read_text())
    assert (end["id"], end["status"], end["summary"]) == (run.id, "completed", {"acc": 0.5})
    assert "could not be reported" in caplog.text
    assert "run.json: HTTP 500" in caplog.text
    assert run.unsent_dir is not None


def test_records_that_can_be_neither_sent_nor_kept_are_counted_and_said(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.refuse("upload_traces", 402)
    with prime_runs.init(**EVAL) as run:
        (ground.folder / "prime-runs").write_text("in the way")
        for _ in range(5):
            run.log_traces([trace(), trace()])
            assert not run.flush()
    assert (run.dropped_records, run.unsent_records) == (10, 0)
    assert caplog.text.count("are lost so far") == 1
    assert "0 were refused and 10 were lost." in caplog.text
    assert "upload_file" not in caplog.text


@pytest.fixture
def doomed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """A platform of the test's own, to be stopped."""
    with PlatformProcess() as process:
        for name, value in process.env.items():
            monkeypatch.setenv(name, value)
        yield Ground(process, ground.folder)


def test_a_platform_that_stops_holds_the_loop_up_no_longer_than_promised(
    doomed: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_traces.runs.outlet.PATIENCE", 0.5)
    run = prime_runs.init(**{**TRAIN, "finish_timeout": 1})
    run.log_metrics({"loss": 1}, step=0)
    assert run.flush()
    doomed.platform.close()
    longest, began = 0.0, time.monotonic()
    steps = MAX_PARCELS + 40
    for step in range(1, steps):
        before = time.monotonic()
        run.log_metrics({"loss": 1}, step=step)
        run.log_traces([trace()])
        longest = max(longest, time.monotonic() - before)
    # Each outlet waits once, then knows that nothing moves.
    assert longest < 2 * 0.5 + 0.5
    assert time.monotonic() - began < 10
    run.finish()
    rows = doomed.unsent(run.id, "metrics.jsonl")
    assert sorted(row["step"] for row in rows) == list(range(1, steps))
    assert len(doomed.unsent(run.id, "traces.jsonl")) == steps - 1
    assert json.loads((doomed.folder / "prime-runs" / run.id / "run.json").read_text())
    assert PATIENCE == 5.0  # as it is documented


def test_a_platform_that_fails_to_the_end_is_named_and_raised(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    ground.refuse("upload_traces", 500)
    run = prime_runs.init(on_error="raise", **EVAL)
    run.log_traces([trace()])
    with pytest.raises(ServerError):
        run.finish(timeout=1.5)
    assert "HTTP 500" in caplog.text
    assert (len(run.errors), run.unsent_records) == (1, 1)


def test_a_platform_that_is_too_slow_is_a_failure_too(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=60))
    run = prime_runs.init(on_error="raise", **EVAL)
    for _ in range(3):
        run.log_traces([trace()])
    with pytest.raises(prime_runs.RecordsUnsentError):
        run.finish(timeout=0.5)
    assert len(run.errors) == 1


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 503},
        {"reset": "before_commit"},
        {"reset": "after_commit"},
        {"garbage": True},
        {"truncate": 5},
    ],
)
def test_a_hiccup_at_the_end_does_not_leave_the_run_open(
    ground: Ground, caplog: pytest.LogCaptureFixture, fault: dict[str, Any]
) -> None:
    run = prime_runs.init(**EVAL)
    ground.platform.add_faults(FaultRule("finalize_evaluation", nth=1, **fault))
    run.finish({"acc": 0.5})
    assert ground.evaluation(run.id)["status"] == "COMPLETED"
    assert (run.errors, run.unsent_dir, caplog.text) == ([], None, "")
    done = set(fault) & {"garbage", "truncate"} or fault.get("reset") == "after_commit"
    assert ground.requests("finalize_evaluation") == (1 if done else 2)


def test_flush_knows_what_was_given_up_before(ground: Ground) -> None:
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace(value=float("nan"))])
        assert not run.flush()
        assert not run.flush()
        assert run.failed_records == 1


def test_a_dead_platform_does_not_hold_finish_up(doomed: Ground) -> None:
    run = prime_runs.init(**EVAL)
    doomed.platform.close()
    run.log_traces([trace()])
    began = time.monotonic()
    run.finish(timeout=0.5)
    assert time.monotonic() - began < 0.5 + 3 + 1
    assert run.unsent_records == 1


@pytest.mark.parametrize("options", [EVAL, TRAIN])
def test_a_run_that_is_not_there_cannot_be_attached_to(
    ground: Ground, options: dict[str, Any]
) -> None:
    with pytest.raises(NotFoundError):
        prime_runs.init(id="nope", **options)


def test_what_is_no_episode_is_refused_as_one(ground: Ground) -> None:
    with prime_runs.init(**EVAL) as run:
        run.log_episodes([{"id": "e"}])
    assert len(ground.unsent(run.id, "rejected-episodes.jsonl")) == 1


def test_a_single_record_or_an_impossible_figure_is_an_error_at_once(ground: Ground) -> None:
    with prime_runs.init(**TRAIN) as run:
        for records in (trace(), "abc", 5):
            with pytest.raises(TypeError, match="put a single one into a list"):
                run.log_traces(records)  # type: ignore[arg-type]
        for step in (-1, 1.5, "1", True, 10**30):
            with pytest.raises((TypeError, ValueError), match="step is a whole number"):
                run.log_metrics({"loss": 1}, step=step)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="summary maps names to values"):
            run.update_summary(None)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="can't be pickled: attach to it"):
            pickle.dumps(run)
    assert (run.errors, ground.metrics(run.id)) == ([], [])
