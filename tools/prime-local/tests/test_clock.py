from __future__ import annotations

import asyncio
import json
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local.clock import PlatformClock

if TYPE_CHECKING:
    from conftest import OpenPlatform


async def test_timer_fires_in_real_time() -> None:
    clock = PlatformClock()
    fired = asyncio.Event()
    clock.call_later(0.01, fired.set)
    await asyncio.wait_for(fired.wait(), 5)


async def test_timer_never_fires_from_within_the_call() -> None:
    clock = PlatformClock()
    fired: list[str] = []
    clock.call_later(0, lambda: fired.append("x"))
    assert fired == []
    await asyncio.sleep(0.02)
    assert fired == ["x"]


async def test_cancelled_timer_does_not_fire() -> None:
    clock = PlatformClock()
    fired: list[str] = []
    clock.call_later(5, lambda: fired.append("x")).cancel()
    clock.advance(10)
    assert fired == []


async def test_a_timers_own_timers_fire_in_the_same_advance_at_their_times() -> None:
    clock = PlatformClock()
    times: list[float] = []
    start = clock.now()

    def tick() -> None:
        times.append(clock.now() - start)
        clock.call_later(10, tick)

    clock.call_later(10, tick)
    clock.advance(35)
    assert times == pytest.approx([10, 20, 30], abs=0.5)


@given(st.lists(st.integers(0, 10**6), max_size=20), st.integers(0, 10**6))
def test_advance_fires_exactly_what_is_due_in_order(delays: list[int], step: int) -> None:
    async def check() -> None:
        clock = PlatformClock()
        fired: list[int] = []
        for delay in delays:
            clock.call_later(delay, lambda delay=delay: fired.append(delay))  # type: ignore[misc]
        clock.advance(step)
        clock.close()
        assert fired == sorted(fired)
        # Real time passes too: what is due within the next second may have fired as well.
        assert {delay for delay in delays if delay <= step} <= set(fired)
        assert all(delay <= step + 1 for delay in fired)

    asyncio.run(check())


async def test_lifetime_ends_a_sandbox_on_the_platform_clock(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    created = await client.running(timeout_minutes=2)
    forever = await client.running(timeout_minutes=-1)
    await platform.advance(119)
    assert (await client.get(created))["status"] == "RUNNING"
    await platform.advance(2)
    found = await client.get(created)
    assert (found["status"], found["errorType"]) == ("TIMEOUT", "TIMEOUT")
    await platform.advance(10_000_000)
    assert (await client.get(forever))["status"] == "RUNNING"
    assert platform.ledger()["sandboxes"]["live"] == 1


async def test_lifetime_starts_when_the_sandbox_runs(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(start_delay=600)
    created = await client.create(timeout_minutes=1)
    await platform.advance(300)
    assert (await client.get(created))["status"] == "PROVISIONING"
    await platform.advance(301)
    assert (await client.get(created))["status"] == "RUNNING"
    await platform.advance(61)
    assert (await client.get(created))["status"] == "TIMEOUT"


async def test_idle_timeout_is_put_off_by_a_command_and_pinned_while_it_runs(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform()
    created = await client.running(idle_timeout_minutes=1, timeout_minutes=-1)
    await platform.advance(40)
    assert (await client.run(created, "true")).exit_code == 0
    await platform.advance(40)
    assert (await client.get(created))["status"] == "RUNNING"
    async with client.start(created, "echo on; sleep 30") as stream:
        await stream.content.readexactly(5)
        await platform.advance(600)
        assert (await client.get(created))["status"] == "RUNNING"
        await client.signal(created, session={"pid": await _pid(stream)}, signal="SIGNAL_SIGKILL")
        await stream.read()
    await platform.advance(61)
    found = await client.get(created)
    assert (found["status"], found["terminationReason"]) == ("TERMINATED", "idle_timeout")


async def _pid(stream: object) -> int:
    payload = await stream.content.readuntil(b"}}}")  # type: ignore[attr-defined]
    pid: int = json.loads(payload)["event"]["start"]["pid"]
    return pid


@pytest.mark.parametrize("skew", [-7200.0, 7200.0])
async def test_skewed_clock_shifts_every_date_and_no_deadline(
    open_platform: OpenPlatform, skew: float
) -> None:
    platform, client = await open_platform(clock_skew=skew)
    box = await client.running(timeout_minutes=1)
    answer = await client.call("GET", f"/api/v1/sandbox/{box['id']}")
    expected = datetime.now(timezone.utc).timestamp() + skew
    dates = {
        "created": datetime.fromisoformat(box["createdAt"].replace("Z", "+00:00")),
        "started": datetime.fromisoformat(answer.body["startedAt"].replace("Z", "+00:00")),
        "header": parsedate_to_datetime(answer.headers["Date"]),
    }
    for name, date in dates.items():
        assert abs(date.timestamp() - expected) < 5, name
    expires = datetime.fromisoformat(box["gatewayAuth"]["expires_at"].replace("Z", "+00:00"))
    assert abs(expires.timestamp() - expected - 1800) < 5
    assert (await client.run(box, "echo x")).stdout == "x\n"
    await platform.advance(61)
    assert (await client.get(box))["status"] == "TIMEOUT"


async def test_platform_dates_follow_the_clock(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    before = await client.create()
    await platform.advance(86_400)
    after = await client.create()
    assert after["createdAt"][:10] > before["createdAt"][:10]
