"""A run from its dispatch to a copy of its checkpoint, over a bad network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_local.training.runs.checkpoints import files, folder
from prime_train import AsyncTrainClient, LogGap, load_config

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quick_polls", "quick_looks")]

RL: dict[str, Any] = {
    "name": "sort",
    "max_steps": 6,
    "ckpt": {"interval": 2},
    "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
    "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]}},
    "inference": {},
}
STEP_SECONDS = 60


def bad_network(seed: int) -> list[FaultRule]:
    """Of all calls, those of the object store too, a third is refused and a tenth is reset."""
    headers = {"Retry-After": "0.01"}
    return [
        FaultRule("*", probability=0.3, seed=seed, status=429, headers=headers),
        FaultRule("*", probability=0.1, seed=seed + 10, reset="after_commit"),
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_a_run_is_paused_resumed_and_finished_and_its_checkpoint_fetched_byte_by_byte(
    platform: LocalPlatform, client: AsyncTrainClient, seed: int, tmp_path: Path
) -> None:
    platform.set_training_pace(step_time=STEP_SECONDS)
    platform.add_faults(*bad_network(seed))
    first = await client.runs.create(load_config(RL), volume="research", volume_size="1Gi")
    await client.runs.wait(first.run_id, until="RUNNING", timeout=10)
    await platform.advance(2.5 * STEP_SECONDS)
    await client.runs.pause(first.run_id)
    await platform.advance(STEP_SECONDS)
    paused = await client.runs.wait(first.run_id, until="PAUSED", timeout=10)
    assert paused.status == "PAUSED"

    second = await client.runs.resume(first.run_id)
    assert second.run_id != first.run_id
    await platform.advance(RL["max_steps"] * STEP_SECONDS)
    done = await client.runs.wait(second.run_id, timeout=10)
    assert done.status == "COMPLETED"
    steps = [row["step"] for row in await client.runs.get_metrics(second.run_id)]
    assert steps == [4, 5, 6]
    lines = [line async for line in client.runs.follow_logs(second.run_id, timeout=30)]
    assert lines
    assert not any(isinstance(line, LogGap) for line in lines)

    saved = await client.runs.list_checkpoints(second.run_id, "ready")
    assert [each.step for each in saved] == [4, 6]
    last = folder(second.run_id, 6)
    fetched = await client.volumes.get("research", f"{last}/", tmp_path / "checkpoint")
    expected = {
        Path(key).relative_to(last): b"".join(pieces) for key, pieces in files(second.run_id, 6)
    }
    copied = {
        path.relative_to(tmp_path / "checkpoint"): path.read_bytes()
        for path in (tmp_path / "checkpoint").rglob("*")
        if path.is_file()
    }
    assert copied == expected
    assert fetched.files == len(expected)

    platform.clear_faults()
    ledger = platform.ledger()
    assert (ledger["runs"]["created"], ledger["runs"]["live"]) == (2, 0)
    assert ledger["training_volumes"]["created"] == 1
    assert {run.id async for run in client.runs.iter()} == {first.run_id, second.run_id}
    refused = ledger["responses"].get("429", 0)
    reset = sum(ledger["requests"].values()) - sum(ledger["responses"].values())
    assert refused > 0
    assert reset > 0
    assert ledger["requests"]["GetObject"] >= len(expected)
