"""For each operation of training runs: how a user's program comes to call it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from prime_local import FaultRule
from prime_train import DispatchedRun, load_config

if TYPE_CHECKING:
    from reaching_training import Ground

CONFIG = load_config(
    {
        "model": {"name": "Qwen/Qwen3-0.6B"},
        "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]}},
        "inference": {},
    }
)


async def run(ground: Ground, volume: str | None = None) -> DispatchedRun:
    """A run that trains until it is ended."""
    made = await ground.client.runs.create(CONFIG, volume=volume)
    await ground.client.runs.wait(made.run_id, until="RUNNING", timeout=20)
    return made


async def prepare(ground: Ground) -> None:
    assert (await ground.client.runs.prepare("sft")).mode == "sft"


async def discard(ground: Ground) -> None:
    """Cancel a create whose run is made, so that it is deleted."""
    ground.platform.add_faults(FaultRule("create_training_run", delay_after=0.5))
    create = asyncio.ensure_future(ground.client.runs.create(CONFIG))
    while not ground.platform.ledger()["runs"]["created"]:  # noqa: ASYNC110  # of a process
        await asyncio.sleep(0.02)
    create.cancel()
    await asyncio.wait([create])
    await ground.client.aclose()
    assert ground.platform.ledger()["runs"]["deleted"] == 1


async def pause(ground: Ground) -> DispatchedRun:
    await ground.client.volumes.create("reached", "1Gi")
    made = await run(ground, "reached")
    assert (await ground.client.runs.pause(made.run_id)).status == "PAUSING"
    await ground.client.runs.wait(made.run_id, until="PAUSED", timeout=20)
    return made


async def resume(ground: Ground) -> None:
    made = await pause(ground)
    assert (await ground.client.runs.resume(made.run_id)).run_id != made.run_id


async def list_runs(ground: Ground) -> None:
    made = await run(ground)
    assert [each.id for each in (await ground.client.runs.list()).runs] == [made.run_id]


async def get(ground: Ground) -> None:
    made = await run(ground)
    assert (await ground.client.runs.get(made.run_id)).status == "RUNNING"


async def delete(ground: Ground) -> None:
    await ground.client.runs.delete((await run(ground)).run_id)


async def stop(ground: Ground) -> None:
    made = await run(ground)
    assert (await ground.client.runs.stop(made.run_id, wait=True)).status == "STOPPED"


async def restart(ground: Ground) -> None:
    made = await run(ground)
    assert (await ground.client.runs.restart(made.run_id)).status == "PENDING"


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "create_training_run": run,
    "prepare_training_run": prepare,
    "delete_training_run": discard,
    "pause_training_run": pause,
    "resume_training_run": resume,
    "list_training_runs": list_runs,
    "get_training_run": get,
    "delete_run": delete,
    "stop_run": stop,
    "restart_run": restart,
}
