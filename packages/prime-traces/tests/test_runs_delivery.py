"""Runs against a real platform: what is logged arrives, or is on disk and said so."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from code_blocks import python_blocks
from raw_server import RawServer, answer
from run_ground import TEAM, Ground, episode, trace
from run_ground import ground as ground
from run_ground import platform_process as platform_process

import prime_traces.runs as prime_runs
from prime_core.errors import ForbiddenError, NotFoundError
from prime_local import FaultRule
from prime_traces.runs import EnvironmentRef, EnvironmentResolutionError, TrainingSpec

EVAL: dict[str, Any] = {"environments": ["primeintellect/gsm8k"], "finish_timeout": 20}
TRAIN: dict[str, Any] = {"kind": "train", "model": "m", "team_id": TEAM, "finish_timeout": 20}


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the pauses between attempts."""
    monkeypatch.setattr("prime_core.retries.BASE_DELAY", 0.001)
    monkeypatch.setattr("prime_traces.runs.outlet.PAUSES", (0.01, 0.02))


def test_an_evaluation_is_made_filled_and_completed(ground: Ground) -> None:
    episodes = [episode(trace(1.0), trace(0.0)), episode(trace(0.5)), episode()]
    with prime_runs.init(
        name="mine", model="m/x", tags=["a"], config={"n": 1}, framework="verifiers", **EVAL
    ) as run:
        run.log_episodes(episodes)
        run.log_traces(trace(i / 3) for i in range(3))
        run.log_metrics({"acc": 0.25}, step=1)
        run.log_metrics({"acc": 0.5, "other": 1}, step=2)
        assert run.flush()
        run.update_summary(prime_runs.metrics.from_episodes(episodes))
    assert (run.status, run.finished, run.errors, run.unsent_dir) == ("completed", True, [], None)
    found = ground.evaluation(run.id)
    assert found["status"] == "COMPLETED"
    assert (found["name"], found["model_name"], found["tags"]) == ("mine", "m/x", ["a"])
    assert (found["environment_names"], found["metadata"]) == (["gsm8k"], {"n": 1})
    assert run.url == found["viewer_url"]
    assert found["metrics"]["acc"] == 0.5
    assert found["metrics"]["avg_reward"] == 0.5
    assert found["metrics"]["prime_runs.traces_episodes_written"] == 2
    stored = ground.traces(run.id)
    assert len(stored) == 6
    context = {"source": "prime-runs", "run_type": "eval", "framework": "verifiers", "model": "m/x"}
    assert all(each["context"] == context for each in stored)
    assert {receipt.status for receipt in run.receipts} == {"committed"}


def test_a_training_run_keeps_its_metrics_by_step(ground: Ground) -> None:
    figures = TrainingSpec(max_steps=3, batch_size=8, wandb_project="p")
    with prime_runs.init(
        name="t", environments=["a/b", "c"], training=figures, config={"lr": 1}, **TRAIN
    ) as run:
        for step in range(3):
            run.log_metrics({"loss": 1 / (step + 1)}, step=step)
        run.log_metrics({"entropy": 2.0}, step=2)
    found = ground.training(run.id)
    assert (found["status"], found["maxSteps"], found["batchSize"]) == ("COMPLETED", 3, 8)
    assert found["environments"] == [{"id": "a/b"}, {"id": "c"}]
    assert (found["runConfig"], found["wandbProject"]) == ({"lr": 1}, "p")
    rows = ground.metrics(run.id)
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert (rows[2]["loss"], rows[2]["entropy"]) == (1 / 3, 2.0)
    assert run.url == f"https://app.primeintellect.ai/dashboard/training/{run.id}"


async def test_the_async_run_is_the_same(ground: Ground) -> None:
    async with await prime_runs.async_init(**EVAL) as run:
        await run.log_traces([trace()])
        await run.log_metrics({"acc": 1})
        assert await run.flush()
    found = ground.evaluation(run.id)
    assert (found["status"], found["metrics"]["acc"]) == ("COMPLETED", 1)
    assert len(ground.traces(run.id)) == 1


@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        (RuntimeError("boom"), "FAILED", "RuntimeError: boom"),
        (KeyboardInterrupt(), "CANCELLED", "cancelled: KeyboardInterrupt"),
        (SystemExit(3), "FAILED", "SystemExit: 3"),
        (SystemExit(143), "CANCELLED", "cancelled: SystemExit: 143"),
    ],
)
def test_the_end_of_the_body_is_the_end_of_the_run(
    ground: Ground, raised: BaseException, status: str, message: str
) -> None:
    run = prime_runs.init(**EVAL)

    def body() -> None:
        with run:
            run.log_metrics({"acc": 1})
            run.update_summary({"done": 0.5})
            raise raised

    with pytest.raises(type(raised)):
        body()
    assert run.status == status.lower()
    found = ground.evaluation(run.id)
    assert (found["status"], found["error_message"]) == (status, message)
    assert found["metrics"]["done"] == 0.5


def test_a_training_run_that_is_cancelled_is_reported_as_failed(ground: Ground) -> None:
    run = prime_runs.init(**TRAIN)
    run.finish(status="cancelled")
    found = ground.training(run.id)
    assert (found["status"], found["errorMessage"]) == ("FAILED", "cancelled")


