"""Pods, disks and wallets, looked at without the SDK."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform, PlatformProcess, RunTokens
from prime_local.rentals import RentalSettings

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

POD: dict[str, Any] = {
    "pod": {
        "name": "train",
        "cloudId": "n3-H100x1",
        "gpuType": "H100_80GB",
        "socket": "PCIe",
        "gpuCount": 1,
        "dataCenterId": "CANADA-1",
    },
    "provider": {"type": "hyperstack"},
}
DISK: dict[str, Any] = {
    "disk": {"size": 500, "name": "data", "dataCenterId": "CANADA-1"},
    "provider": {"type": "hyperstack"},
}


def pod(**fields: Any) -> dict[str, Any]:
    return {**POD, "pod": {**POD["pod"], **fields}}


async def made(client: RawClient, body: dict[str, Any] = POD) -> dict[str, Any]:
    answer = await client.call("POST", "/api/v1/pods/", body)
    assert answer.status == 200, answer.body
    created: dict[str, Any] = answer.body
    return created


async def disk(client: RawClient) -> dict[str, Any]:
    offers = await client.call("GET", "/api/v1/availability/disks?data_center_id=CANADA-1")
    plan = offers.body["items"][0].get("cloudId")
    body = {**DISK, "disk": {**DISK["disk"], **({"cloudId": plan} if plan else {})}}
    answer = await client.call("POST", "/api/v1/disks/", body)
    assert answer.status == 201, answer.body
    created: dict[str, Any] = answer.body
    return created


async def test_a_pod_lives_and_goes_into_the_history(client: RawClient) -> None:
    created = await made(client)
    assert (created["status"], created["sshConnection"]) == ("PROVISIONING", None)
    for path in (f"/api/v1/pods/{created['id']}", f"/api/v1/pods/{created['id']}/"):
        assert (await client.call("GET", path)).body["status"] == "ACTIVE"
    listed = (await client.call("GET", "/api/v1/pods")).body
    assert (listed["total_count"], listed["totalCount"], len(listed["data"])) == (1, 1, 1)
    for path in ("/api/v1/pods/status", "/api/v1/pods/status/"):
        states = await client.call("GET", f"{path}?pod_ids={created['id']}&pod_ids=nope")
        (row,) = states.body["data"]
        assert (row["podId"], row["costPerHr"]) == (created["id"], created["priceHr"])
    log = await client.call("GET", f"/api/v1/pods/{created['id']}/log?tail=2")
    assert len(log.body["logs"]) == 2
    gone = await client.call("DELETE", f"/api/v1/pods/{created['id']}")
    assert gone.body == {"status": "TERMINATED"}
    for method in ("GET", "DELETE"):
        assert (await client.call(method, f"/api/v1/pods/{created['id']}")).status == 404
    (entry,) = (await client.call("GET", "/api/v1/pods/history")).body["data"]
    assert entry["id"] == created["id"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (pod(gpuCount=3), 404),
        (pod(dataCenterId=None), 404),
        (pod(image="hivemind"), 400),
        (pod(diskSize=1), 400),
        (pod(maxPrice=0.01), 400),
        (pod(customTemplateId="t"), 400),
        (pod(gpuCount=0), 422),
        ({**POD, "disks": ["nope"]}, 404),
        ({**POD, "sharedWithTeam": True}, 400),
    ],
    ids=str,
)
async def test_a_create_that_no_offer_allows_is_refused(
    client: RawClient, prime_platform: LocalPlatform, body: dict[str, Any], status: int
) -> None:
    assert (await client.call("POST", "/api/v1/pods/", body)).status == status
    assert prime_platform.ledger()["pods"]["created"] == 0


async def test_what_is_ordered_is_taken_from_the_stock_and_given_back(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    offer = prime_platform._core.catalogue.find(
        provider="hyperstack",
        cloud_id="n3-H100x1",
        gpu_type="H100_80GB",
        socket="PCIe",
        gpu_count=1,
        data_center_id="CANADA-1",
    )
    assert offer is not None
    left = offer.stock.left
    created = await made(client)
    assert offer.stock.left == left - 1
    await client.call("DELETE", f"/api/v1/pods/{created['id']}")
    assert offer.stock.left == left
    prime_platform.sell_out("n3-H100x1")
    assert (await client.call("POST", "/api/v1/pods/", POD)).status == 409


async def test_a_cluster_has_an_address_for_each_node(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    (offer, *_) = prime_platform._core.catalogue.clusters
    body = {
        "pod": {
            "cloudId": offer.cloud_id,
            "gpuType": offer.gpu_type,
            "socket": offer.socket,
            "gpuCount": offer.gpu_count,
            "dataCenterId": offer.place.data_center,
        },
        "provider": {"type": offer.place.provider},
    }
    created = await made(client, body)
    found = (await client.call("GET", f"/api/v1/pods/{created['id']}")).body
    assert len(found["sshConnection"]) == len(found["ip"]) >= 2


async def test_a_failed_installation_is_told_and_costs_nothing_more(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(FaultRule("create_pod", fails="no such image"))
    created = await made(client)
    found = (await client.call("GET", f"/api/v1/pods/{created['id']}")).body
    assert (found["status"], found["installationStatus"]) == ("ERROR", "ERROR")
    assert found["installationFailure"] == "no such image"
    await prime_platform.advance(3600)
    wallet = (await client.call("GET", "/api/v1/billing/wallet")).body
    assert wallet["balance_usd"] == 1000


async def test_a_disk_is_released_late(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(detach_time=30)
    volume = await disk(client)
    created = await made(client, {**POD, "disks": [volume["id"]]})
    path = f"/api/v1/disks/{volume['id']}"
    assert (await client.call("GET", path)).body["pods"] == [created["id"]]
    await client.call("DELETE", f"/api/v1/pods/{created['id']}")
    assert (await client.call("DELETE", path)).status == 409
    await platform.advance(30)
    assert (await client.call("GET", path)).body["pods"] == []
    assert (await client.call("PATCH", path, {"name": "other"})).body["name"] == "other"
    assert (await client.call("DELETE", path)).body == {"status": "TERMINATED"}
    assert platform.ledger()["disks"] == {"live": 0, "peak": 1, "created": 1, "deleted": 1}


async def test_what_is_rented_survives_a_restart(helpers: Any, tmp_path: Path) -> None:
    async with (
        LocalPlatform(data_dir=tmp_path, provisioning_time=10) as platform,
        helpers.client_of(platform) as client,
    ):
        volume, created, ended = await disk(client), await made(client), await made(client)
        await platform.advance(3600)
        await client.call("DELETE", f"/api/v1/pods/{ended['id']}")
        before = (await client.call("GET", "/api/v1/billing/wallet")).body
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        pods = (await client.call("GET", "/api/v1/pods/")).body["data"]
        assert [(each["id"], each["status"]) for each in pods] == [(created["id"], "ACTIVE")]
        disks = (await client.call("GET", "/api/v1/disks/")).body["data"]
        assert [each["id"] for each in disks] == [volume["id"]]
        history = (await client.call("GET", "/api/v1/pods/history")).body["data"]
        assert [each["id"] for each in history] == [ended["id"]]
        assert (await client.call("GET", "/api/v1/billing/wallet")).body == before
        assert platform.ledger()["pods"]["live"] == 1


async def test_hours_that_are_paid_ahead_are_charged_at_once(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(balance=100)
    created = await made(client, pod(prepaidForHr=2))
    price = created["priceHr"]

    async def balance() -> float:
        wallet = (await client.call("GET", "/api/v1/billing/wallet")).body
        return float(wallet["balance_usd"])

    assert await balance() == pytest.approx(100 - 2 * price)
    await platform.advance(2 * 3600)
    assert await balance() == pytest.approx(100 - 2 * price)
    await platform.advance(3600)
    assert await balance() == pytest.approx(100 - 3 * price)
    refused = await client.call("POST", "/api/v1/pods/", pod(prepaidForHr=1000))
    assert refused.status == 402


async def test_reset_forgets_what_is_rented(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    await made(client)
    await disk(client)
    await prime_platform.reset()
    assert (await client.call("GET", "/api/v1/pods/")).body["data"] == []
    assert (await client.call("GET", "/api/v1/disks/")).body["data"] == []
    assert (await client.call("GET", "/api/v1/billing/wallet")).body["total_billings"] == 0
    await prime_platform.advance(3600)


async def test_the_knobs_work_over_http_too() -> None:
    with PlatformProcess(["--provisioning-reads", "1", "--balance", "3"]) as platform:
        with pytest.raises(Exception, match="409"):
            platform.vanish_pod("nope")
        platform._call("POST", "/_local/runs", {"run_id": "r", "training": 5})
        with pytest.raises(Exception, match="422"):
            platform._call("POST", "/_local/runs", {"run_id": "r", "other": 5})
        assert platform.ledger()["pods"]["live"] == 0


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="excludes"):
        RentalSettings(provisioning_time=1, provisioning_reads=1)
    for wrong in ("NaN", "much"):
        with pytest.raises(ValueError, match="balance"):
            LocalPlatform(balance=wrong)
    assert RunTokens().training == 0
