"""What hosted runs show: logs by tail windows, and what is kept of their steps."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

Json = dict[str, Any]
RUNS, DISPATCHED = "/api/v1/rft/runs", "/api/v1/training/runs"
RL: Json = {
    "max_steps": 40,
    "ckpt": {"interval": 15},
    "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
    "orchestrator": {
        "batch_size": 32,
        "train": {
            "group_size": 8,
            "source": [
                {"name": "sort", "env": {"taskset": {"id": "alphabet-sort"}}},
                {"name": "count", "env": {"taskset": {"id": "count"}}},
            ],
        },
    },
    "inference": {},
}
SFT: Json = {
    "max_steps": 5,
    "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
    "data": {"name": "datasets/x", "batch_size": 8},
}


class Shown:
    """What a run shows."""

    def __init__(self, client: RawClient, run_id: str) -> None:
        self.client = client
        self.run_id = run_id

    async def read(self, what: str, status: int = 200, **query: Any) -> Any:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        answer = await self.client.call("GET", f"{RUNS}/{self.run_id}/{what}?{asked}")
        assert answer.status == status, answer.body
        return answer.body

    async def lines(self, **query: Any) -> list[str]:
        logs: str = (await self.read("logs", **query))["logs"]
        return logs.split("\n") if logs else []

    async def refusal(self, status: int, **query: Any) -> str:
        return str((await self.read("logs", status, **query))["detail"])


async def dispatch(client: RawClient, config: Json = RL, **asked: Any) -> Shown:
    """Dispatch a run, whose volume is made for it."""
    if "volume" in asked:
        volume = {"name": asked["volume"], "size": "1Gi"}
        await client.call("POST", "/api/v1/training/volumes", volume)
    body = {"config": config, "gpuType": "H200_141GB", **asked}
    answer = await client.call("POST", DISPATCHED, body)
    assert answer.status == 201, answer.body
    return Shown(client, answer.body["runId"])


async def test_a_log_is_there_from_the_first_step_to_the_end(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_setup_time=10, training_step_time=10)
    run = await dispatch(client)
    assert "not available yet: the run is PENDING" in await run.refusal(404)
    await platform.advance(31)
    assert "simulated by prime-local" in (await run.lines())[0]
    await platform.advance(10)
    for component in ("orchestrator", "trainer", "inference"):
        assert len(await run.lines(component=component)) >= 3 + 12
    assert len(await run.lines(component="env-server", env_name="count")) >= 3 + 12
    await platform.advance(400)
    lines = await run.lines(tail_lines=5000)
    assert len(lines) == 3 + 40 * 12 + 1
    assert json.loads(lines[-1])["message"] == "Training finished after 40 steps"
    gone = await run.refusal(404, component="trainer")
    assert gone == "Logs not available: the pods of the run are gone"


async def test_a_log_only_grows_and_a_window_is_its_end(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_step_time=10, training_log_lines=7)
    run = await dispatch(client)
    before: list[str] = []
    for _ in range(8):
        await platform.advance(9.3)
        lines = await run.lines(tail_lines=5000)
        assert lines[: len(before)] == before
        assert len(lines) > len(before)
        before = lines
    assert await run.lines(tail_lines=5) == before[-5:]


async def test_a_restart_logs_on_from_the_newest_checkpoint(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_step_time=10)
    run = await dispatch(client)
    await platform.advance(205)
    before = await run.lines(tail_lines=5000)
    answer = await client.call("PUT", f"{RUNS}/{run.run_id}/restart")
    assert answer.status == 200, answer.body
    await platform.advance(20)
    lines = await run.lines(tail_lines=5000)
    assert lines[: len(before)] == before
    assert "from step 15 on" in lines[len(before) + 2]
    rows = (await run.read("metrics"))["metrics"]
    assert [row["step"] for row in rows] == list(range(1, 21))
    assert rows[15]["_timestamp"] > rows[19]["_timestamp"]


async def test_lines_are_filtered(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_step_time=10)
    run = await dispatch(client)
    await platform.advance(100)
    everything = await run.lines(tail_lines=5000)
    summaries = await run.lines(search="Reward ")
    assert summaries == [line for line in everything if "Reward " in line] != []
    assert await run.lines(search="Reward .*Loss", regex="true") == summaries
    assert await run.lines(search="Reward .*Loss") == []
    assert await run.lines(search="Reward ", tail_lines=2) == summaries[-2:]
    assert {json.loads(line)["level"] for line in await run.lines(level="DEBUG")} == {"DEBUG"}
    recent = await run.lines(since_seconds=60, tail_lines=5000)
    assert recent == everything[-len(recent) :]
    assert 6 * 12 - 1 <= len(recent) <= 6 * 12 + 1
    assert "no pattern" in await run.refusal(400, search="(", regex="true")


async def test_a_read_reaches_back_fifteen_minutes(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_step_time=100)
    run = await dispatch(client)
    await platform.advance(2000)
    assert 9 * 12 - 1 <= len(await run.lines(tail_lines=5000)) <= 9 * 12 + 1
    assert len(await run.lines(tail_lines=5000, since_seconds=86400)) >= 3 + 20 * 12


async def test_windows_may_be_narrow(open_platform: OpenPlatform) -> None:
    narrow = Assumptions(log_window="narrow")
    platform, client = await open_platform(assumptions=narrow, training_log_lines=500)
    run = await dispatch(client)
    await platform.advance(3)
    assert len(await run.lines()) == 200
    assert len(await run.lines(since_seconds=60)) == 1000


async def test_a_window_of_a_long_log_is_quick(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_log_lines=5000)
    run = await dispatch(client)
    await platform.advance(39.99)
    started = time.process_time()
    assert len(await run.lines(tail_lines=100)) == 100
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"component": "env-server"}, 400),
        ({"component": "env-server", "env_name": "other"}, 404),
        ({"component": "trainer", "pod_index": 1}, 404),
        ({"tail_lines": 5001}, 422),
        ({"since_seconds": 59}, 422),
        ({"level": "TRACE"}, 422),
    ],
)
async def test_what_is_not_there_is_refused(
    open_platform: OpenPlatform, query: Json, status: int
) -> None:
    platform, client = await open_platform()
    run = await dispatch(client)
    await platform.advance(1)
    detail = await run.refusal(status, **query)
    assert "not available" not in detail


async def test_the_trainers_log_of_sft_stays(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    run = await dispatch(client, SFT, mode="sft", volume="research")
    await platform.advance(6)
    assert "Training finished after 5 steps" in (await run.lines())[-1]
    assert "Loss" in (await run.lines(component="trainer", search="Step 5 |"))[0]
    assert "no pod 0" in await run.refusal(404, component="orchestrator")
    row = (await run.read("metrics"))["metrics"][4]
    assert row["loss/perplexity"] > 1
    assert (await run.read("progress"))["stepsWithSamples"] == []


async def test_steps_leave_metrics_samples_and_distributions(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_step_time=10)
    run = await dispatch(client)
    assert (await run.read("progress"))["latestStep"] is None
    await platform.advance(255)
    progress = await run.read("progress")
    assert (progress["latestStep"], progress["stepsWithSamples"]) == (25, [10, 20])
    rows = (await run.read("metrics", min_step=5, max_step=20, limit=10))["metrics"]
    assert [row["step"] for row in rows] == list(range(5, 15))
    first = (await run.read("samples", step=10, limit=20))["samples"]
    page = await run.read("samples", step=10, page=2, limit=20)
    assert (page["total"], page["total_pages"], len(page["samples"])) == (32, 2, 12)
    rewards = [each["reward"] for each in [*first, *page["samples"]]]
    assert rows[5]["reward/all/mean"] == round(sum(rewards) / 32, 6)
    for group in range(0, 32, 8):
        both = [*first, *page["samples"]][group : group + 8]
        assert abs(sum(each["advantage"] for each in both)) < 1e-4
    spread = await run.read("distributions", type="rewards", step=10)
    counts = [each["count"] for each in spread["chartData"]["histogramData"]]
    assert (sum(counts), counts[-1]) == (32, rewards.count(1.0))
    newest = await run.read("distributions", type="advantages")
    assert newest["step"] == 20
    assert (await run.read("samples", step=11))["total"] == 0
    await run.read("distributions", 404, type="colours")


async def test_rewards_rise(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    run = await dispatch(client)
    await platform.advance(41)
    rewards = [row["reward/all/mean"] for row in (await run.read("metrics"))["metrics"]]
    assert sum(rewards[:10]) + 2 < sum(rewards[-10:])


async def test_environment_servers_are_there_while_it_trains(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_setup_time=5)
    run = await dispatch(client)
    assert (await run.read("env-servers"))["env_servers"] == []
    await platform.advance(20)
    found = (await run.read("env-servers"))["env_servers"]
    assert [each["env_name"] for each in found] == ["sort", "count"]
    text = (await run.read("env-server-logs", env_name="sort"))["logs"]
    assert "env-server is up" in text
    await platform.advance(60)
    assert (await run.read("env-servers"))["env_servers"] == []


async def test_checkpoints_are_ready_once_the_volume_has_them(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    run = await dispatch(client, volume="research")
    await platform.advance(20)
    (saved,) = (await run.read("checkpoints"))["checkpoints"]
    assert (saved["step"], saved["status"], saved["uploadedAt"]) == (15, "UPLOADING", None)
    assert saved["storageUrl"] == f"runs/{run.run_id}/checkpoints/step_15"
    await platform.advance(30)
    ready = (await run.read("checkpoints", status_filter="READY"))["checkpoints"]
    assert [each["step"] for each in ready] == [15, 30, 40]
    assert (await run.read("checkpoints", status_filter="FAILED"))["checkpoints"] == []


async def test_a_run_that_never_trained_has_no_log(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_setup_time=5)
    run = await dispatch(client)
    platform.fail_run(run.run_id, "the cluster is gone")
    assert "ended before it trained" in await run.refusal(404)
    assert (await run.read("metrics"))["metrics"] == []


async def test_runs_of_elsewhere_have_their_own_metrics_alone(
    open_platform: OpenPlatform,
) -> None:
    _, client = await open_platform()
    asked = {
        "team_id": "cteam00000000000000000000",
        "base_model": "m",
        "max_steps": 3,
        "environments": [{"id": "e"}],
    }
    answer = await client.call("POST", "/api/v1/rft/external-runs", asked)
    assert answer.status == 201, answer.body
    run = Shown(client, answer.body["run"]["id"])
    body = {"run_id": run.run_id, "metrics": {"step": 2, "loss": 1.5}}
    assert (await client.call("POST", "/api/v1/rft/metrics", body)).status == 200
    assert (await run.read("metrics"))["metrics"] == [{"step": 2, "loss": 1.5}]
    assert (await run.read("progress"))["latestStep"] == 2
    assert (await run.read("samples", step=2))["samples"] == []
    assert (await run.read("checkpoints"))["checkpoints"] == []
    assert "not available" not in await run.refusal(404)


async def test_nobody_has_what_an_unknown_run_shows(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    run = Shown(client, "unknown")
    for what in ("logs", "env-servers", "metrics", "progress", "distributions", "checkpoints"):
        assert (await run.read(what, 404))["detail"] == "Run not found"
