"""Lists of offers, and the cheapest of them, against the local platform."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from raw_server import RawServer, answer, raw

from prime_compute import (
    APIResponseError,
    AsyncAPIClient,
    AsyncComputeClient,
    ComputeClient,
    GpuType,
    NoOfferError,
    Region,
    ServerError,
    hourly_cost,
)
from prime_core.config import Config
from prime_local import FaultRule, LocalPlatform


def offer(**fields: Any) -> dict[str, Any]:
    """An offer as the platform sends it."""
    return {
        "cloudId": "c",
        "gpuType": "H100_80GB",
        "socket": "PCIe",
        "provider": "hyperstack",
        "gpuCount": 1,
        "gpuMemory": 80,
        "stockStatus": "High",
        "security": "secure_cloud",
        "prices": {"onDemand": fields.pop("price", 2), "currency": "USD"},
        "images": ["ubuntu_22_cuda_12"],
        **fields,
    }


def page(*offers: dict[str, Any], total: int | None = None) -> Any:
    return answer(200, {"items": offers, "totalCount": len(offers) if total is None else total})


def client_of(url: str, key: str = "key") -> AsyncComputeClient:
    return AsyncComputeClient(client=AsyncAPIClient(config=Config(key, base_url=url)))


async def test_all_offers_come_once(platform: LocalPlatform, client: AsyncComputeClient) -> None:
    offers = [found async for found in client.availability.iter_gpus()]
    assert len(offers) == 2000
    assert len({found.model_dump_json() for found in offers}) == 2000
    assert platform.ledger()["requests"]["list_gpu_availability"] == 20


async def test_a_page_is_a_part_of_the_list(client: AsyncComputeClient) -> None:
    first = await client.availability.list_gpus(page_size=3)
    second = await client.availability.list_gpus(page=2, page_size=3)
    both = await client.availability.list_gpus(page_size=6)
    assert [*first.items, *second.items] == both.items
    assert first.total_count == both.total_count == 2000


async def test_every_filter_of_gpus_filters(client: AsyncComputeClient) -> None:
    filters: dict[str, Any] = {
        "gpu_type": GpuType.H100_80GB,
        "gpu_count": 1,
        "socket": "PCIe",
        "security": "secure_cloud",
        "regions": [Region.CANADA, "united_states"],
        "data_center_id": "CANADA-1",
        "cloud_id": "n3-H100x1",
    }
    for name, value in filters.items():
        found = await client.availability.list_gpus(**{name: value})
        assert 0 < (found.total_count or 0) < 2000
        for one in found.items:
            field = {"regions": "region", "data_center_id": "data_center"}.get(name, name)
            assert getattr(one, field) in (value if isinstance(value, list) else [value])
    (only,) = (await client.availability.list_gpus(**filters)).items
    assert only.model_dump_json().startswith('{"cloud_id":"n3-H100x1","gpu_type":"H100_80GB"')
    assert hourly_cost(only, disk_size=200, vcpus=20).total == Decimal("2.83")


async def test_disks_and_clusters_are_listed(client: AsyncComputeClient) -> None:
    disks = [found async for found in client.availability.iter_disks()]
    assert len(disks) == (await client.availability.list_disks(page_size=1)).total_count
    (one,) = (await client.availability.list_disks(data_center_id="US-1", cloud_id=None)).items[:1]
    assert (one.provider, str(one.spec.price_per_unit)) == ("hyperstack", "0.00015")
    clusters = [found async for found in client.availability.iter_multinode()]
    assert len(clusters) == (await client.availability.list_multinode()).total_count == 120
    assert min(found.gpu_count for found in clusters) > 8


async def test_summaries_are_of_the_same_offers(client: AsyncComputeClient) -> None:
    summary = (await client.availability.gpu_summary()).root
    lowest = summary["H100_80GB"]["8"]["cheapest"]
    offers = client.availability.iter_gpus(gpu_type="H100_80GB", gpu_count=8)
    prices = [
        found.prices.on_demand
        async for found in offers
        if found.stock_status != "Unavailable" and found.prices.currency == "USD"
        if found.prices.on_demand is not None and not found.is_spot
    ]
    assert lowest is not None
    assert lowest.on_demand == min(prices)
    clusters = (await client.availability.multinode_summary()).root
    assert all(int(count) > 8 for counts in clusters.values() for count in counts)


async def test_the_deprecated_lists_hold_the_same(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    parts = client.availability
    first = await parts.list_legacy_gpus(page_size=500)
    assert all(found.gpu_type == kind for kind, offers in first.root.items() for found in offers)
    assert len([found async for found in parts.iter_legacy_gpus()]) == 2000
    assert len([found async for found in parts.iter_legacy_clusters(gpu_type="H100_80GB")]) == len(
        (await parts.list_legacy_clusters()).root["H100_80GB"]
    )
    assert platform.ledger()["requests"]["list_legacy_gpu_availability"] == 6


async def test_an_error_midway_is_raised(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    platform.add_faults(FaultRule("list_gpu_availability", nth=[3, 4, 5], status=500))
    found = []

    async def read() -> None:
        async for one in client.availability.iter_gpus():
            found.append(one)

    with pytest.raises(ServerError):
        await read()
    assert len(found) == 200
    platform.add_faults(FaultRule("list_gpu_availability", nth=[3, 4, 5], status=500))
    with pytest.raises(ServerError):
        await client.availability.cheapest()


async def test_an_answer_with_nothing_in_it_is_an_error(clean_environment: None) -> None:
    empty = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    with RawServer(page(offer(), total=2), empty) as server:
        async with client_of(server.url) as client:
            with pytest.raises(APIResponseError):
                await client.availability.cheapest()


async def test_an_empty_page_ends_the_list_whatever_the_total(clean_environment: None) -> None:
    with RawServer(page(offer(), total=500), page(total=500)) as server:
        async with client_of(server.url) as client:
            assert len([found async for found in client.availability.iter_gpus()]) == 1
    assert [target.rpartition("?")[2] for target in server.targets] == [
        "page=1&page_size=100",
        "page=2&page_size=100",
    ]


async def test_offers_that_differ_in_one_thing_are_two(clean_environment: None) -> None:
    different: list[dict[str, Any]] = [
        {},
        {"gpuCount": 2},
        {"provider": "runpod"},
        {"dataCenter": "US-1"},
        {"price": 3},
        {"isSpot": True},
        {"memory": {"defaultCount": 64}},
    ]
    with RawServer(page(*(offer(**fields) for fields in different))) as server:
        async with client_of(server.url) as client:
            found = [one async for one in client.availability.iter_gpus()]
    assert len(found) == len(different)


async def test_a_bare_list_of_disks_is_read(clean_environment: None) -> None:
    disks = [{"provider": "hyperstack", "spec": {"pricePerUnit": 0.00015}}]
    with RawServer(answer(200, disks), answer(200, [])) as server:
        async with client_of(server.url) as client:
            (found,) = [found async for found in client.availability.iter_disks()]
    assert str(found.spec.price_per_unit) == "0.00015"


async def test_values_of_a_filter_repeat_its_name(clean_environment: None) -> None:
    with RawServer(page()) as server:
        async with client_of(server.url) as client:
            await client.availability.list_gpus(regions=["canada", "us"], disks=["a"])
    assert server.targets == [
        "GET /api/v1/availability/gpus?regions=canada&regions=us&disks=a&page=1&page_size=100"
    ]


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"page": 0}, "page is at least 1"),
        ({"page_size": 101}, "page_size 1 to 100"),
        ({"regions": "canada"}, "regions is a list"),
        ({"disks": []}, "disks is a list of at least one"),
        ({"regions": [""]}, "one of regions is a text that is not empty"),
        ({"gpu_type": ""}, "gpu_type is a text"),
        ({"gpu_count": 0}, "gpu_count is a whole number of at least 1"),
        ({"gpu_count": True}, "gpu_count is a whole number"),
    ],
)
async def test_an_impossible_filter_is_refused(
    platform: LocalPlatform, client: AsyncComputeClient, filters: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        await client.availability.list_gpus(**filters)
    with pytest.raises(TypeError, match="gpus is no filter; there are regions, "):
        await client.availability.list_gpus(**{"gpus": 1})  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_the_cheapest_is_what_a_look_at_all_of_them_finds(client: AsyncComputeClient) -> None:
    best = await client.availability.cheapest(gpu_type="A100_80GB", gpu_count=4, max_price="99")
    offers = client.availability.iter_gpus(gpu_type="A100_80GB", gpu_count=4)
    costs = [
        hourly_cost(found).total
        async for found in offers
        if found.stock_status != "Unavailable" and found.prices.currency == "USD"
        if not found.is_spot and found.prepaid_time is None
    ]
    assert best.cost.total == min(costs)
    spot = await client.availability.cheapest(gpu_type="A100_80GB", gpu_count=4, spot=True)
    assert spot.cost.total <= best.cost.total


async def test_the_cheapest_cluster(client: AsyncComputeClient) -> None:
    best = await client.availability.cheapest(
        multinode=True, interconnect=3200, interconnect_type="infiniband"
    )
    assert (best.offer.interconnect, best.offer.interconnect_type) == (3200, "InfiniBand")
    assert best.cost.shared_disk > 0


ADJUSTABLE = {
    "disk": {
        "minCount": 50,
        "defaultCount": 100,
        "maxCount": 1000,
        "pricePerUnit": 0.01,
        "step": 10,
    },
    "vcpu": {
        "minCount": 4,
        "defaultCount": 16,
        "maxCount": 32,
        "pricePerUnit": 0.1,
        "step": 2,
        "defaultIncludedInPrice": True,
    },
    "memory": {"defaultCount": 64},
}


@pytest.mark.parametrize(
    ("offers", "wishes", "cloud_id", "total", "amounts"),
    [
        ([offer(price=2.1), offer(cloudId="d", price=2)], {}, "d", "2", (None, None, None)),
        # What is adjustable is part of the price.
        ([offer(**ADJUSTABLE, price=1.5), offer(cloudId="d")], {}, "d", "2", (None, None, None)),
        ([offer(cloudId="d"), offer(**ADJUSTABLE, price=1.5)], {}, "d", "2", None),
        # An included default costs less than fewer, and the smallest amount that is enough.
        ([offer(**ADJUSTABLE)], {"vcpus": 10, "disk_size": 55}, "c", "2.6", (60, None, None)),
        ([offer(**ADJUSTABLE)], {"vcpus": 17}, "c", "4.8", (None, 18, None)),
        ([offer(**ADJUSTABLE)], {"disk_size": 10, "memory": 48}, "c", "2.5", (50, None, None)),
        ([offer(), offer(cloudId="d", gpuMemory=141)], {"gpu_memory": 96}, "d", "2", None),
        ([offer(), offer(cloudId="d", images=["flux"])], {"image": "flux"}, "d", "2", None),
        ([offer(), offer(cloudId="d", provider="x", price=3)], {"provider": "x"}, "d", "3", None),
        ([offer(stockStatus="Unavailable"), offer(cloudId="d", price=3)], {}, "d", "3", None),
        ([offer(isSpot=True), offer(cloudId="d", price=3)], {}, "d", "3", None),
        ([offer(prepaidTime=24), offer(cloudId="d", price=3)], {}, "d", "3", None),
        ([offer(prepaidTime=24)], {"prepaid": True}, "c", "2", None),
        ([offer(prices={"onDemand": 1, "currency": "EUR"}), offer()], {}, "c", "2", None),
        ([offer(price=None), offer(cloudId="d")], {}, "d", "2", None),
        ([offer(gpuType="CPU_NODE", price=0.1), offer(cloudId="d")], {}, "d", "2", None),
        ([offer(gpuType="CPU_NODE")], {"gpu_type": "CPU_NODE"}, "c", "2", None),
        # Nobody can reckon with such a price, nor does it spoil the others.
        ([offer(**ADJUSTABLE, price="1e-2000"), offer(cloudId="d")], {}, "d", "2", None),
    ],
)
async def test_the_cheapest_has_all_that_is_wished_for(
    clean_environment: None,
    offers: list[dict[str, Any]],
    wishes: dict[str, Any],
    cloud_id: str,
    total: str,
    amounts: tuple[int | None, ...] | None,
) -> None:
    with RawServer(page(*offers)) as server:
        async with client_of(server.url) as client:
            best = await client.availability.cheapest(**wishes)
    assert (best.offer.cloud_id, best.cost.total) == (cloud_id, Decimal(total))
    assert amounts in (None, (best.disk_size, best.vcpus, best.memory))


UNCERTAIN = {"disk": {"minCount": 5, "maxCount": 104, "pricePerUnit": 0.01, "step": 10}}


@pytest.mark.parametrize(
    ("offers", "wishes", "reasons"),
    [
        ([], {}, "no offer of this kind"),
        ([offer(), offer(cloudId="d", isSpot=True)], {"max_price": "1.99"}, "1 max_price, 1 spot"),
        ([offer(**ADJUSTABLE)], {"max_price": 2}, "1 max_price"),
        ([offer(**ADJUSTABLE)], {"memory": 65}, "1 memory"),
        ([offer(**ADJUSTABLE)], {"disk_size": 1001}, "1 disk_size"),
        ([offer()], {"vcpus": 1}, "1 vcpus"),
        ([offer()], {"interconnect": 100}, "1 interconnect"),
    ],
)
async def test_where_nothing_fits_an_error_says_why(
    clean_environment: None, offers: list[dict[str, Any]], wishes: dict[str, Any], reasons: str
) -> None:
    with RawServer(page(*offers)) as server:
        async with client_of(server.url) as client:
            with pytest.raises(NoOfferError, match=reasons):
                await client.availability.cheapest(**wishes)


async def test_only_an_amount_that_surely_fits_is_chosen(clean_environment: None) -> None:
    with RawServer(page(offer(**UNCERTAIN))) as server:
        async with client_of(server.url) as client:
            best = await client.availability.cheapest(disk_size=20)
    assert best.disk_size == 104


@pytest.mark.parametrize("price", [2.5, True, "much", "-1", Decimal("NaN")])
async def test_a_highest_price_is_exact(
    platform: LocalPlatform, client: AsyncComputeClient, price: Any
) -> None:
    with pytest.raises((TypeError, ValueError), match="max_price"):
        await client.availability.cheapest(max_price=price)
    with pytest.raises(ValueError, match="vcpus is a whole number of at least 1"):
        await client.availability.cheapest(vcpus=0)
    assert platform.ledger()["requests"] == {}


async def test_the_sync_client_does_the_same(platform: LocalPlatform) -> None:
    def run() -> tuple[int, str]:
        with ComputeClient() as client:
            best = client.availability.cheapest(cloud_id="n3-H100x1", data_center_id="CANADA-1")
            offers = client.availability.iter_gpus(gpu_type="H100_80GB", gpu_count=1)
            return len(list(offers)), str(best.cost.total)

    count, total = await asyncio.to_thread(run)
    assert (count > 10, total) == (True, "2.7200")


async def test_a_newer_server_is_understood(
    clean_environment: None,
) -> None:
    async with (
        LocalPlatform(limits=False, noise=True) as platform,
        client_of(platform.url, platform.api_key) as client,
    ):
        parts = client.availability
        found = (await parts.list_gpus()).items[0]
        assert json.loads(found.model_dump_json())["noiseAdded"]
        assert (await parts.gpu_summary()).root
        assert (await parts.list_legacy_gpus()).root
        assert (await parts.list_disks()).items
