"""Offers of GPUs and disks: lists, filters, summaries, stock."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import Assumptions, PlatformProcess
from prime_local.availability.catalogue import Catalogue
from prime_local.availability.offers import GpuOffer, Place, Spec, Stock
from prime_local.contract import load_contract

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

ROOT = "/api/v1/availability"
DOCUMENTED: dict[str, Any] = {
    "provider": "hyperstack",
    "cloud_id": "n3-H100x1",
    "gpu_type": "H100_80GB",
    "socket": "PCIe",
    "gpu_count": 1,
    "data_center_id": "CANADA-1",
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(1)


async def read(client: RawClient, path: str) -> Any:
    answer = await client.call("GET", f"{ROOT}/{path}")
    assert answer.status == 200, answer.body
    return answer.body


def test_a_seed_makes_the_same_offers(catalogue: Catalogue) -> None:
    assert Catalogue(1).gpus == catalogue.gpus != Catalogue(2).gpus
    assert Catalogue(1).disks == catalogue.disks
    assert Catalogue(1).clusters == catalogue.clusters


@pytest.mark.parametrize("seed", range(3))
def test_a_create_can_name_every_offer(seed: int) -> None:
    made = Catalogue(seed)
    offers = [*made.gpus, *made.clusters]
    assert (len(made.gpus), len(made.clusters)) == (2000, 120)
    names = {
        (
            offer.place.provider,
            offer.cloud_id,
            offer.gpu_type,
            offer.socket,
            offer.gpu_count,
            offer.place.data_center,
        )
        for offer in offers
    }
    assert len(names) == len(offers)
    assert len({(one.place, one.cloud_id) for one in made.disks}) == len(made.disks)
    found = made.find(**DOCUMENTED)
    assert found is not None
    assert found.stock.status == "Available"


def test_the_words_of_the_offers_are_the_contracts(catalogue: Catalogue) -> None:
    schemas = load_contract().documents["compute"]["components"]["schemas"]

    def words(name: str) -> set[str]:
        return set(schemas[name]["anyOf"][0]["enum"])

    offers = [*catalogue.gpus, *catalogue.clusters]
    assert {offer.gpu_type for offer in offers} <= words("GpuType")
    assert {offer.socket for offer in offers} <= words("GpuSocket")
    assert {offer.place.provider for offer in offers} <= words("ProviderType")
    assert {offer.place.region for offer in offers} <= words("Region")
    assert {image for offer in offers for image in offer.images} <= words("EnvironmentImage")
    assert {offer.stock.status for offer in offers} == words("StockStatus")
    assert {offer.security for offer in offers} == words("SecurityType")
    assert {offer.currency for offer in offers} == words("Currency")


def test_defaults_lie_within_their_bounds(catalogue: Catalogue) -> None:
    for offer in (*catalogue.gpus, *catalogue.clusters):
        for spec in (offer.disk, offer.vcpu, offer.memory):
            assert spec.default is not None
            assert spec.allows(spec.default)


def test_the_documented_costs(catalogue: Catalogue) -> None:
    found = catalogue.find(**DOCUMENTED)
    assert found is not None
    costs = [
        found.hourly(),
        found.hourly(disk_size=200),
        found.hourly(vcpus=20),
        found.hourly(vcpus=10),
        found.hourly(vcpus=20, disk_size=200),
    ]
    assert costs == [Decimal(text) for text in ("2.72", "2.75", "2.80", "2.76", "2.83")]


def test_what_is_taken_is_gone_until_it_is_given_back() -> None:
    stock = Stock(1)
    assert (stock.take(), stock.status, stock.take()) == (True, "Unavailable", False)
    stock.give_back()
    assert (stock.status, stock.take()) == ("Low", True)


def test_a_catalogue_has_its_own_stock() -> None:
    first, second = Catalogue(1), Catalogue(1)
    assert first.sell_out("n3-H100x1") >= 1
    assert first.find(**DOCUMENTED) != second.find(**DOCUMENTED)


def test_a_create_must_name_the_data_centre(catalogue: Catalogue) -> None:
    assert catalogue.find(**{**DOCUMENTED, "data_center_id": None}) is None
    (disk,) = [one for one in catalogue.disks if one.place.data_center == "US-1"][:1]
    assert catalogue.find_disk(provider="hyperstack", data_center_id="US-1") is disk
    assert catalogue.find_disk(provider="hyperstack") is None


@pytest.mark.parametrize(
    ("from_zero", "allowed"), [(False, [5, 8, 11, 12]), (True, [5, 6, 8, 9, 12])]
)
def test_where_steps_are_counted_from(from_zero: bool, allowed: list[int]) -> None:
    spec = Spec(8, 5, 12, Decimal(1), 3, steps_from_zero=from_zero)
    assert [amount for amount in range(20) if spec.allows(amount)] == allowed


async def test_step_anchor(open_platform: OpenPlatform) -> None:
    for anchor, from_zero in (("minimum", False), ("zero", True)):
        platform, _ = await open_platform(assumptions=Assumptions.parse([f"step_anchor={anchor}"]))
        found = platform._core.catalogue.find(**DOCUMENTED)
        assert found is not None
        assert found.vcpu.steps_from_zero is from_zero


async def test_pages_are_parts_of_one_list(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    pages = [await read(client, f"gpus?page={page}&page_size=70") for page in (1, 2, 29, 30)]
    assert [len(page["items"]) for page in pages] == [70, 70, 40, 0]
    assert {page["totalCount"] for page in pages} == {2000}
    first = await read(client, "gpus")
    assert first["items"] == [*pages[0]["items"], *pages[1]["items"]][:100]
    for wrong in ("page=0", "page_size=0", "page_size=101", "page=x"):
        assert (await client.call("GET", f"{ROOT}/gpus?{wrong}")).status == 422


@pytest.mark.parametrize("path", ["gpus", "multi-node"])
async def test_filters(open_platform: OpenPlatform, path: str) -> None:
    _, client = await open_platform()
    everything = await read(client, path)
    sample: dict[str, Any] = everything["items"][0]
    for name, field in (
        ("gpu_type", "gpuType"),
        ("gpu_count", "gpuCount"),
        ("socket", "socket"),
        ("security", "security"),
        ("data_center_id", "dataCenter"),
        ("cloud_id", "cloudId"),
        ("regions", "region"),
    ):
        found = await read(client, f"{path}?{name}={sample[field]}")
        assert sample in found["items"] or found["totalCount"] > 100
        assert {item[field] for item in found["items"]} == {sample[field]}
    both = await read(client, f"{path}?regions=europe_west&regions=canada")
    assert {item["region"] for item in both["items"]} == {"eu_west", "canada"}
    sxm = await read(client, f"{path}?socket=SXM")
    assert {item["socket"][:3] for item in sxm["items"]} == {"SXM"}
    assert (await read(client, f"{path}?gpu_type=NONE"))["items"] == []


async def test_offers_near_disks(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    places = {
        "d1": Place("hyperstack", "canada", "CA", "CANADA-1"),
        "d2": Place("runpod", "united_states", "US", "US-KS-2"),
    }
    platform._core.catalogue.disk_place = places.get
    near = await read(client, "gpus?disks=d1&disks=d2&disks=unknown&gpu_type=H100_80GB")
    assert {item["dataCenter"] for item in near["items"]} == {"CANADA-1", "US-KS-2"}
    assert (await read(client, "gpus?disks=unknown"))["totalCount"] == 0


async def test_disks(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    everything = await read(client, "disks")
    assert 10 < everything["totalCount"] == len(everything["items"])
    american = await read(client, "disks?regions=united_states&page_size=2")
    assert {item["region"] for item in american["items"]} == {"united_states"}
    assert len(american["items"]) == 2 < american["totalCount"] < everything["totalCount"]
    assert (await read(client, "disks?data_center_id=US-1"))["items"][0]["cloudId"] is None


async def test_deprecated_lists_hold_the_same_by_type(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    for old, new in (("?", "gpus?"), ("clusters?", "multi-node?")):
        query = "gpu_type=H100_80GB&page_size=100"
        found = await read(client, new + query)
        assert (await read(client, old + query)) == {"H100_80GB": found["items"]}
    assert sum(map(len, (await read(client, "?page=4")).values())) == 500
    assert await read(client, "?page=5") == {}


@pytest.mark.parametrize(("path", "summary"), [("gpus", "gpu"), ("multi-node", "multi-node")])
async def test_a_summary_is_of_what_is_left(
    open_platform: OpenPlatform, path: str, summary: str
) -> None:
    platform, client = await open_platform()
    lowest = (await read(client, f"{summary}-summary"))["H100_80GB"]
    count, regions = next(iter(lowest.items()))
    offers = (await read(client, f"{path}?gpu_type=H100_80GB&gpu_count={count}"))["items"]

    def prices(region: str) -> list[float]:
        return [
            offer["prices"]["onDemand"]
            for offer in offers
            if region in ("cheapest", offer["region"])
            if offer["stockStatus"] != "Unavailable" and offer["prices"]["currency"] == "USD"
            if not offer["isSpot"] and offer["security"] == "secure_cloud"
        ]

    for region, found in regions.items():
        assert found["onDemand"] == min(prices(region), default=None)
    for offer in offers:
        platform.sell_out(offer["cloudId"])
    assert count not in (await read(client, f"{summary}-summary"))["H100_80GB"]


async def test_what_is_sold_out_is_listed_so(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()

    async def states() -> dict[str, str]:
        found = await read(client, "gpus?cloud_id=n3-H100x1")
        return {item["dataCenter"]: item["stockStatus"] for item in found["items"]}

    before = await states()
    assert before["CANADA-1"] == "Available"
    platform.sell_out("n3-H100x1", "CANADA-1")
    assert await states() == {**before, "CANADA-1": "Unavailable"}
    platform.sell_out("n3-H100x1", sold_out=False)
    assert await states() == before
    with pytest.raises(ValueError, match="no offer of 'n3' there"):
        platform.sell_out("n3")
    await platform.reset()


def test_a_platform_in_a_process_sells_out_too() -> None:
    with PlatformProcess([]) as platform:
        platform.sell_out("n3-H100x1", "CANADA-1")
        with pytest.raises(OSError, match="404"):
            platform.sell_out("n3-H100x1", "nowhere")


def test_a_community_offer_names_its_price_as_such(catalogue: Catalogue) -> None:
    (found, *_) = [one for one in catalogue.gpus if one.security == "community_cloud"]
    assert isinstance(found, GpuOffer)
    prices = found.to_wire()["prices"]
    assert (prices["onDemand"], prices["communityPrice"]) == (None, float(found.price))
