"""Faults in the middle of a command's stream."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import RawClient

OPERATION = "command_session_start"
# Start, two pieces of output, end, end of stream.
SCRIPT = "echo one; sleep 0.1; echo two"


@pytest.fixture
async def box(client: RawClient) -> dict[str, Any]:
    return await client.running()


async def _envelopes(client: RawClient, box: dict[str, Any], helpers: Any) -> list[str]:
    """Read a stream to its end, however that comes; return what arrived."""
    kinds = []
    try:
        async with client.start(box, SCRIPT) as response:
            while True:
                flags, message = await helpers.read_event(response)
                kinds.append("over" if flags & 2 else next(iter(message["event"])))
    except asyncio.IncompleteReadError:
        kinds.append("clean end")
    except aiohttp.ClientError as error:
        kinds.append(type(error).__name__)
    return kinds


async def test_unspoiled_stream(client: RawClient, box: dict[str, Any], helpers: Any) -> None:
    kinds = await _envelopes(client, box, helpers)
    assert kinds == ["start", "data", "data", "end", "over", "clean end"]


@pytest.mark.parametrize("after", [0, 1, 2, 4])
@pytest.mark.parametrize(
    "fault",
    [{"reset": "after_commit"}, {"truncate": 3}, {"garbage": True}],
    ids=lambda fault: next(iter(fault)),
)
async def test_stream_breaks_off_after_some_envelopes(
    client: RawClient,
    prime_platform: LocalPlatform,
    box: dict[str, Any],
    helpers: Any,
    after: int,
    fault: dict[str, Any],
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, after_envelopes=after, times=1, **fault))
    kinds = await _envelopes(client, box, helpers)
    assert kinds[:-1] == ["start", "data", "data", "end", "over"][:after]
    assert kinds[-1] != "clean end" or fault == {"garbage": True}
    assert "over" not in kinds
    assert (await client.run(box, SCRIPT)).stdout == "one\ntwo\n"


@pytest.mark.parametrize("after", [0, 1, 4])
async def test_bad_chunk_after_some_envelopes(
    client: RawClient,
    prime_platform: LocalPlatform,
    box: dict[str, Any],
    helpers: Any,
    after: int,
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, after_envelopes=after, bad_chunk=3, times=1))
    payload = json.dumps({"command": {"cmd": "/bin/sh", "args": ["-c", SCRIPT]}}).encode()
    headers = client.gateway_headers(box, "application/connect+json")
    url = client.gateway(box)
    body = b"\0" + len(payload).to_bytes(4, "big") + payload
    answer = await helpers.exchange_raw(url, "POST", headers, body)
    chunks = answer.partition(b"\r\n\r\n")[2].split(b"\r\n")
    assert chunks[-4:-1] == [b"3", chunks[-3], b"no-size"]
    assert len(chunks) == 2 * after + 4


async def test_reset_before_commit_runs_nothing(
    client: RawClient, prime_platform: LocalPlatform, box: dict[str, Any]
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, reset="before_commit", times=1))
    with pytest.raises(aiohttp.ClientError):
        await client.run(box, "touch ran")
    assert (await client.run(box, "ls")).stdout == ""


async def test_command_goes_on_after_a_reset(
    client: RawClient, prime_platform: LocalPlatform, box: dict[str, Any]
) -> None:
    prime_platform.add_faults(
        FaultRule(OPERATION, reset="after_commit", after_envelopes=1, times=1)
    )
    with pytest.raises(aiohttp.ClientError):
        await client.run(box, "sleep 0.1; touch ran")
    await asyncio.sleep(0.3)
    assert (await client.run(box, "ls")).stdout == "ran\n"


async def test_stalled_stream_pauses_within_an_envelope(
    client: RawClient, prime_platform: LocalPlatform, box: dict[str, Any], helpers: Any
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, after_envelopes=1, stall=1.0))
    async with client.start(box, SCRIPT) as response:
        await helpers.read_event(response)
        started = time.monotonic()
        head = await response.content.readexactly(5)
        assert time.monotonic() - started < 0.8
        await response.content.readexactly(int.from_bytes(head[1:], "big"))
        assert time.monotonic() - started >= 0.8
        rest = await helpers.read_stream(response)
    assert (rest.stdout, rest.exit_code) == ("two\n", 0)


async def test_trickled_stream_is_whole(
    client: RawClient, prime_platform: LocalPlatform, box: dict[str, Any]
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, trickle=0.0005))
    result = await client.run(box, "echo one & echo two >&2 & wait")
    assert (result.stdout, result.stderr, result.exit_code) == ("one\n", "two\n", 0)


@pytest.mark.parametrize(
    ("omit", "kinds"),
    [
        ("end_event", ["start", "data", "data", "over", "clean end"]),
        ("end_envelope", ["start", "data", "data", "end", "clean end"]),
    ],
)
async def test_end_that_never_comes(
    client: RawClient,
    prime_platform: LocalPlatform,
    box: dict[str, Any],
    helpers: Any,
    omit: Any,
    kinds: list[str],
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, omit=omit))
    assert await _envelopes(client, box, helpers) == kinds


async def test_delay_after_holds_the_stream_back_while_the_command_waits(
    client: RawClient, prime_platform: LocalPlatform, box: dict[str, Any]
) -> None:
    prime_platform.add_faults(FaultRule(OPERATION, delay_after=0.2))
    started = time.monotonic()
    assert (await client.run(box, "echo x")).stdout == "x\n"
    assert time.monotonic() - started >= 0.2
