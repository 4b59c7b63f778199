from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from prime_local import LocalPlatform
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


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("cpu_cores", (0.1, 16), (0, -1, 16.5)),
        ("memory_gb", (0.125, 64), (0.1, 64.5)),
        ("disk_size_gb", (2, 128), (1.9, 129)),
        ("gpu_count", (0,), (-1, 9, 1.5)),
        ("timeout_minutes", (1, 10_000_000, -1, -60), (0, 1.5)),
        ("idle_timeout_minutes", (1, 60), (0, -1, 1441)),
        ("name", ("x", "x" * 100), ("", "x" * 101)),
        ("idempotency_key", ("k", "k" * 128), ("", "k" * 129)),
    ],
)
async def test_ranges_of_a_sandbox(
    client: RawClient, field: str, good: tuple[object, ...], bad: tuple[object, ...]
) -> None:
    for value in good:
        assert (await _create(client, **{field: value})).status == 201, value
    for value in bad:
        answer = await _create(client, **{field: value})
        assert answer.status == 422, value
        assert answer.body["detail"][0]["loc"] == ["body", field]


async def test_idle_time_of_a_day_needs_a_lifetime_as_long_or_none(client: RawClient) -> None:
    for lifetime, status in ((1439, 422), (1440, 201), (-1, 201)):
        answer = await _create(client, idle_timeout_minutes=1440, timeout_minutes=lifetime)
        assert answer.status == status, lifetime


async def test_documented_rate_limit_counts_refused_requests_too(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform()
    answers = [await client.call("PATCH", "/api/v1/images", {}) for _ in range(51)]
    assert [answer.status for answer in answers] == [422] * 50 + [429]
    assert 50 <= int(answers[-1].headers["Retry-After"]) <= 60
    await platform.advance(60)
    assert (await client.call("PATCH", "/api/v1/images", {})).status == 422


async def test_older_rate_limits_are_enforced_only_when_asked_for(
    open_platform: OpenPlatform,
) -> None:
    _, client = await open_platform()
    box = await client.running()
    path = f"/api/v1/sandbox/{box['id']}/auth"
    assert {(await client.call("POST", path)).status for _ in range(121)} == {200}

    platform, client = await open_platform(strict_limits=True)
    box, other = await client.running(), await client.running()
    path = f"/api/v1/sandbox/{box['id']}/auth"
    for _ in range(120):
        assert (await client.call("POST", path)).status == 200
    refused = await client.call("POST", path)
    assert (refused.status, refused.body) == (429, {"detail": "Rate limit exceeded"})
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    # Each sandbox has a count of its own, and a wrong key counts for nobody.
    assert (await client.call("POST", f"/api/v1/sandbox/{other['id']}/auth")).status == 200
    assert (await client.call("POST", path, headers={})).status == 401
    await platform.advance(60)
    assert (await client.call("POST", path)).status == 200


async def test_older_limit_of_a_collection_is_one_for_all(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(strict_limits=True)
    body = {"sandbox_ids": ["sbx_nope"]}
    answers = [await client.call("DELETE", "/api/v1/sandbox", body) for _ in range(51)]
    assert [answer.status for answer in answers] == [200] * 50 + [429]


async def test_without_limits_there_is_none_at_all(client: RawClient) -> None:
    answers = [await client.call("PATCH", "/api/v1/images", {}) for _ in range(60)]
    assert {answer.status for answer in answers} == {422}


def test_strict_limits_without_limits_is_a_contradiction() -> None:
    with pytest.raises(ValueError, match="needs limits"):
        LocalPlatform(limits=False, strict_limits=True)


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
