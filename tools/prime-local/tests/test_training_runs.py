"""Hosted runs: what is admitted, how a run passes through its states, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

Json = dict[str, Any]
RUNS, DISPATCHED = "/api/v1/rft/runs", "/api/v1/training/runs"
MODEL = "Qwen/Qwen3-4B-Instruct-2507"
H200 = "H200_141GB"
RL: Json = {
    "max_steps": 10,
    "seq_len": 2048,
    "ckpt": {"interval": 4, "keep_last": 1},
    "model": {"name": MODEL},
    "orchestrator": {
        "batch_size": 128,
        "train": {
            "group_size": 8,
            "source": [{"name": "sort", "env": {"taskset": {"id": "alphabet-sort"}}}],
        },
    },
    "inference": {},
}
SFT: Json = {
    "max_steps": 5,
    "model": {"name": MODEL},
    "data": {"name": "datasets/x", "batch_size": 8},
}


async def dispatch(client: RawClient, config: Json | None = None, **asked: Any) -> str:
    body = {"config": config or RL, "name": "mine", "gpuType": H200, **asked}
    answer = await client.call("POST", DISPATCHED, body)
    assert answer.status == 201, answer.body
    made: str = answer.body["runId"]
    return made


async def read(client: RawClient, run_id: str) -> Json:
    answer = await client.call("GET", f"{RUNS}/{run_id}")
    assert answer.status == 200, answer.body
    run: Json = answer.body["run"]
    return run


async def status(client: RawClient, run_id: str) -> str:
    found: str = (await read(client, run_id))["status"]
    return found


async def test_a_run_passes_through_its_states_to_its_end(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(training_setup_time=60, training_step_time=10)
    run_id = await dispatch(client)
    seen = []
    for _ in range(4):
        seen.append(await status(client, run_id))
        await platform.advance(60)
    assert seen == ["PENDING", "CREATING", "PULLING_IMAGE", "RUNNING"]
    assert (await read(client, run_id))["completedAt"] is None
    await platform.advance(41)
    run = await read(client, run_id)
    assert (run["status"], run["errorMessage"], run["failureAnalysis"]) == ("COMPLETED", None, None)