def test_finish_counts_once(ground: Ground) -> None:
    run = prime_runs.init(**EVAL)
    with pytest.raises(ValueError, match="status is one of"):
        run.finish(status="running")
    run.fail("no good")
    run.finish({"late": 1})
    assert (run.status, run.summary) == ("failed", {})
    assert ground.evaluation(run.id)["error_message"] == "no good"
    assert ground.requests("update_evaluation") == 1
    with pytest.raises(prime_runs.RunFinishedError, match="as failed"):
        run.log_metrics({"x": 1})
    with pytest.raises(prime_runs.RunFinishedError):
        run.update_summary({"x": 1})


def test_kept_errors_keep_nothing_of_what_was_sent(ground: Ground) -> None:
    ground.refuse("upload_traces", 402)
    with prime_runs.init(**EVAL) as run:
        run.log_traces([trace(), {"id": "bad"}])
    assert len(run.errors) == 2
    for error in run.errors:
        assert error.__traceback__ is None
        assert error.__context__ is None or error.__context__.__traceback__ is None


def test_the_platforms_own_workers_attach_at_its_internal_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with RawServer(answer(200, {}), answer(200, {})) as server:
        address = f"{server.url}/api/internal/rft"
        with prime_runs.init(kind="train", id="r1", api_key="token", base_url=address) as run:
            run.log_metrics({"loss": 1}, step=0)
        assert run.errors == []
        metrics, end = server.requests
    assert (metrics.target, end.target) == (
        "/api/internal/rft/metrics",
        "/api/internal/rft/finalize",
    )
    assert metrics.headers["x-api-key"] == end.headers["x-api-key"] == "token"
    assert metrics.headers["authorization"] == "Bearer token"
    assert end.json == {"run_id": "r1", "exit_code": 0}


def test_a_run_that_was_closed_elsewhere_ends_quietly(ground: Ground) -> None:
    run = prime_runs.init(**EVAL)
    with prime_runs.init(id=run.id, finish_timeout=20) as attached:
        assert attached.attached
        attached.log_traces([trace()])
    run.finish()
    assert (attached.errors, run.errors) == ([], [])
    assert ground.evaluation(run.id)["status"] == "COMPLETED"
    assert len(ground.traces(run.id)) == 1


def test_an_attached_run_reports_a_clean_end_only(ground: Ground) -> None:
    owner = prime_runs.init(**TRAIN)
    prime_runs.init(kind="train", id=owner.id).fail("no")
    assert ground.training(owner.id)["status"] == "RUNNING"
    prime_runs.init(kind="train", id=owner.id).finish()
    assert ground.training(owner.id)["status"] == "COMPLETED"
    owner.finish()
    assert owner.errors == []


def test_environments_are_found_or_made(ground: Ground) -> None:
    run = prime_runs.init(environments=["mine", EnvironmentRef(slug="primeintellect/wordle")])
    ids = ground.evaluation(run.id)["environment_ids"]
    run.finish()
    again = prime_runs.init(environments=[{"name": "mine"}, {"id": ids[1], "version_id": "v"}])
    assert ground.evaluation(again.id)["environment_ids"] == ids
    again.finish()


def test_an_unknown_environment_is_named(ground: Ground) -> None:
    with pytest.raises(EnvironmentResolutionError, match="'someone/nothing'") as caught:
        prime_runs.init(environments=["someone/nothing"])
    assert isinstance(caught.value.__cause__, NotFoundError)
    assert ground.requests("create_evaluation") == 0


def test_a_run_that_the_platform_refuses_is_an_error_of_init(ground: Ground) -> None:
    ground.refuse("create_external_run", 403)
    with pytest.raises(ForbiddenError):
        prime_runs.init(**TRAIN)


def test_a_slow_platform_does_not_hold_the_caller(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=1.0))
    run = prime_runs.init(**EVAL)
    before = time.monotonic()
    for _ in range(50):
        run.log_traces([trace()])
    assert time.monotonic() - before < 0.8
    run.finish()
    assert len(ground.traces(run.id)) == 50
    # What waited went as one.
    assert ground.requests("upload_traces") <= 3


def test_what_is_not_sent_when_the_time_of_finish_is_over_is_kept(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", delay_before=5.0))
    run = prime_runs.init(**EVAL)
    run.log_traces([trace()])
    run.log_traces([trace()])
    before = time.monotonic()
    run.finish(timeout=0.3)
    assert time.monotonic() - before < 3
    assert len(ground.unsent(run.id, "traces.jsonl")) == 2
    assert ground.evaluation(run.id)["status"] == "COMPLETED"


def test_a_lost_answer_neither_loses_nor_doubles_a_trace(ground: Ground) -> None:
    ground.platform.add_faults(FaultRule("upload_traces", reset="after_commit", nth=1))
    given = [trace() for _ in range(3)]
    with prime_runs.init(**EVAL) as run:
        run.log_traces(given)
    assert len(ground.traces(run.id)) == 3
    assert run.unsent_records == 0


def test_the_readme_runs(ground: Ground) -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    section = readme.partition("## Runs that report")[2].partition("\n## ")[0]
    names: dict[str, Any] = {"__name__": "snippet"}
    for _, code in python_blocks(section):
        exec(code, names)
    run = names["run"]
    assert (run.status, run.errors) == ("completed", [])
    assert ground.trace_ids(run.id) == {"trace-1"}
    assert ground.evaluation(run.id)["metrics"]["avg_reward"] == 1.0
