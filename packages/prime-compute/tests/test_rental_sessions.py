"""Pods and disks for a block of code: at its end they are gone, whatever ends it."""

from __future__ import annotations

import asyncio
import pickle
import re
import time
from typing import TYPE_CHECKING

import pytest

from prime_compute import (
    APIConnectionError,
    AsyncComputeClient,
    ComputeClient,
    DiskRequest,
    GpuOffer,
    PodInstallationError,
    PodRequest,
    PodWaitTimeoutError,
    ServerError,
)
from prime_core.reaper import reaper
from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_looks", "quick_polls")]


def live(platform: LocalPlatform) -> tuple[int, int]:
    """How many pods and disks live."""
    ledger = platform.ledger()
    return ledger["pods"]["live"], ledger["disks"]["live"]


async def test_a_session_has_a_usable_pod_and_leaves_none(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    async with client.pods.session(PodRequest.from_offer(offer, name="s")) as pod:
        assert live(platform) == (1, 0)
        assert pod.pod.name == (await client.pods.get(pod.id)).name
        assert str(pod.ssh[0]) == "root@203.0.113.1 -p 22"
    assert live(platform) == (0, 0), "when the block is left, not later"


async def test_a_pod_that_is_kept_lives_on(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with client.pods.session(PodRequest.from_offer(offer)) as pod:
            pod.keep()
            _ = 1 / 0
    await reaper.drain(client._transport)
    assert live(platform) == (1, 0)


async def test_an_exception_in_the_block_is_the_callers(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("delete_pod", status=503, times=4))
    with pytest.raises(ZeroDivisionError):
        async with client.pods.session(PodRequest.from_offer(offer)):
            _ = 1 / 0
    assert live(platform) == (0, 0)


async def test_a_pod_whose_state_forbids_its_end_is_deleted_later(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("delete_pod", status=409, times=3))
    async with client.pods.session(PodRequest.from_offer(offer)):
        pass
    assert live(platform) == (0, 0)
    assert platform.ledger()["requests"]["delete_pod"] == 4


async def test_a_pod_that_vanished_is_no_trouble(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    async with client.pods.session(PodRequest.from_offer(offer)) as pod:
        platform.vanish_pod(pod.id)
    assert live(platform) == (0, 0)


async def test_a_pod_that_fails_to_install_is_deleted_again(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("create_pod", fails="no image"))
    with pytest.raises(PodInstallationError):
        async with client.pods.session(PodRequest.from_offer(offer)):
            raise AssertionError("the block must not run")
    assert live(platform) == (0, 0)


async def test_a_pod_that_is_not_usable_in_time_is_deleted_again(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(provisioning_time=1000)
    async with AsyncComputeClient() as client:
        page = await client.availability.list_gpus(cloud_id="n3-H100x1")
        request = PodRequest.from_offer(page.items[0])
        with pytest.raises(PodWaitTimeoutError):
            async with client.pods.session(request, timeout=0.2):
                raise AssertionError("the block must not run")
    assert live(platform) == (0, 0)


@pytest.mark.parametrize("kind", ["pods", "disks"])
async def test_a_session_is_not_entered_after_its_time(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer, kind: str
) -> None:
    disks = await client.availability.list_disks(data_center_id="CANADA-1")
    operation = "create_pod" if kind == "pods" else "create_disk"
    platform.add_faults(FaultRule(operation, delay_after=0.4))
    session = (
        client.pods.session(PodRequest.from_offer(offer), timeout=0.3)
        if kind == "pods"
        else client.disks.session(DiskRequest.from_offer(disks.items[0], size=100), timeout=0.3)
    )
    with pytest.raises(TimeoutError):
        async with session:
            raise AssertionError("the block must not run")
    assert live(platform) == (0, 0)


async def test_a_session_that_may_have_made_something_says_so_and_what(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    offer: GpuOffer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    platform.add_faults(
        FaultRule("create_pod", reset="before_commit"), FaultRule("list_pods", status=401)
    )
    with pytest.raises(APIConnectionError):
        async with client.pods.session(PodRequest.from_offer(offer, name="train")):
            raise AssertionError("the block must not run")
    await reaper.drain(client._transport)
    (record,) = [each for each in caplog.records if "go on costing money" in each.message]
    assert re.match(
        r"Pod 'train-[0-9a-f]{10}', asked for as 'train', if it was made, could", record.message
    )


@pytest.mark.parametrize("operation", ["create_pod", "get_pods_status", "delete_pod"])
@pytest.mark.parametrize("times", [1, 2])
async def test_a_session_cancelled_at_any_moment_leaves_nothing(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    offer: GpuOffer,
    operation: str,
    times: int,
) -> None:
    platform.add_faults(FaultRule(operation, delay_before=0.1, delay_after=0.2))
    asked = asyncio.Event()

    async def work() -> None:
        async with client.pods.session(PodRequest.from_offer(offer)):
            pass

    async def watch() -> None:
        while not platform.ledger()["requests"].get(operation):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        asked.set()

    watching = asyncio.ensure_future(watch())
    call = asyncio.ensure_future(work())
    await asyncio.wait_for(asked.wait(), 10)
    for _ in range(times):
        call.cancel()
        await asyncio.sleep(0.02)
    await asyncio.wait([call, watching])
    assert call.cancelled()
    await reaper.drain(client._transport)
    assert live(platform) == (0, 0)
    assert platform.ledger()["pods"]["created"] <= 1


async def test_a_session_whose_create_is_not_answered_has_the_pod_all_the_same(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("create_pod", reset="after_commit"))
    async with client.pods.session(PodRequest.from_offer(offer)) as pod:
        assert pod.id
    assert live(platform) == (0, 0)


async def test_a_session_whose_create_fails_says_so_soon(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    offer: GpuOffer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("prime_core.creation.LATE_PATIENCE", 3.0)
    platform.add_faults(FaultRule("create_pod", status=500))
    began = time.monotonic()
    with pytest.raises(ServerError):
        async with client.pods.session(PodRequest.from_offer(offer)):
            raise AssertionError("the block must not run")
    assert time.monotonic() - began < 2.5, "the search goes on without the caller"
    await reaper.drain(client._transport)
    assert live(platform) == (0, 0)


async def test_a_disk_outlives_the_pod_that_uses_it_and_no_more(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(detach_time=0.3)
    async with AsyncComputeClient() as client:
        disks = await client.availability.list_disks(data_center_id="CANADA-1")
        gpus = await client.availability.list_gpus(cloud_id="n3-H100x1", data_center_id="CANADA-1")
        wanted = DiskRequest.from_offer(disks.items[0], size=100)
        async with client.disks.session(wanted) as disk:
            request = PodRequest.from_offer(gpus.items[0], disks=[disk.id])
            async with client.pods.session(request) as pod:
                assert (await client.disks.get(disk.id)).pods == [pod.id]
                (mounted, _) = (await client.pods.get(pod.id)).attached_resources or []
                assert (mounted.id, mounted.status, mounted.mount_path) == (
                    disk.id,
                    "MOUNTED",
                    "/data",
                )
            assert live(platform) == (0, 1)
        assert live(platform) == (0, 0)


@pytest.mark.parametrize("style", ["async", "sync"])
async def test_a_session_outside_the_main_thread_says_what_it_cant_do(
    platform: LocalPlatform, offer: GpuOffer, style: str
) -> None:
    request = PodRequest.from_offer(offer)

    def work() -> None:
        if style == "sync":
            with ComputeClient() as client, client.pods.session(request):
                return
        asyncio.run(rent())

    async def rent() -> None:
        async with AsyncComputeClient() as client, client.pods.session(request):
            pass

    with pytest.warns(RuntimeWarning, match="outside the main thread") as caught:
        await asyncio.to_thread(work)
    assert [each.filename for each in caught] == [__file__], "once, and at the user's line"
    assert live(platform) == (0, 0)


async def test_a_session_is_entered_once_and_not_pickled(
    client: AsyncComputeClient, offer: GpuOffer
) -> None:
    session = client.pods.session(PodRequest.from_offer(offer))
    with pytest.raises(RuntimeError, match="enter the session"):
        _ = session.id
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(session)
    async with session:
        pass
    with pytest.raises(RuntimeError, match="once"):
        await session.__aenter__()
    with pytest.raises(TypeError, match="PodRequest"):
        client.pods.session("a pod")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout"):
        client.pods.session(PodRequest.from_offer(offer), timeout=0)
