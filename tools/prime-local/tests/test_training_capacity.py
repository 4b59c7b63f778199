"""What training runs can have: what is listed, and which run gets what."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform, PlatformProcess
from prime_local.clock import PlatformClock
from prime_local.errors import PlatformError
from prime_local.training.capacity.offers import TrainingAccess, TrainingCapacity

if TYPE_CHECKING:
    from conftest import RawClient

LAB = "team_lab"
SMALL, LARGE = "Qwen/Qwen3-0.6B", "Qwen/Qwen3-32B"


@pytest.fixture
def capacity() -> Iterator[TrainingCapacity]:
    clock = PlatformClock()
    yield TrainingCapacity(clock, LAB)
    clock.close()


async def listed(client: RawClient, team: str | None = None) -> dict[str, Any]:
    query = "" if team is None else f"?team_id={team}"
    answer = await client.call("GET", f"/api/v1/training/available-fft-models{query}")
    assert answer.status == 200
    found: dict[str, Any] = answer.body
    return found


async def lab(client: RawClient) -> str:
    teams = (await client.call("GET", "/api/v1/user/teams")).body["data"]
    team_id: str = teams[0]["teamId"]
    return team_id


async def test_models_are_listed_with_the_clusters_of_the_owner(client: RawClient) -> None:
    async def names(model: str, team: str | None) -> set[str]:
        models = {each["name"]: each["clusters"] for each in (await listed(client, team))["models"]}
        return {each["clusterName"] for each in models[model]}

    assert await names(SMALL, None) == {"dublin", "oslo", "lisbon"}
    assert await names(SMALL, await lab(client)) == {"athens", "dublin", "oslo", "lisbon"}
    assert await names(LARGE, None) == {"dublin", "oslo"}


async def test_prices_and_room_are_those_on_demand(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    prime_platform.set_training_capacity("H200_141GB", free=0, price="2.345")
    prime_platform.set_training_capacity("H200_141GB", free=0, reserved=True)
    offers = {each["gpuType"]: each for each in (await listed(client))["onDemand"]}
    assert set(offers) == {"H200_141GB", "B200_180GB", "H100_80GB"}
    assert (offers["H200_141GB"]["pricePerGpuHour"], offers["H200_141GB"]["availableNow"]) == (
        2.345,
        False,
    )
    assert offers["B200_180GB"]["availableNow"]


@pytest.mark.parametrize("access", [True, False, None])
async def test_who_has_no_access_is_offered_nothing_on_demand(
    prime_platform: LocalPlatform, client: RawClient, access: bool | None
) -> None:
    prime_platform.set_training_access(on_demand=access)
    found = await listed(client)
    assert found["onDemandBetaAccess"] is access
    assert bool(found["onDemand"]) is bool(found["models"]) is (access is not False)

    async def types(query: str) -> list[str]:
        path = f"/api/v1/training/available-gpu-types{query}"
        found: list[str] = (await client.call("GET", path)).body["gpuTypes"]
        return found

    everything = ["B200_180GB", "H100_80GB", "H200_141GB"]
    assert await types("") == ([] if access is False else everything)
    own = await types(f"?team_id={await lab(client)}")
    assert own == (["H200_141GB"] if access is False else everything)


async def test_capacity_and_access_are_changed_over_http(client: RawClient) -> None:
    path = "/_local/training/capacity"
    answer = await client.call("POST", path, {"gpu_type": "B200_180GB", "free": 3})
    assert answer.body == (await client.call("GET", path)).body
    b200 = next(c for c in answer.body["clusters"] if c["gpu_type"] == "B200_180GB")
    assert (b200["free"], b200["taken"], b200["price"]) == (3, 0, "4.49")
    for wrong in (
        {},
        {"gpu_type": "T4"},
        {"gpu_type": "B200_180GB", "free": -1},
        {"gpu_type": "B200_180GB", "price": "dear"},
        {"gpu_type": "H200_141GB", "price": 1, "reserved": True},
        {"gpu_type": "B200_180GB", "colour": "red"},
    ):
        assert (await client.call("POST", path, wrong)).status == 422, wrong
    path = "/_local/training/access"
    assert (await client.call("POST", path, {"on_demand": None})).body == {
        "on_demand": None,
        "external_runs": True,
    }
    for switches in ({"on_demand": "yes"}, {"external_runs": None}, {"other": True}):
        assert (await client.call("POST", path, switches)).status == 422, switches


def test_reserved_gpus_come_before_those_on_demand(capacity: TrainingCapacity) -> None:
    first = capacity.reserve("r1", "H200_141GB", 16, team_id=LAB, model=SMALL)
    second = capacity.reserve("r2", "H200_141GB", 16, team_id=LAB, model=SMALL)
    assert first is not None
    assert second is not None
    assert (first.reserved, first.price) == (True, Decimal(0))
    assert (second.reserved, second.price) == (False, Decimal("2.69"))
    other = capacity.reserve("r3", "H200_141GB", 8, team_id="another", model=SMALL)
    assert other is not None
    assert not other.reserved


def test_gpus_are_taken_and_given_back(capacity: TrainingCapacity) -> None:
    freed: list[bool] = []
    capacity.on_freed = lambda: freed.append(True)
    assert capacity.reserve("r1", "B200_180GB", 32)
    assert capacity.reserve("r1", "B200_180GB", 32) is not None  # it has them already
    assert capacity.reserve("r2", "B200_180GB", 1) is None
    capacity.release("r1")
    capacity.release("r1")
    capacity.release("unknown")
    assert freed == [True]
    assert capacity.reserve("r2", "B200_180GB", 32)


def test_a_price_holds_from_the_start(capacity: TrainingCapacity) -> None:
    placed = capacity.reserve("r1", "H100_80GB", 1)
    capacity.change("H100_80GB", price="9.99")
    assert placed is not None
    assert placed.price == Decimal("1.99")
    assert capacity.price("H100_80GB") == Decimal("9.99")
    with pytest.raises(PlatformError):
        capacity.price("T4")


def test_room_that_a_test_takes_away_or_adds(capacity: TrainingCapacity) -> None:
    freed: list[bool] = []
    capacity.on_freed = lambda: freed.append(True)
    assert capacity.reserve("r1", "H100_80GB", 8)
    capacity.change("H100_80GB", free=0)
    assert capacity.reserve("r2", "H100_80GB", 1) is None
    # It waits; it is not refused.
    assert capacity.admit(None, "H100_80GB", 1, model=SMALL) == "H100_80GB"
    capacity.change("H100_80GB", free=64)
    assert freed == [True, True]
    assert capacity.reserve("r2", "H100_80GB", 64)


def test_the_type_of_gpu_is_chosen_by_room_then_cache_then_price(
    capacity: TrainingCapacity,
) -> None:
    assert capacity.admit(None, None, 8, model=SMALL) == "H100_80GB"
    assert capacity.admit(None, None, 8, model=SMALL, volume=True) == "H200_141GB"
    assert capacity.admit(None, None, 8, model=LARGE) == "H200_141GB"
    assert capacity.admit(LAB, None, 8, model=SMALL) == "H200_141GB"
    capacity.change("H200_141GB", free=0)
    assert capacity.admit(None, None, 8, model=LARGE) == "B200_180GB"


@pytest.mark.parametrize(
    ("asked", "status", "text"),
    [
        ({"gpu_type": "T4"}, 400, "T4"),
        ({"gpu_type": "H100_80GB", "gpus": 40}, 400, "40 GPUs"),
        ({"gpu_type": "H100_80GB", "volume": True}, 400, "ReadWriteMany"),
        ({"gpu_type": "H200_141GB", "team": LAB, "model": "mine"}, 400, "not cached on athens"),
        ({"access": False}, 403, "On-demand training is in beta"),
        ({"access": False, "team": LAB, "gpus": 17}, 400, "17 GPUs"),
    ],
)
def test_what_could_never_run_is_refused(
    capacity: TrainingCapacity, asked: dict[str, Any], status: int, text: str
) -> None:
    capacity.access = TrainingAccess(on_demand=asked.get("access", True))
    with pytest.raises(PlatformError, match=text) as caught:
        capacity.admit(
            asked.get("team"),
            asked.get("gpu_type"),
            asked.get("gpus", 1),
            model=asked.get("model", SMALL),
            volume=asked.get("volume", False),
        )
    assert caught.value.status == status


def test_who_has_no_access_still_has_reserved_gpus(capacity: TrainingCapacity) -> None:
    capacity.access = TrainingAccess(on_demand=False)
    assert capacity.admit(LAB, None, 8, model="/volume/models/mine", volume=True) == "H200_141GB"
    placed = capacity.reserve("r", "H200_141GB", 8, team_id=LAB, model="/volume/models/mine")
    assert placed is not None
    assert (placed.reserved, placed.cached) == (True, True)
    assert capacity.reserve("r2", "H200_141GB", 9, team_id=LAB, model=SMALL) is None


def test_a_platform_process_is_changed_likewise_until_its_reset(
    prime_platform_server: PlatformProcess,
) -> None:
    platform = prime_platform_server

    def clusters() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{platform.url}/_local/training/capacity") as answer:
            found: list[dict[str, Any]] = json.load(answer)["clusters"]
            return found

    def available() -> dict[str, Any]:
        key = {"Authorization": f"Bearer {platform.api_key}"}
        url = f"{platform.url}/api/v1/training/available-fft-models"
        with urllib.request.urlopen(urllib.request.Request(url, headers=key)) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    before = clusters()
    platform.set_training_capacity("H100_80GB", free=1, price="0.5")
    platform.set_training_access(on_demand=False)
    assert [(each["free"], each["price"]) for each in clusters()][-1] == (1, "0.5")
    assert available()["onDemandBetaAccess"] is False
    platform.reset()
    assert clusters() == before
    assert available()["onDemandBetaAccess"] is True
