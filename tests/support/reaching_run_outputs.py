"""For each operation of what training runs show: how a user's program comes to call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from reaching_runs import CONFIG, run

if TYPE_CHECKING:
    from reaching_training import Ground

ENVIRONMENT = "alphabet-sort"


async def logs(ground: Ground) -> None:
    made = await run(ground)
    assert "simulated" in await ground.client.runs.get_logs(made.run_id)


async def env_servers(ground: Ground) -> None:
    made = await run(ground)
    (server,) = await ground.client.runs.list_env_servers(made.run_id)
    assert server.env_name == ENVIRONMENT


async def env_server_logs(ground: Ground) -> None:
    made = await run(ground)
    assert await ground.client.runs.get_env_server_logs(made.run_id, ENVIRONMENT)


async def ended(ground: Ground) -> str:
    """A run that has done twenty steps."""
    made = await ground.client.runs.create(CONFIG)
    ground.platform.advance(20.5)
    await ground.client.runs.stop(made.run_id, wait=True)
    return made.run_id


async def metrics(ground: Ground) -> None:
    assert len(await ground.client.runs.get_metrics(await ended(ground))) >= 20


async def samples(ground: Ground) -> None:
    page = await ground.client.runs.get_samples(await ended(ground), 20)
    assert page.samples


async def progress(ground: Ground) -> None:
    found = await ground.client.runs.get_progress(await ended(ground))
    assert found.steps_with_samples == [10, 20]


async def distributions(ground: Ground) -> None:
    found = await ground.client.runs.get_distributions(await ended(ground), "rewards")
    assert found.histogram


async def checkpoints(ground: Ground) -> None:
    assert await ground.client.runs.list_checkpoints(await ended(ground)) == []


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "get_run_logs": logs,
    "list_run_env_servers": env_servers,
    "get_run_env_server_logs": env_server_logs,
    "get_run_metrics": metrics,
    "get_run_samples": samples,
    "get_run_progress": progress,
    "get_run_distributions": distributions,
    "list_run_checkpoints": checkpoints,
}
