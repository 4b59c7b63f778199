"""Disks: reading, renaming, waiting and deleting through detachment."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from prime_compute import (
    AsyncComputeClient,
    ConflictError,
    Disk,
    DiskNotActiveError,
    DiskOffer,
    DiskRequest,
    DiskWaitTimeoutError,
    GpuOffer,
    NotFoundError,
    PodRequest,
)
from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls")]

# The guide's disk, with its spelling of the count.
DOCUMENTED = """{"totalCount":1,"data":[{"id":"fdb5205fd9b14c9d804d3f70b4c96da0",
"name":"ml-training-data","createdAt":"2025-11-07T21:07:15.183000",
"updatedAt":"2025-11-07T21:07:15.183000","terminatedAt":null,"status":"ACTIVE",
"providerType":"hyperstack","size":500,"info":{"cloudId":null,"country":"US",
"isMultinode":false,"dataCenterId":"US-1"},"priceHr":0.075,"stoppedPriceHr":0.075,
"provisioningPriceHr":0.0,"userId":"u","teamId":null,"walletId":"w","pods":[],"clusters":[]}],
"limit":50,"offset":0}"""


async def offers(client: AsyncComputeClient) -> tuple[DiskOffer, GpuOffer]:
    disks = await client.availability.list_disks(data_center_id="CANADA-1")
    gpus = await client.availability.list_gpus(cloud_id="n3-H100x1", data_center_id="CANADA-1")
    return disks.items[0], gpus.items[0]


async def made(client: AsyncComputeClient, name: str = "data") -> Disk:
    disk_offer, _ = await offers(client)
    disk = await client.disks.create(DiskRequest.from_offer(disk_offer, size=500, name=name))
    return await client.disks.wait_until_active(disk.id)


async def test_a_disk_is_made_read_renamed_and_deleted(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    disk_offer, _ = await offers(client)
    disk = await made(client)
    assert disk_offer.spec.price_per_unit is not None
    assert disk.price_hr == 500 * disk_offer.spec.price_per_unit
    assert disk.info is not None
    assert (disk.status, disk.info.data_center_id) == ("ACTIVE", "CANADA-1")
    renamed = await client.disks.rename(disk.id, "eval-data")
    assert (renamed.id, renamed.name) == (disk.id, "eval-data")
    (listed,) = [each async for each in client.disks.iter()]
    assert listed == await client.disks.get(disk.id)
    assert listed.name == "eval-data"
    await client.disks.delete(disk.id)
    with pytest.raises(NotFoundError):
        await client.disks.get(disk.id)
    assert platform.ledger()["disks"] == {"live": 0, "peak": 1, "created": 1, "deleted": 1}


async def test_the_documented_list_is_read(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    platform.add_faults(FaultRule("list_disks", status=200, body=DOCUMENTED))
    page = await client.disks.list()
    assert (page.total_count, page.data[0].price_hr) == (1, Decimal("0.075"))
    sent = json.loads(DOCUMENTED)["data"][0]
    again = json.loads(page.data[0].model_dump_json(by_alias=True))
    for name in ("createdAt", "updatedAt"):
        assert again.pop(name).startswith(sent.pop(name))
    assert again == sent


async def test_a_wait_keeps_its_deadline_and_ends_with_the_disk(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(provisioning_time=10)
    async with AsyncComputeClient() as client:
        disk_offer, _ = await offers(client)
        disk = await client.disks.create(DiskRequest.from_offer(disk_offer, size=1))
        with pytest.raises(DiskWaitTimeoutError):
            await client.disks.wait_until_active(disk.id, timeout=0.2)
        with pytest.raises(ConflictError):
            await client.disks.delete(disk.id)
        await platform.advance(20)
        assert (await client.disks.wait_until_active(disk.id)).status == "ACTIVE"
        row = {**json.loads(DOCUMENTED)["data"][0], "status": "TERMINATED"}
        platform.add_faults(FaultRule("get_disk", status=200, body=json.dumps(row)))
        with pytest.raises(DiskNotActiveError, match="TERMINATED"):
            await client.disks.wait_until_active(disk.id)


async def test_a_disk_is_deleted_once_it_is_detached(start_platform: StartPlatform) -> None:
    platform = await start_platform(detach_time=60)
    async with AsyncComputeClient() as client:
        disk = await made(client)
        _, gpu_offer = await offers(client)
        pod = await client.pods.create(PodRequest.from_offer(gpu_offer, disks=[disk.id]))
        with pytest.raises(ConflictError):
            await client.disks.delete(disk.id)
        with pytest.raises(ConflictError):
            await client.pods.create(PodRequest.from_offer(gpu_offer, disks=[disk.id]))
        await client.pods.delete(pod.id)
        with pytest.raises(DiskWaitTimeoutError, match=pod.id):
            await client.disks.delete(disk.id, wait_for_detachment=0.2)
        deleting = asyncio.ensure_future(client.disks.delete(disk.id, wait_for_detachment=20))
        await asyncio.sleep(0.2)
        assert not deleting.done()
        await platform.advance(60)
        await deleting
    assert platform.ledger()["disks"]["live"] == 0


async def test_a_delete_that_lags_behind_the_detachment_is_tried_again(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    disk = await made(client)
    platform.add_faults(FaultRule("delete_disk", status=409, times=2))
    await client.disks.delete(disk.id, wait_for_detachment=10)
    assert platform.ledger()["requests"]["delete_disk"] == 3
    other = await made(client)
    platform.add_faults(FaultRule("delete_disk", status=409))
    with pytest.raises(DiskWaitTimeoutError) as caught:
        await client.disks.delete(other.id, wait_for_detachment=0.2)
    assert isinstance(caught.value.__cause__, ConflictError)


async def test_offers_near_a_disk_are_found(client: AsyncComputeClient) -> None:
    disk = await made(client)
    page = await client.availability.list_gpus(disks=[disk.id])
    assert page.items
    places = {(each.provider, each.data_center) for each in page.items}
    assert places == {("hyperstack", "CANADA-1")}


async def test_wrong_arguments_are_named(client: AsyncComputeClient) -> None:
    with pytest.raises(ValidationError, match="name"):
        await client.disks.rename("d", "")
    with pytest.raises(ValueError, match="wait_for_detachment"):
        await client.disks.delete("d", wait_for_detachment=-1)
    with pytest.raises(ValueError, match="limit is 1 to 200"):
        await client.disks.list(limit=201)
    with pytest.raises(ValueError, match="disk_id"):
        await client.disks.get("")
