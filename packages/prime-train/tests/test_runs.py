"""Runs: dispatched once, waited for, stopped, paused, resumed, and never lost track of."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIConnectionError,
    AsyncTrainClient,
    BadRequestError,
    ConflictError,
    DispatchedRun,
    NotFoundError,
    RunEndedError,
    RunFailedError,
    RunStatus,
    RunTimeoutError,
    load_config,
)

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]

MODEL = "Qwen/Qwen3-4B-Instruct-2507"
H200 = "H200_141GB"
RL: dict[str, Any] = {
    "name": "sort",
    "max_steps": 10,
    "model": {"name": MODEL},
    "orchestrator": {
        "batch_size": 64,
        "train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]},
    },
    "inference": {},
}
CONFIG = load_config(RL)
TOKEN = "sk-hidden-value"


@pytest.fixture
async def slow(start_platform: StartPlatform) -> LocalPlatform:
    """A platform on which each state before RUNNING takes a minute, and each step ten seconds."""
    return await start_platform(training_setup_time=60, training_step_time=10)


@pytest.fixture
async def slow_client(slow: LocalPlatform) -> AsyncIterator[AsyncTrainClient]:
    async with AsyncTrainClient() as client:
        yield client


async def running(platform: LocalPlatform, client: AsyncTrainClient, **asked: Any) -> DispatchedRun:
    """A run that trains."""
    made = await client.runs.create(CONFIG, **{"gpu_type": H200, **asked})
    await platform.advance(181)
    assert (await client.runs.get(made.run_id)).status == "RUNNING"
    return made


async def paused(platform: LocalPlatform, client: AsyncTrainClient) -> DispatchedRun:
    """A run that is PAUSED after its first step."""
    made = await running(platform, client, volume="research")
    await client.runs.pause(made.run_id)
    await platform.advance(10)
    assert (await client.runs.get(made.run_id)).status == "PAUSED"
    return made


async def test_a_run_is_dispatched_and_waited_for(start_platform: StartPlatform) -> None:
    await start_platform(training_step_time=0.02)
    async with AsyncTrainClient() as client:
        made = await client.runs.create(CONFIG, gpu_type=H200)
        assert (made.on_demand, made.gpu_type, made.is_beta) == (True, H200, True)
        assert made.price_per_gpu_hour == Decimal("2.69")
        assert made.estimated_cost_per_hour == Decimal("5.38")
        done = await client.runs.wait(made.run_id, timeout=10)
    assert (done.status, done.kind, done.loss) == ("COMPLETED", "DEDICATED_FULL_FT", "rl")
    assert (done.base_model, done.max_steps, done.gpu_count) == (MODEL, 10, 2)
    assert done.name is not None
    assert done.name.startswith("sort-")
    assert done.started_at is not None
    assert done.completed_at is not None
    assert done.environments[0]["taskset"] == {"id": "alphabet-sort"}


async def test_the_runs_own_key_is_not_shown(
    client: AsyncTrainClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = await client.runs.create(CONFIG)
    assert made.token_value is not None
    key = made.token_value.get_secret_value()
    assert key.startswith("pit_")
    assert key not in f"{made!r} {made.model_dump_json()} {caplog.text}"


async def test_a_state_on_the_way_is_waited_for(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await slow_client.runs.create(CONFIG)
    waiting = asyncio.ensure_future(slow_client.runs.wait(made.run_id, until="running", timeout=9))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await slow.advance(181)
    assert (await waiting).status == RunStatus.RUNNING
    await slow.advance(100)
    assert (await slow_client.runs.wait(made.run_id, until="RUNNING", timeout=9)).status == (
        "COMPLETED"
    )


async def test_a_wait_has_a_deadline(slow_client: AsyncTrainClient) -> None:
    made = await slow_client.runs.create(CONFIG)
    with pytest.raises(RunTimeoutError, match="PENDING") as late:
        await slow_client.runs.wait(made.run_id, timeout=0.2)
    assert isinstance(late.value, TimeoutError)
    assert (late.value.run_id, late.value.status) == (made.run_id, "PENDING")


async def test_failures_to_read_a_run_say_nothing_of_it(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    slow.add_faults(
        FaultRule("get_training_run", times=4, status=503),
        FaultRule("get_training_run", times=3, reset="before_commit"),
    )
    waiting = asyncio.ensure_future(slow_client.runs.wait(made.run_id, timeout=20))
    await asyncio.sleep(0.3)
    await slow.advance(100)
    assert (await waiting).status == "COMPLETED"


async def test_a_failed_run_tells_why(slow: LocalPlatform, slow_client: AsyncTrainClient) -> None:
    made = await running(slow, slow_client)
    slow.fail_run(made.run_id, "CUDA out of memory")
    with pytest.raises(RunFailedError, match="CUDA out of memory") as failed:
        await slow_client.runs.wait(made.run_id, timeout=5)
    assert failed.value.error_message == "CUDA out of memory"
    analysis = failed.value.failure_analysis
    assert analysis is not None
    assert analysis.confidence is not None
    assert analysis.evidence
    read = await slow_client.runs.wait(made.run_id, until=["FAILED", "COMPLETED"], timeout=5)
    assert read.status == "FAILED"


async def test_what_the_cluster_refuses_fails_later(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    slow.add_faults(FaultRule("create_training_run", fails="The cluster has no such image"))
    made = await slow_client.runs.create(CONFIG)
    await slow.advance(121)
    with pytest.raises(RunFailedError, match="no such image"):
        await slow_client.runs.wait(made.run_id, timeout=5)


async def test_a_run_is_stopped_and_waited_for(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    assert (await slow_client.runs.stop(made.run_id)).status == "RUNNING"
    stopping = asyncio.ensure_future(slow_client.runs.stop(made.run_id, wait=True, timeout=9))
    await asyncio.sleep(0.1)
    await slow.advance(61)
    assert (await stopping).status == "STOPPED"
    assert (await slow_client.runs.stop(made.run_id)).status == "STOPPED"
    with pytest.raises(RunEndedError, match="STOPPED") as ended:
        await slow_client.runs.wait(made.run_id, timeout=5)
    assert ended.value.status == "STOPPED"


async def test_a_stop_that_takes_too_long_says_so(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    with pytest.raises(RunTimeoutError):
        await slow_client.runs.stop(made.run_id, wait=True, timeout=0.2)


async def test_stopping_a_run_that_has_ended_otherwise_is_no_failure(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    await slow.advance(200)
    assert (await slow_client.runs.stop(made.run_id, wait=True)).status == "COMPLETED"


async def test_a_run_restarts_while_it_runs(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await slow_client.runs.create(CONFIG)
    with pytest.raises(ConflictError):
        await slow_client.runs.restart(made.run_id)
    await slow.advance(181)
    assert (await slow_client.runs.restart(made.run_id)).status == "PENDING"


async def test_a_restart_without_an_answer_is_not_sent_again(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    slow.add_faults(FaultRule("restart_run", reset="after_commit"))
    with pytest.raises(APIConnectionError):
        await slow_client.runs.restart(made.run_id)
    assert slow.ledger()["requests"]["restart_run"] == 1


async def test_a_paused_run_continues_as_another(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client, volume="research")
    state = await slow_client.runs.pause(made.run_id)
    assert (state.run_id, state.status) == (made.run_id, "PAUSING")
    await slow.advance(10)
    ended = await slow_client.runs.wait(made.run_id, until=RunStatus.PAUSED, timeout=5)
    again = await slow_client.runs.resume(made.run_id, gpu_type="B200_180GB", image_tag="v0.12.0")
    assert again.run_id != made.run_id
    assert (again.gpu_type, again.price_per_gpu_hour) == ("B200_180GB", Decimal("4.49"))
    resumed = await slow_client.runs.get(again.run_id)
    assert (resumed.name, resumed.volume_name) == (ended.name, "research")
    # One step is done: nine are left, after three minutes.
    await slow.advance(180 + 89)
    assert (await slow_client.runs.get(again.run_id)).status == "RUNNING"
    await slow.advance(2)
    assert (await slow_client.runs.get(again.run_id)).status == "COMPLETED"


async def test_a_paused_run_continues_with_an_edited_config(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await paused(slow, slow_client)
    edited = load_config(RL, {"max_steps": 20})
    again = await slow_client.runs.resume(made.run_id, config=edited)
    found = await slow_client.runs.get(again.run_id)
    assert (found.max_steps, found.volume_name) == (20, "research")
    other = load_config(RL, {"model": {"name": "Qwen/Qwen3-8B"}})
    await slow_client.runs.stop(again.run_id)
    await slow.advance(61)
    with pytest.raises(BadRequestError, match="same model"):
        await slow_client.runs.create(other, resume_from=made.run_id)


async def test_only_a_paused_run_is_resumed(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client, volume="research")
    with pytest.raises(ConflictError, match="PAUSED"):
        await slow_client.runs.resume(made.run_id)
    with pytest.raises(NotFoundError):
        await slow_client.runs.resume("unknown")
    assert "create_training_run" in slow.ledger()["requests"]
    assert slow.ledger()["runs"]["created"] == 1


async def test_a_pause_without_an_answer_is_looked_up(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client, volume="research")
    slow.add_faults(FaultRule("pause_training_run", reset="after_commit"))
    assert (await slow_client.runs.pause(made.run_id)).status == "PAUSING"
    assert slow.ledger()["requests"]["pause_training_run"] == 1


async def test_a_pause_that_did_not_arrive_fails(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client, volume="research")
    slow.add_faults(FaultRule("pause_training_run", status=500))
    with pytest.raises(Exception, match="500"):
        await slow_client.runs.pause(made.run_id)
    assert (await slow_client.runs.get(made.run_id)).status == "RUNNING"


async def test_a_run_without_a_volume_is_not_paused(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    with pytest.raises(BadRequestError, match="volume"):
        await slow_client.runs.pause(made.run_id)


async def test_a_deleted_run_is_gone(slow: LocalPlatform, slow_client: AsyncTrainClient) -> None:
    made = await running(slow, slow_client)
    await slow_client.runs.delete(made.run_id)
    assert slow.ledger()["runs"] == {"live": 0, "peak": 1, "created": 1, "deleted": 1}
    for act in (slow_client.runs.get, slow_client.runs.delete, slow_client.runs.wait):
        with pytest.raises(NotFoundError):
            await act(made.run_id)


async def test_a_delete_without_an_answer_is_done(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    made = await running(slow, slow_client)
    slow.add_faults(FaultRule("delete_run", nth=1, reset="after_commit"))
    await slow_client.runs.delete(made.run_id)
    assert (await slow_client.runs.list()).runs == []
