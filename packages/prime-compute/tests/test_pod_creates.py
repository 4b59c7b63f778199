"""Creating pods and disks: whatever goes wrong, the pod or a typed error, never an orphan."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from prime_compute import (
    APIConnectionError,
    AsyncComputeClient,
    BadRequestError,
    ConflictError,
    DiskOffer,
    DiskRequest,
    GpuOffer,
    PaymentRequiredError,
    PodInstallationError,
    PodRequest,
    ServerError,
)
from prime_compute.models.pod_requests import pod_body
from prime_core.reaper import reaper
from prime_local import FaultRule, LocalPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_looks", "quick_polls")]

KINDS = ("pods", "disks")
CREATES = {"pods": "create_pod", "disks": "create_disk"}
DELETES = {"pods": "delete_pod", "disks": "delete_disk"}

Make = Callable[[], Awaitable[Any]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
async def disk_offer(client: AsyncComputeClient) -> DiskOffer:
    page = await client.availability.list_disks(data_center_id="CANADA-1")
    return page.items[0]


@pytest.fixture
def make(client: AsyncComputeClient, kind: str, offer: GpuOffer, disk_offer: DiskOffer) -> Make:
    """Creates a pod or a disk."""

    async def make() -> Any:
        if kind == "pods":
            return await client.pods.create(PodRequest.from_offer(offer, name="My first"))
        request = DiskRequest.from_offer(disk_offer, size=500, name="My first")
        return await client.disks.create(request)

    return make


def counts(platform: LocalPlatform, kind: str) -> tuple[int, int]:
    """How many were made, and how many live."""
    ledger = platform.ledger()
    tally = ledger["pods"] if kind == "pods" else ledger["disks"]
    return tally["created"], tally["live"]


async def test_what_is_made_is_the_callers(
    platform: LocalPlatform, make: Make, kind: str, client: AsyncComputeClient
) -> None:
    made = await make()
    assert made.status == "PROVISIONING"
    assert made.name.startswith("My first-")
    await client.aclose()
    assert counts(platform, kind) == (1, 1)


@pytest.mark.parametrize(
    "fault",
    [
        {"reset": "after_commit"},
        {"garbage": True},
        {"truncate": 20},
    ],
    ids=str,
)
async def test_what_an_unreadable_answer_is_about_is_found(
    platform: LocalPlatform, make: Make, kind: str, fault: dict[str, Any]
) -> None:
    other = await make()
    platform.add_faults(FaultRule(CREATES[kind], times=1, **fault))
    made = await make()
    assert made.id != other.id
    assert counts(platform, kind) == (2, 2), "made once, and kept"
    assert platform.ledger()["requests"][CREATES[kind]] == 2, "sent once"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"reset": "before_commit"}, APIConnectionError),
        ({"status": 500}, ServerError),
        ({"status": 504}, ServerError),
        ({"status": 402}, PaymentRequiredError),
        ({"status": 400}, BadRequestError),
    ],
    ids=str,
)
async def test_what_was_not_made_is_an_error(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    make: Make,
    kind: str,
    fault: dict[str, Any],
    error: type[Exception],
) -> None:
    platform.add_faults(FaultRule(CREATES[kind], times=1, **fault))
    with pytest.raises(error):
        await make()
    await reaper.drain(client._transport)
    assert counts(platform, kind) == (0, 0)
    assert platform.ledger()["requests"][CREATES[kind]] == 1, "sent once"


async def test_what_appears_after_its_failure_is_deleted(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    offer: GpuOffer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway gives up, and what stands behind it makes the pod all the same."""
    monkeypatch.setattr("prime_compute._async.pods.new_mark", lambda: "-0123456789")
    platform.add_faults(FaultRule("create_pod", times=1, status=504))
    request = PodRequest.from_offer(offer, name="late")
    with pytest.raises(ServerError):
        await client.pods.create(request)
    body = json.loads(pod_body(request, "-0123456789"))
    await client.client.post("/pods/", body)
    assert counts(platform, "pods") == (1, 1)
    await reaper.drain(client._transport)
    assert counts(platform, "pods") == (1, 0)


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.1, 0.25])
async def test_what_a_cancelled_create_makes_is_deleted(
    platform: LocalPlatform, client: AsyncComputeClient, make: Make, kind: str, moment: float
) -> None:
    platform.add_faults(FaultRule(CREATES[kind], delay_before=0.05, delay_after=0.15))
    call = asyncio.ensure_future(make())
    await asyncio.sleep(moment)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled() or moment > 0.2
    if not call.cancelled():
        return  # it was quicker: then it is the caller's
    await reaper.drain(client._transport)
    assert counts(platform, kind)[1] == 0


