from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prime_local.clock import PlatformClock
from prime_local.limits import SlidingWindow

if TYPE_CHECKING:
    from conftest import Answer, OpenPlatform, RawClient

BOX = {"name": "box", "docker_image": "python"}


async def _create(client: RawClient, **fields: object) -> Answer:
    return await client.call("POST", "/api/v1/sandbox", {**BOX, **fields})


async def test_burst_of_192_in_10_seconds_then_429_with_retry_after(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform()
    answers = await asyncio.gather(*(_create(client) for _ in range(200)))
    refused = [answer for answer in answers if answer.status != 201]
    assert [answer.status for answer in refused] == [429] * 8
    for answer in refused:
        assert answer.body == {"detail": "Rate limit exceeded"}
        assert 1 <= int(answer.headers["Retry-After"]) <= 10
    await platform.advance(10)
    assert (await _create(client)).status == 201
    assert platform.ledger()["responses"] == {"201": 193, "429": 8}


async def test_replayed_idempotency_key_is_no_creation(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    first = await _create(client, idempotency_key="k")
    for _ in range(191):
        assert (await _create(client)).status == 201
    assert (await _create(client)).status == 429
    replay = await _create(client, idempotency_key="k")
    assert (replay.status, replay.body["id"]) == (201, first.body["id"])


async def test_refused_create_counts_for_no_limit(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    for _ in range(192):
        await _create(client, name="")
    assert (await _create(client)).status == 201


async def test_account_limits_are_429_without_retry_after(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    made = []
    for _ in range(64):
        answer = await _create(client, cpu_cores=16, memory_gb=64, disk_size_gb=128)
        assert answer.status == 201
        made.append(answer.body)
    answer = await _create(client, memory_gb=1)
    assert (answer.status, answer.body) == (429, {"detail": "Memory limit reached (4096)"})
    assert "Retry-After" not in answer.headers
    await client.call("DELETE", f"/api/v1/sandbox/{made[0]['id']}")
    await platform.advance(10)
    assert (await _create(client, memory_gb=1)).status == 201


async def test_active_sandbox_limit(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    made = 0
    while made < 1024:
        answers = await asyncio.gather(*(_create(client) for _ in range(min(192, 1024 - made))))
        assert {answer.status for answer in answers} == {201}
        made += len(answers)
        await platform.advance(10)
    answer = await _create(client)
    assert answer.body == {"detail": "Active sandbox limit reached (1024)"}
    assert "Retry-After" not in answer.headers


async def test_without_limits_everything_passes(client: RawClient) -> None:
    answers = await asyncio.gather(*(_create(client) for _ in range(300)))
    assert {answer.status for answer in answers} == {201}


async def test_window_slides_event_by_event() -> None:
    clock = PlatformClock()
    window = SlidingWindow(clock, 2, 10.0)
    window.record()
    clock.advance(4)
    window.record()
    assert 5 < window.wait() <= 6
    clock.advance(6)
    assert window.wait() == 0
    window.record()
    assert 3 < window.wait() <= 4
