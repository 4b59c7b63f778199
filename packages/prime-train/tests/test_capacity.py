"""Models, GPUs and prices for runs."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import aiohttp
import pytest

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    AsyncTrainClient,
    NotFoundError,
    TrainClient,
    TrainConfig,
    TrainingCapacity,
    load_config,
)

pytestmark = pytest.mark.timeout(30)

CONFIG = {
    "max_steps": 50,
    "model": {"name": "Qwen/Qwen3-0.6B"},
    "deployment": {"num_train_gpus": 2, "num_infer_gpus": 6},
    "ckpt": {"interval": 50},
    "trainer": {},
    "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "reverse-text"}}}]}},
    "inference": {},
}


@pytest.fixture
def config() -> TrainConfig:
    return load_config(CONFIG)


async def lab(platform: LocalPlatform) -> str:
    """The team that has reserved H200s."""
    key = {"Authorization": f"Bearer {platform.api_key}"}
    url = f"{platform.url}/api/v1/user/teams"
    async with aiohttp.ClientSession() as session, session.get(url, headers=key) as answer:
        team: str = (await answer.json())["data"][0]["teamId"]
        return team


async def test_models_gpus_and_prices_are_read(client: AsyncTrainClient) -> None:
    found = await client.capacity.get()
    assert found.on_demand_beta_access is True
    assert found.prices["H200_141GB"] == Decimal("2.69")
    assert all(each.available_now and each.is_beta for each in found.on_demand)
    models = await client.capacity.list_models()
    assert models == found.models
    model = next(each for each in models if each.name == "Qwen/Qwen3-32B")
    assert {each.gpu_type for each in model.clusters} == {"B200_180GB", "H200_141GB"}
    assert all(each.cache_synced_at is not None for each in model.clusters)
    assert await client.capacity.list_gpu_types() == ["B200_180GB", "H100_80GB", "H200_141GB"]


async def test_a_price_keeps_its_digits(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    body = b'{"onDemand": [{"gpuType": "X", "pricePerGpuHour": 2.6900000000000000000001}]}'
    platform.add_faults(FaultRule("list_available_fft_models", status=200, body=body.decode()))
    assert (await client.capacity.get()).prices == {"X": Decimal("2.6900000000000000000001")}


async def test_a_team_has_what_it_reserved(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.set_training_access(on_demand=False)
    team = await lab(platform)
    assert await client.capacity.list_gpu_types() == []
    assert await client.capacity.list_gpu_types(team_id=team) == ["H200_141GB"]
    found = await client.capacity.get(team_id=team)
    assert {each.cluster_name for model in found.models for each in model.clusters} == {"athens"}


@pytest.mark.parametrize("access", [True, False, None])
async def test_whether_an_account_has_access_is_told_apart_from_not_known(
    platform: LocalPlatform, client: AsyncTrainClient, access: bool | None
) -> None:
    platform.set_training_access(on_demand=access)
    found = await client.capacity.get()
    assert found.on_demand_beta_access is access
    assert bool(found.on_demand) is (access is not False)


async def test_a_platform_that_knows_no_capacity_has_none_and_does_not_say_why(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("list_available_fft_models", status=404))
    assert await client.capacity.get() == TrainingCapacity()
    assert (await client.capacity.get()).on_demand_beta_access is None
    assert await client.capacity.list_models() == []
    platform.add_faults(FaultRule("list_available_gpu_types", status=404))
    with pytest.raises(NotFoundError):
        await client.capacity.list_gpu_types()


async def test_room_is_a_hint(platform: LocalPlatform, client: AsyncTrainClient) -> None:
    platform.set_training_capacity("H200_141GB", free=0)
    room = {each.gpu_type: each.available_now for each in (await client.capacity.get()).on_demand}
    assert room == {"H200_141GB": False, "B200_180GB": True, "H100_80GB": True}


async def test_a_run_is_estimated_at_present_prices(
    platform: LocalPlatform, client: AsyncTrainClient, config: TrainConfig
) -> None:
    platform.set_training_capacity("H200_141GB", price="2.515")
    run = await client.capacity.estimate(config, gpu_type="H200_141GB", parameters=600_000_000)
    assert run.price_per_gpu_hour == Decimal("2.515")
    assert run.price_per_hour == Decimal("20.12")
    assert run.checkpoints is not None
    assert (await client.capacity.estimate(config)).price_per_hour is None
    with pytest.raises(ValueError, match="prices has no T4; it has B200_180GB, H100_80GB"):
        await client.capacity.estimate(config, gpu_type="T4")


async def test_reserved_gpus_and_those_of_no_known_price_have_none(
    platform: LocalPlatform, client: AsyncTrainClient, config: TrainConfig
) -> None:
    reserved = '{"models": [{"name": "m", "clusters": [{"clusterId": "c", "clusterName": "n", \
"gpuType": "GB300"}]}], "onDemand": [{"gpuType": "H100_80GB", "pricePerGpuHour": 1}]}'
    platform.add_faults(FaultRule("list_available_fft_models", status=200, body=reserved))
    run = await client.capacity.estimate(config, gpu_type="GB300")
    assert (run.gpus.total, run.price_per_hour) == (8, None)
    platform.clear_faults()
    platform.set_training_access(on_demand=False)
    assert (await client.capacity.estimate(config, gpu_type="GB300")).price_per_hour is None


async def test_the_synchronous_client_estimates_too(
    platform: LocalPlatform, config: TrainConfig
) -> None:
    def use() -> Decimal | None:
        with TrainClient() as client:
            assert client.capacity.list_models()
            return client.capacity.estimate(config, gpu_type="H100_80GB").price_per_hour

    assert await asyncio.to_thread(use) == Decimal("15.92")
