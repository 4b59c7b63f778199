"""What hosted runs leave on their volumes, read over S3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from s3_client import client_of

from prime_local import LocalPlatform
from prime_local.training.runs.checkpoints import files

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

Json = dict[str, Any]
DISPATCHED, VOLUMES = "/api/v1/training/runs", "/api/v1/training/volumes"
CONFIG: Json = {
    "max_steps": 10,
    "ckpt": {"interval": 4, "keep_last": 1},
    "model": {"name": "Qwen/Qwen3-0.6B"},
    "inference": {},
}
OPTIONS: Json = {"training_step_time": 10}


async def call(client: RawClient, method: str, path: str, body: Json | None = None) -> Json:
    answer = await client.call(method, path, body)
    assert answer.status < 300, answer.body
    found: Json = answer.body
    return found


async def dispatched(client: RawClient, **config: Any) -> str:
    """A run on a volume that is there by then, when all timers of its installation have run."""
    if not (await call(client, "GET", VOLUMES))["volumes"]:
        await call(client, "POST", VOLUMES, {"name": "research", "size": "1Gi", "warm": False})
    body = {"config": {**CONFIG, **config}, "volume": "research"}
    made: str = (await call(client, "POST", DISPATCHED, body))["runId"]
    return made


async def saved(client: RawClient) -> dict[str, bytes]:
    """All that is on the volume, by its path."""
    route = await call(client, "POST", f"{VOLUMES}/research/transfer", {"mode": "get", "path": ""})
    s3, prefix = client_of(route), route["prefix"]
    keys = await s3.keys(Prefix=prefix)
    return {key.removeprefix(prefix): await s3.read(key) for key in keys}


def expected(run_id: str, *steps: int) -> dict[str, bytes]:
    """The files of checkpoints."""
    return {key: b"".join(pieces) for step in steps for key, pieces in files(run_id, step)}


async def test_checkpoints_are_saved_when_the_run_ends(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(**OPTIONS)
    run_id = await dispatched(client)
    await platform.advance(95)
    assert await saved(client) == {}
    await platform.advance(10)
    assert await saved(client) == expected(run_id, 10)


async def test_a_pause_saves_its_step_and_the_next_run_goes_on_beside_it(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(**OPTIONS)
    first = await dispatched(client, ckpt=None)
    await platform.advance(35)
    await call(client, "POST", f"{DISPATCHED}/{first}/pause")
    await platform.advance(10)
    assert await saved(client) == expected(first, 4)
    second = (await call(client, "POST", f"{DISPATCHED}/{first}/resume", {}))["runId"]
    await platform.advance(100)
    # Without [ckpt] the second one leaves nothing.
    assert await saved(client) == expected(first, 4)
    assert (await call(client, "GET", f"/api/v1/rft/runs/{second}"))["run"]["status"] == "COMPLETED"


async def test_a_stopped_run_leaves_what_it_had_saved(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(**OPTIONS)
    run_id = await dispatched(client)
    await platform.advance(55)
    await call(client, "PUT", f"/api/v1/rft/runs/{run_id}/stop")
    await platform.advance(0)
    assert await saved(client) == expected(run_id, 4)


async def test_what_was_not_saved_before_the_platforms_end_is_saved_after_it(
    tmp_path: Path, helpers: Any
) -> None:
    options = {"data_dir": tmp_path, **OPTIONS}
    async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
        run_id = await dispatched(client)
        await platform.advance(55)
    async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
        await platform.advance(60)
        assert await saved(client) == expected(run_id, 10)


async def test_a_pause_whose_checkpoint_does_not_fit_fails_the_run(
    open_platform: OpenPlatform, monkeypatch: Any
) -> None:
    platform, client = await open_platform(**OPTIONS)
    run_id = await dispatched(client)
    await platform.advance(35)
    # As a checkpoint of real size would; these are small.
    monkeypatch.setattr("prime_local.training.volumes.registry.GIB", 1024)
    await call(client, "POST", f"{DISPATCHED}/{run_id}/pause")
    await platform.advance(10)
    run = (await call(client, "GET", f"/api/v1/rft/runs/{run_id}"))["run"]
    assert run["status"] == "FAILED"
    assert "Disk quota exceeded" in run["errorMessage"]
    again = await dispatched(client)
    assert again != run_id
