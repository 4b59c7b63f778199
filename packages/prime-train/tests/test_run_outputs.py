"""What runs show besides their logs: metrics, progress, samples, distributions, checkpoints."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    NotFoundError,
    RunCheckpointStatus,
    RunDistribution,
    load_config,
)
from prime_train.models.run_outputs import RunMetrics

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = pytest.mark.timeout(30)

CONFIG: dict[str, Any] = {
    "max_steps": 40,
    "ckpt": {"interval": 15},
    "model": {"name": "Qwen/Qwen3-0.6B"},
    "orchestrator": {
        "batch_size": 32,
        "train": {"source": [{"name": "sort", "env": {"taskset": {"id": "alphabet-sort"}}}]},
    },
    "inference": {},
}


async def dispatched(client: AsyncTrainClient, volume: str | None = None) -> str:
    made = await client.runs.create(load_config(CONFIG), gpu_type="H200_141GB", volume=volume)
    return made.run_id


async def test_metrics_are_read_by_steps(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    run_id = await dispatched(client)
    assert await client.runs.get_metrics(run_id) == []
    await platform.advance(41)
    rows = await client.runs.get_metrics(run_id)
    assert [row["step"] for row in rows] == list(range(1, 41))
    assert rows[0]["reward/all/mean"] < rows[-1]["reward/all/mean"]
    some = await client.runs.get_metrics(run_id, min_step=10, max_step=30, limit=5)
    assert some == rows[9:14]


def test_figures_are_kept_as_they_come() -> None:
    text = '{"metrics":[{"step":1,"tokens":123456789012345678901,"loss":NaN,"norm":Infinity}]}'
    (row,) = RunMetrics.model_validate_json(text).metrics
    assert row["tokens"] == 123456789012345678901
    assert math.isnan(row["loss"])
    assert row["norm"] == math.inf


async def test_progress_names_the_steps_with_samples(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await dispatched(client)
    before = await client.runs.get_progress(run_id)
    assert (before.latest_step, before.steps_with_samples) == (None, [])
    await platform.advance(25.5)
    progress = await client.runs.get_progress(run_id)
    assert (progress.latest_step, progress.steps_with_samples) == (25, [10, 20])
    assert progress.steps_with_distributions == [10, 20]
    assert progress.last_updated_at is not None


async def test_samples_are_read_page_after_page(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await dispatched(client)
    await platform.advance(25)
    page = await client.runs.get_samples(run_id, 20, limit=10)
    assert (page.total, page.total_pages, len(page.samples)) == (32, 4, 10)
    platform.add_faults(FaultRule("get_run_samples", nth=2, reset="after_commit"))
    samples = [each async for each in client.runs.iter_samples(run_id, 20, page_size=10)]
    assert [each.sample_id for each in samples] == list(range(32))
    first = samples[0]
    assert (first.env_name, first.reward in (0.0, 0.5, 1.0)) == ("sort", True)
    assert json.loads(first.prompt)[0]["role"] == "user"
    assert list(first.model_extra or {}) == ["num_turns"]
    assert [each async for each in client.runs.iter_samples(run_id, 11)] == []


async def test_distributions_are_of_the_samples(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await dispatched(client)
    await platform.advance(25)
    found = await client.runs.get_distributions(run_id, "rewards", 10)
    rewards = [each.reward async for each in client.runs.iter_samples(run_id, 10)]
    assert sum(each.count for each in found.histogram) == len(rewards)
    assert found.histogram[-1].count == rewards.count(1.0)
    assert (await client.runs.get_distributions(run_id)).step == 20
    with pytest.raises(NotFoundError, match="colours"):
        await client.runs.get_distributions(run_id, "colours")


@pytest.mark.parametrize(
    "text",
    [
        '{"bins":[{"binStart":0,"binEnd":1,"count":2}],"chartData":null}',
        '{"chartData":{"histogramData":[{"binStart":0,"binEnd":1,"count":2}]}}',
        '{"chart_data":{"histogram_data":[{"bin_start":0,"bin_end":1,"count":2}]}}',
    ],
)
def test_a_histogram_is_read_in_each_of_its_forms(text: str) -> None:
    (found,) = RunDistribution.model_validate_json(text).histogram
    assert (found.bin_start, found.bin_end, found.count) == (0, 1, 2)


async def test_checkpoints_are_listed_by_their_state(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform()
    async with AsyncTrainClient() as client:
        run_id = await dispatched(client, volume="research")
        await platform.advance(16)
        (saved,) = await client.runs.list_checkpoints(run_id)
        assert (saved.step, saved.run_id, saved.uploaded_at) == (15, run_id, None)
        await platform.advance(30)
        ready = await client.runs.list_checkpoints(run_id, "ready")
        assert [each.step for each in ready] == [15, 30, 40]
        assert all(each.uploaded_at and each.uploaded_at >= each.created_at for each in ready)
        assert ready[0].storage_url == f"runs/{run_id}/checkpoints/step_15"
        assert await client.runs.list_checkpoints(run_id, RunCheckpointStatus.FAILED) == []


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("get_metrics", {"min_step": -1}),
        ("get_metrics", {"max_step": 1.5}),
        ("get_metrics", {"limit": 0}),
        ("get_metrics", {"min_step": 3, "max_step": 2}),
        ("get_samples", {"step": -1}),
        ("get_samples", {"step": True}),
        ("get_samples", {"step": 1, "page": 0}),
        ("get_samples", {"step": 1, "limit": 0}),
        ("get_distributions", {"step": "latest"}),
        ("get_distributions", {"distribution_type": ""}),
        ("list_checkpoints", {"status_filter": "DONE"}),
        ("list_checkpoints", {"status_filter": 5}),
    ],
)
async def test_a_wrong_argument_is_refused_by_name_before_it_is_sent(
    platform: LocalPlatform, client: AsyncTrainClient, method: str, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=list(wrong)[-1]):
        await getattr(client.runs, method)("run", **wrong)
    assert platform.ledger()["requests"] == {}


async def test_an_unknown_run_shows_nothing(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    for ask in (
        client.runs.get_metrics("unknown"),
        client.runs.get_progress("unknown"),
        client.runs.get_samples("unknown", 1),
        client.runs.get_distributions("unknown"),
        client.runs.list_checkpoints("unknown"),
        client.runs.list_env_servers("unknown"),
    ):
        with pytest.raises(NotFoundError, match="Run not found"):
            await ask
