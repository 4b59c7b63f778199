"""Folders with results of verifiers become evaluations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_train import AsyncTrainClient, InvalidSampleError, PushSamplesError

pytestmark = pytest.mark.timeout(30)

ROWS = [
    {
        "example_id": number,
        "prompt": [{"role": "user", "content": "q"}],
        "completion": [{"role": "assistant", "content": "a"}],
        "answer": "a",
        "reward": float(number % 2),
        "timing": {"total_ms": 3},
    }
    for number in range(4)
]
METADATA = {
    "env_id": "gsm8k",
    "model": "openai/gpt-4.1-mini",
    "num_examples": 4,
    "rollouts_per_example": 1,
    "avg_reward": 0.5,
    "sampling_args": {"temperature": 0.7},
}
EPISODE = {
    "id": "episode-1",
    "env": {"id": "word-ladder"},
    "task": {"data": {"idx": 7, "answer": "warm"}},
    "traces": [
        {
            "id": "trace-1",
            "agent": {"config": {"model": "acme/solver"}},
            "rewards": {
                "solved": {"score": 1.0},
                "short": {"score": 0.5, "weight": 0.5},
                "no": None,
            },
            "metrics": {"turns": 2},
            "nodes": [
                {"message": {"role": "user", "content": "q"}, "sampled": False},
                {"message": {"role": "assistant", "content": "a"}, "sampled": True},
            ],
        },
        {"id": "trace-2", "nodes": []},
    ],
}


def legacy(folder: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metadata.json").write_text(json.dumps(METADATA))
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


async def test_results_of_vf_eval_become_an_evaluation(
    client: AsyncTrainClient, tmp_path: Path
) -> None:
    done = await client.evaluations.evaluate_and_push(
        legacy(tmp_path), environment="primeintellect/gsm8k"
    )
    found = await client.evaluations.get(done.evaluation_id)
    assert (found.status, found.total_samples, found.avg_score) == ("COMPLETED", 4, 0.5)
    assert (found.name, found.framework) == ("gsm8k openai/gpt-4.1-mini", "verifiers")
    assert (found.metadata, found.metrics) == (METADATA, {"avg_reward": 0.5})
    assert [each async for each in client.evaluations.iter_samples(done.evaluation_id)] == ROWS


async def test_episodes_of_verifiers_become_a_sample_a_trace(
    client: AsyncTrainClient, tmp_path: Path
) -> None:
    (tmp_path / "traces.jsonl").write_text(json.dumps(EPISODE) + "\n\n")
    done = await client.evaluations.evaluate_and_push(tmp_path)
    found = await client.evaluations.get(done.evaluation_id)
    assert (found.environment_names, found.model_name) == (["word-ladder"], "acme/solver")
    first, second = (await client.evaluations.samples(done.evaluation_id)).samples
    assert (first["episode_id"], first["rollout_number"], first["reward"]) == ("episode-1", 0, 1.25)
    assert (first["example_id"], first["answer"]) == (7, "warm")
    assert [len(first[name]) for name in ("prompt", "completion")] == [1, 1]
    assert (second["sample_id"], second["rollout_number"]) == ("trace-2", 1)
    assert "reward" not in second


async def test_a_failed_push_closes_the_evaluation(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    platform.add_faults(FaultRule("push_evaluation_samples", reset="after_commit"))
    with pytest.raises(PushSamplesError):
        await client.evaluations.evaluate_and_push(legacy(tmp_path))
    (found,) = [each async for each in client.evaluations.iter()]
    assert found.status == "FAILED"
    assert found.error_message


async def test_a_bad_line_is_named_and_closes_the_evaluation(
    client: AsyncTrainClient, tmp_path: Path
) -> None:
    folder = legacy(tmp_path)
    results = folder / "results.jsonl"
    results.write_text(results.read_text() + "{")
    with pytest.raises(ValueError, match="line 5") as failure:
        await client.evaluations.evaluate_and_push(folder)
    assert not isinstance(failure.value, InvalidSampleError)
    (found,) = [each async for each in client.evaluations.iter()]
    assert found.status == "FAILED"


async def test_a_cancelled_push_closes_the_evaluation(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    platform.add_faults(FaultRule("push_evaluation_samples", delay_before=5))
    push = asyncio.ensure_future(client.evaluations.evaluate_and_push(legacy(tmp_path)))
    await asyncio.sleep(0.3)
    push.cancel()
    with pytest.raises(asyncio.CancelledError):
        await push
    (found,) = [each async for each in client.evaluations.iter()]
    assert found.status == "CANCELLED"


async def test_a_folder_without_results_sends_nothing(
    platform: LocalPlatform, client: AsyncTrainClient, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="results"):
        await client.evaluations.evaluate_and_push(tmp_path)
    (tmp_path / "traces.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="environment"):
        await client.evaluations.evaluate_and_push(tmp_path)
    assert platform.ledger()["requests"] == {}