async def test_what_a_twice_cancelled_create_makes_is_deleted_though_its_answer_is_lost(
    platform: LocalPlatform, client: AsyncComputeClient, make: Make, kind: str
) -> None:
    platform.add_faults(
        FaultRule(CREATES[kind], delay_before=0.2, reset="after_commit"),
        FaultRule(DELETES[kind], status=500, times=1),
    )
    call = asyncio.ensure_future(make())
    await asyncio.sleep(0.1)
    assert platform.ledger()["requests"][CREATES[kind]] == 1
    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    await reaper.drain(client._transport)
    assert counts(platform, kind) == (1, 0)


async def test_what_cant_be_given_back_is_named_as_it_was_asked_for_and_as_it_was_made(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    make: Make,
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    platform.add_faults(
        FaultRule(CREATES[kind], delay_before=0.1, delay_after=0.1),
        FaultRule(DELETES[kind], status=401),
    )
    call = asyncio.ensure_future(make())
    await asyncio.sleep(0.05)
    call.cancel()
    await asyncio.wait([call])
    await reaper.drain(client._transport)
    (made,) = [each async for each in getattr(client, kind).iter()]
    (record,) = [each for each in caplog.records if "go on costing money" in each.message]
    said = f"{made.name!r}, asked for as 'My first' (id {made.id}) could not be undone"
    assert said in record.message
    assert "if it was made" not in record.message


async def test_many_creates_of_one_name_each_find_their_own(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("create_pod", every=2, reset="after_commit"))
    request = PodRequest.from_offer(offer, name="same")
    pods = await asyncio.gather(*(client.pods.create(request) for _ in range(4)))
    assert len({pod.id for pod in pods}) == 4
    assert counts(platform, "pods") == (4, 4)


async def test_an_offer_that_is_sold_out_meanwhile_is_a_typed_error(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.sell_out(offer.cloud_id)
    with pytest.raises(ConflictError, match="sold out"):
        await client.pods.create(PodRequest.from_offer(offer))
    assert counts(platform, "pods") == (0, 0)


async def test_a_price_above_the_callers_is_a_typed_error(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    with pytest.raises(BadRequestError, match="maxPrice"):
        await client.pods.create(PodRequest.from_offer(offer, max_price="0.5"))
    assert counts(platform, "pods") == (0, 0)


async def test_a_pod_that_fails_to_install_is_told_and_can_be_deleted(
    platform: LocalPlatform, client: AsyncComputeClient, offer: GpuOffer
) -> None:
    platform.add_faults(FaultRule("create_pod", fails="image not found"))
    pod = await client.pods.create(PodRequest.from_offer(offer))
    with pytest.raises(PodInstallationError) as caught:
        await client.pods.wait_until_active(pod.id)
    assert caught.value.failure == "image not found"
    await client.pods.delete(pod.id)
    assert counts(platform, "pods") == (1, 0)


async def test_a_team_owns_what_is_made_for_it(
    platform: LocalPlatform,
    client: AsyncComputeClient,
    offer: GpuOffer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRIME_TEAM_ID", "team-a")
    async with AsyncComputeClient() as teams:
        configured = await teams.pods.create(PodRequest.from_offer(offer, shared_with_team=True))
        named = await teams.pods.create(PodRequest.from_offer(offer, team_id="team-b"))
        personal = await teams.pods.create(PodRequest.from_offer(offer, team_id=""))
    assert (configured.team_id, named.team_id, personal.team_id) == ("team-a", "team-b", None)
    with pytest.raises(ValueError, match="shared_with_team needs a team"):
        await client.pods.create(PodRequest.from_offer(offer, shared_with_team=True))
    assert platform.ledger()["requests"]["create_pod"] == 3
