"""Reading pods, waiting for them, and giving them back."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from prime_compute import (
    AsyncComputeClient,
    ComputeClient,
    GpuOffer,
    NotFoundError,
    Pod,
    PodGoneError,
    PodInstallationError,
    PodNotActiveError,
    PodRequest,
    PodStatusSnapshot,
    PodWaitTimeoutError,
    ServerError,
    SSHConnection,
)
from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls")]


@pytest.fixture
async def slow(start_platform: StartPlatform) -> AsyncIterator[tuple[LocalPlatform, Pod]]:
    """A pod that takes ten seconds a step, and its platform."""
    platform = await start_platform(provisioning_time=10)
    async with AsyncComputeClient() as client:
        yield platform, await client.pods.create(await an_offer(client))


async def an_offer(client: AsyncComputeClient) -> PodRequest:
    page = await client.availability.list_gpus(gpu_type="H100_80GB", cloud_id="n3-H100x1")
    return PodRequest.from_offer(page.items[0], name="pod")


def status_row(pod_id: str, **fields: Any) -> dict[str, Any]:
    return {"podId": pod_id, "providerType": "hyperstack", "status": "ACTIVE", **fields}


def statuses(*rows: dict[str, Any], **options: Any) -> FaultRule:
    """A rule by which the platform tells these states."""
    return FaultRule("get_pods_status", status=200, body=json.dumps({"data": rows}), **options)


async def test_a_pod_passes_its_states_on_the_clock(
    slow: tuple[LocalPlatform, Pod],
) -> None:
    platform, pod = slow
    async with AsyncComputeClient() as client:
        seen = [await client.pods.get(pod.id)]
        for _ in range(3):
            await platform.advance(10)
            seen.append(await client.pods.get(pod.id))
        found = [(each.status, each.installation_status, each.ssh) for each in seen]
    assert found == [
        ("PROVISIONING", "PENDING", ()),
        ("PENDING", "PENDING", ()),
        ("ACTIVE", "ACTIVE", ()),
        ("ACTIVE", "FINISHED", (SSHConnection("root", "203.0.113.1", 22),)),
    ]


async def test_a_pod_passes_its_states_as_it_is_read(start_platform: StartPlatform) -> None:
    await start_platform(provisioning_reads=2)
    async with AsyncComputeClient() as client:
        pod = await client.pods.create(await an_offer(client))
        seen = [(await client.pods.get(pod.id)).status for _ in range(5)]
    assert seen == ["PROVISIONING", "PROVISIONING", "PENDING", "PENDING", "ACTIVE"]


async def test_a_wait_ends_when_the_pod_can_be_reached(slow: tuple[LocalPlatform, Pod]) -> None:
    platform, pod = slow
    async with AsyncComputeClient() as client:
        wait = asyncio.ensure_future(client.pods.wait_until_active(pod.id, timeout=20))
        await asyncio.sleep(0.2)
        await platform.advance(20)
        await asyncio.sleep(0.2)
        assert not wait.done(), "ACTIVE, but not reachable"
        await platform.advance(10)
        status = await wait
    assert (status.status, len(status.ssh), status.ip) == ("ACTIVE", 1, "203.0.113.1")
    assert status.price_hr == pod.price_hr


async def test_a_wait_keeps_its_deadline(slow: tuple[LocalPlatform, Pod]) -> None:
    _, pod = slow
    async with AsyncComputeClient() as client:
        began = time.monotonic()
        with pytest.raises(PodWaitTimeoutError, match="last seen: PROVISIONING") as caught:
            await client.pods.wait_until_active(pod.id, timeout=0.3)
    assert 0.3 <= time.monotonic() - began < 2
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.status == "PROVISIONING"


@pytest.mark.parametrize("pod_id", ["", ".", "..", "a\nb"])
async def test_an_impossible_id_is_refused_before_anything_is_sent(
    platform: LocalPlatform, client: AsyncComputeClient, pod_id: str
) -> None:
    for call in (client.pods.wait_until_active, client.pods.get_status, client.pods.delete):
        with pytest.raises(ValueError, match="pod_id is an id"):
            await call(pod_id)
    with pytest.raises(ValueError, match="pod_ids is an id"):
        await client.pods.get_statuses([pod_id])
    assert platform.ledger()["requests"] == {}


async def test_a_failed_installation_ends_a_wait_at_once(slow: tuple[LocalPlatform, Pod]) -> None:
    platform, pod = slow
    async with AsyncComputeClient() as client:
        wait = asyncio.ensure_future(client.pods.wait_until_active(pod.id, timeout=600))
        await asyncio.sleep(0.1)
        platform.fail_pod(pod.id, "no space left on device")
        with pytest.raises(PodInstallationError, match="no space left") as caught:
            await asyncio.wait_for(wait, 2)
    assert (caught.value.status, caught.value.failure) == ("ERROR", "no space left on device")


@pytest.mark.parametrize("how", ["vanishes", "deleted"])
async def test_a_pod_that_is_gone_ends_a_wait_soon(
    slow: tuple[LocalPlatform, Pod], how: str
) -> None:
    platform, pod = slow
    async with AsyncComputeClient() as client:
        wait = asyncio.ensure_future(client.pods.wait_until_active(pod.id, timeout=600))
        await asyncio.sleep(0.1)
        if how == "vanishes":
            platform.vanish_pod(pod.id)
        else:
            await client.pods.delete(pod.id)
        with pytest.raises(PodGoneError):
            await asyncio.wait_for(wait, 3)


async def test_error_without_a_failed_installation_is_waited_out(
    client: AsyncComputeClient, platform: LocalPlatform, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(statuses(status_row(pod.id, status="ERROR"), times=2))
    status = await client.pods.wait_until_active(pod.id, timeout=10)
    assert status.status == "ACTIVE"


async def test_a_pod_that_the_states_leave_out_is_asked_for_by_itself(
    client: AsyncComputeClient, platform: LocalPlatform, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(statuses())
    assert (await client.pods.wait_until_active(pod.id, timeout=10)).pod_id == pod.id


async def test_a_pod_that_is_not_known_yet_is_looked_for_again(
    client: AsyncComputeClient, platform: LocalPlatform, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(statuses(times=1), FaultRule("get_pod", status=404, times=1))
    assert (await client.pods.wait_until_active(pod.id, timeout=10)).pod_id == pod.id


async def test_what_could_be_an_option_of_ssh_is_no_connection(
    client: AsyncComputeClient, platform: LocalPlatform, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(statuses(status_row(pod.id, sshConnection="root@-oProxyCommand=id")))
    with pytest.raises(PodNotActiveError, match="can't be reached safely"):
        await client.pods.wait_until_active(pod.id, timeout=10)


async def test_failures_of_the_platform_are_waited_out(
    client: AsyncComputeClient, platform: LocalPlatform, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(FaultRule("get_pods_status", status=500))
    with pytest.raises(PodWaitTimeoutError) as caught:
        await client.pods.wait_until_active(pod.id, timeout=3)
    assert isinstance(caught.value.__cause__, ServerError)
    platform.clear_faults()
    await client.pods.wait_until_active(pod.id, timeout=10)


async def test_waits_share_their_questions(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    request = PodRequest.from_offer(offer)
    pods = await asyncio.gather(*(client.pods.create(request) for _ in range(5)))
    await asyncio.gather(*(client.pods.wait_until_active(pod.id) for pod in pods))
    assert platform.ledger()["requests"]["get_pods_status"] <= 2


async def test_every_form_of_a_state_is_read() -> None:
    text = json.dumps(
        {
            "podId": "p",
            "providerType": "primeconpute",
            "status": "HIBERNATING",
            "sshConnection": ["root@10.0.0.1 -p 22", "root@10.0.0.2 -p 23"],
            "ip": ["10.0.0.1", "10.0.0.2"],
            "costPerHr": 3.5200,
            "primePortMapping": [
                {"internal": "*", "external": "*", "protocol": "TCP", "usedBy": None}
            ],
        }
    )
    status = PodStatusSnapshot.model_validate_json(text)
    assert (status.status, status.price_hr) == ("HIBERNATING", Decimal("3.52"))
    assert [connection.port for connection in status.ssh] == [22, 23]
    row = status_row("p", sshConnection=[None], ip=[None], costPerHr=None, priceHr=1.9)
    other = PodStatusSnapshot.model_validate_json(json.dumps(row))
    assert (other.ssh, other.price_hr) == ((), Decimal("1.9"))


async def test_states_that_are_asked_for_together_travel_together(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    request = PodRequest.from_offer(offer)
    pods = await asyncio.gather(*(client.pods.create(request) for _ in range(3)))
    ids = [pod.id for pod in pods]
    many, one, _ = await asyncio.gather(
        client.pods.get_statuses([*ids, "unknown"]),
        client.pods.get_status(ids[0]),
        client.pods.get_statuses(ids[1:]),
    )
    assert platform.ledger()["requests"]["get_pods_status"] == 1
    assert list(many) == ids
    assert one.pod_id == ids[0]
    with pytest.raises(NotFoundError):
        await client.pods.get_status("unknown")
    assert await client.pods.get_statuses([]) == {}
    with pytest.raises(ValueError, match="pod_ids is a list"):
        await client.pods.get_statuses("p1")


async def test_a_hundred_states_are_one_request(
    platform: LocalPlatform, client: AsyncComputeClient
) -> None:
    assert await client.pods.get_statuses([f"p{number}" for number in range(250)]) == {}
    assert platform.ledger()["requests"]["get_pods_status"] == 3


async def test_an_ended_pod_is_in_the_history_with_what_it_cost(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer, name="one"))
    other = await client.pods.create(PodRequest.from_offer(offer, name="two"))
    await platform.advance(2 * 3600)
    await client.pods.delete(pod.id)
    with pytest.raises(NotFoundError):
        await client.pods.get(pod.id)
    with pytest.raises(NotFoundError):
        await client.pods.delete(pod.id)
    assert [each.id async for each in client.pods.iter()] == [other.id]
    (entry,) = (await client.pods.history()).data
    assert pod.price_hr is not None
    assert (entry.id, entry.total_billed_price) == (pod.id, 2 * pod.price_hr)
    assert [each.id async for each in client.pods.iter_history()] == [pod.id]


async def test_a_list_is_read_to_its_end_or_to_an_empty_part(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    request = PodRequest.from_offer(offer)
    made = [await client.pods.create(request) for _ in range(3)]
    part = await client.pods.list(offset=1, limit=1)
    assert (part.total_count, [pod.id for pod in part.data]) == (3, [made[1].id])
    body = {"totalCount": 7, "offset": 0, "limit": 100, "data": []}
    platform.add_faults(FaultRule("list_pods", status=200, body=json.dumps(body)))
    assert (await client.pods.list()).total_count == 7
    assert [pod async for pod in client.pods.iter()] == []
    with pytest.raises(ValueError, match="limit"):
        await client.pods.list(limit=0)


async def test_a_delete_without_an_answer_is_repeated_and_done(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    platform.add_faults(FaultRule("delete_pod", reset="after_commit", times=1))
    await client.pods.delete(pod.id)
    assert platform.ledger()["pods"]["live"] == 0


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('"one\\ntwo"', "one\ntwo"),
        ('["one", "two\\n"]', "one\ntwo"),
        ('{"logs": ["one", "two"]}', "one\ntwo"),
        ('{"data": "one"}', "one"),
        ("null", ""),
        ('{"unlike": 1}', '{"unlike": 1}'),
    ],
)
async def test_a_log_is_text_in_whatever_form_it_comes(
    platform: LocalPlatform, client: AsyncComputeClient, body: str, text: str
) -> None:
    platform.add_faults(FaultRule("get_pod_log", status=200, body=body))
    assert await client.pods.logs("p") == text


async def test_the_latest_lines_of_a_log_are_read(
    client: AsyncComputeClient, offer: GpuOffer
) -> None:
    pod = await client.pods.create(PodRequest.from_offer(offer))
    assert (await client.pods.logs(pod.id)).splitlines()[0] == "Machine ordered"
    assert await client.pods.logs(pod.id, tail=1) == "Image installed"


@pytest.mark.filterwarnings("ignore:Entered outside the main thread")
async def test_the_sync_client_does_the_same(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    def work() -> tuple[str, int]:
        with ComputeClient() as sync:
            with sync.pods.session(PodRequest.from_offer(offer, name="sync")) as pod:
                assert sync.pods.get_status(pod.id).status == "ACTIVE"
                found = [each.id for each in sync.pods.iter()]
            assert found == [pod.id]
            return str(pod.ssh[0]), sync.pods.list().total_count

    assert await asyncio.to_thread(work) == ("root@203.0.113.1 -p 22", 0)
