"""Money: exact from the wire to the user, charged by the minute, and refused when it is gone."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from prime_compute import (
    AsyncComputeClient,
    ComputeClient,
    DiskRequest,
    GpuOffer,
    NotFoundError,
    PaymentRequiredError,
    PodRequest,
)
from prime_local import FaultRule, LocalPlatform, RunTokens

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = pytest.mark.timeout(30)


async def test_a_pod_and_a_disk_are_paid_for_by_the_hour(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    disks = await client.availability.list_disks(data_center_id="CANADA-1")
    pod = await client.pods.create(PodRequest.from_offer(offer, disk_size=200))
    disk = await client.disks.create(DiskRequest.from_offer(disks.items[0], size=500))
    await platform.advance(10 * 3600)
    wallet = await client.billing.wallet()
    assert pod.price_hr is not None
    assert disk.price_hr is not None
    spent = 10 * (pod.price_hr + disk.price_hr)
    assert wallet.balance_usd == 1000 - spent
    rows = {row.resource_id: row for row in wallet.recent_billings}
    assert (rows[pod.id].resource_type, rows[pod.id].amount_usd) == ("compute", 10 * pod.price_hr)
    assert (rows[disk.id].resource_type, rows[disk.id].amount_usd) == (
        "disks",
        10 * disk.price_hr,
    )
    await client.pods.delete(pod.id)
    await platform.advance(3600)
    later = await client.billing.wallet()
    assert later.balance_usd == 1000 - spent - disk.price_hr


async def test_credits_that_run_out_end_the_pods_and_refuse_the_next(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(balance="5")
    async with AsyncComputeClient() as client:
        page = await client.availability.list_gpus(cloud_id="n3-H100x1")
        request = PodRequest.from_offer(page.items[0])
        pod = await client.pods.create(request)
        team = await client.pods.create(PodRequest.from_offer(page.items[0], team_id="team-a"))
        await platform.advance(3600)
        assert (await client.pods.get(pod.id)).status == "ACTIVE"
        await client.pods.delete(team.id)
        await platform.advance(2 * 3600)
        with pytest.raises(NotFoundError):
            await client.pods.get(pod.id)
        wallet = await client.billing.wallet()
        assert -1 < wallet.balance_usd <= 0
        with pytest.raises(PaymentRequiredError):
            await client.pods.create(request)
        assert (await client.billing.wallet(team_id="team-a")).balance_usd > 0
        ended = {entry.id for entry in (await client.pods.history()).data}
        assert ended == {pod.id, team.id}
    assert platform.ledger()["pods"]["live"] == 0


async def test_all_rows_of_a_wallet_are_read_the_last_billed_first(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    request = PodRequest.from_offer(offer)
    pods = []
    for _ in range(3):
        pods.append(await client.pods.create(request))
        await platform.advance(120)
        await client.pods.delete(pods[-1].id)
    found = [row.resource_id async for row in client.billing.iter_billings()]
    assert found == [pod.id for pod in reversed(pods)]
    part = await client.billing.wallet(limit=1, offset=1)
    assert (part.total_billings, part.recent_billings[0].resource_id) == (3, pods[1].id)
    with pytest.raises(ValueError, match="limit is 1 to 100"):
        await client.billing.wallet(limit=101)


async def test_the_digits_of_the_wire_are_those_of_the_user(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    body = (
        '{"wallet_id":"w","team_id":null,"balance_usd":123.450000000000000001,"currency":"USD",'
        '"total_billings":0,"recent_billings":[]}'
    )
    platform.add_faults(FaultRule("get_wallet", status=200, body=body))
    assert (await client.billing.wallet()).balance_usd == Decimal("123.450000000000000001")


async def test_the_usage_of_a_run_is_that_of_the_documented_prices(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    platform.put_run("rft_7c2e", RunTokens(5_000_000, 1_000_000, 3_000_000))
    usage = await client.billing.run_usage("rft_7c2e")
    assert (usage.training.cost_usd, usage.inference.cost_usd) == (Decimal("12.5"), Decimal(5))
    assert (usage.total_tokens, usage.total_cost_usd) == (9_000_000, Decimal("17.5"))
    assert usage.pricing.inference_output_per_mtok == Decimal("1.5")
    with pytest.raises(NotFoundError):
        await client.billing.run_usage("rft_other")


async def test_a_team_goes_by_the_name_that_the_route_has_for_it(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    assert (await client.billing.wallet(team_id="team-a")).team_id == "team-a"
    assert json.loads((await client.billing.wallet()).model_dump_json())["team_id"] is None


def test_the_sync_client_reads_the_wallet(clean_environment: None) -> None:
    from prime_local import PlatformProcess

    with PlatformProcess(["--balance", "7.5"]) as platform, pytest.MonkeyPatch.context() as patch:
        for name, value in platform.env.items():
            patch.setenv(name, value)
        with ComputeClient() as client:
            assert client.billing.wallet().balance_usd == Decimal("7.5")
            assert list(client.billing.iter_billings()) == []
