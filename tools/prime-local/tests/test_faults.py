from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest

from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

BOX = {"name": "box", "docker_image": "python", "idempotency_key": "k"}
PATH = "/api/v1/sandbox"


async def test_status_fault_answers_without_processing(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(
        FaultRule("create_sandbox", nth=1, status=503, headers={"Retry-After": "2"})
    )
    answer = await client.call("POST", PATH, BOX)
    assert (answer.status, answer.body) == (503, {"detail": "Injected fault"})
    assert answer.headers["Retry-After"] == "2"
    assert prime_platform.ledger()["sandboxes"]["created"] == 0
    assert (await client.call("POST", PATH, BOX)).status == 201
    assert prime_platform.ledger()["responses"] == {"503": 1, "201": 1}
    assert prime_platform.ledger()["requests"] == {"create_sandbox": 2}


@pytest.mark.parametrize(("when", "made"), [("before_commit", 0), ("after_commit", 1)])
async def test_reset_breaks_the_connection_before_or_after_the_commit(
    client: RawClient, prime_platform: LocalPlatform, when: str, made: int
) -> None:
    prime_platform.add_faults(FaultRule.from_wire({"reset": when, "times": 1}))
    with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
        await client.call("POST", PATH, BOX)
    assert prime_platform.ledger()["sandboxes"]["created"] == made
    assert prime_platform.ledger()["responses"] == {}
    assert (await client.call("POST", PATH, BOX)).status == 201
    assert prime_platform.ledger()["creates_per_key"] == {"k": 1}


async def test_truncated_body_ends_the_connection_early(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(FaultRule("list_sandboxes", truncate=10))
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.call("GET", PATH)


async def test_garbage_is_html_with_status_200(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(FaultRule("list_sandboxes", garbage=True))
    answer = await client.call("GET", PATH)
    assert answer.status == 200
    assert answer.body.startswith(b"<!DOCTYPE html>")


async def test_delays_and_stall_hold_the_answer_back(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    for rule in (
        FaultRule(delay_before=0.2),
        FaultRule(delay_after=0.2),
        FaultRule(stall=0.2),
    ):
        prime_platform.clear_faults()
        prime_platform.add_faults(rule)
        started = time.monotonic()
        assert (await client.call("GET", PATH)).status == 200
        assert time.monotonic() - started >= 0.2


async def test_delay_after_waits_between_commit_and_answer(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(FaultRule("create_sandbox", delay_after=5))
    call = asyncio.create_task(client.call("POST", PATH, BOX))
    deadline = time.monotonic() + 3
    while not prime_platform.ledger()["sandboxes"]["created"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert not call.done()
    call.cancel()


@pytest.mark.parametrize(
    ("choice", "spoiled"),
    [
        ({"nth": 2}, [2]),
        ({"nth": [1, 3]}, [1, 3]),
        ({"every": 2}, [2, 4, 6]),
        ({"times": 2}, [1, 2]),
        ({"every": 2, "times": 1}, [2]),
        ({"operation": "get_sandbox"}, []),
        ({"path_prefix": "/api/v1/other"}, []),
        ({"path_prefix": "/api/v1/sand", "nth": 6}, [6]),
    ],
)
async def test_which_requests_a_rule_chooses(
    client: RawClient,
    prime_platform: LocalPlatform,
    choice: dict[str, object],
    spoiled: list[int],
) -> None:
    prime_platform.add_faults(FaultRule.from_wire({**choice, "status": 500}))
    statuses = [(await client.call("GET", PATH)).status for _ in range(6)]
    assert [number for number, status in enumerate(statuses, 1) if status == 500] == spoiled


async def test_probability_repeats_with_its_seed(open_platform: OpenPlatform) -> None:
    rule = FaultRule(status=500, probability=0.5, seed=7)
    runs = []
    for _ in range(2):
        _, client = await open_platform(faults=[rule])
        runs.append([(await client.call("GET", PATH)).status for _ in range(20)])
    assert runs[0] == runs[1]
    assert set(runs[0]) == {200, 500}


async def test_rules_over_http_are_listed_with_their_hits_and_cleared(client: RawClient) -> None:
    rules = [{"operation": "list_sandboxes", "nth": 2, "status": 500}]
    assert (await client.call("POST", "/_local/faults", {"rules": rules})).status == 200
    for _ in range(3):
        await client.call("GET", PATH)
    listed = (await client.call("GET", "/_local/faults")).body["rules"]
    assert [(rule["matched"], rule["hits"]) for rule in listed] == [(3, 1)]
    await client.call("DELETE", "/_local/faults")
    assert (await client.call("GET", "/_local/faults")).body == {"rules": []}
    bad = await client.call("POST", "/_local/faults", {"rules": [{"statsu": 500}]})
    assert bad.status == 422


async def test_outage_refuses_connections_and_keeps_the_sandboxes(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    box = await client.running()
    down = asyncio.create_task(prime_platform.outage(0.4))
    await asyncio.sleep(0.1)
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.get(box)
    await down
    assert (await client.get(box))["status"] == "RUNNING"


async def test_outage_cuts_a_call_in_flight(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    prime_platform.add_faults(FaultRule("create_sandbox", times=1, delay_after=5))
    call = asyncio.create_task(client.call("POST", PATH, BOX))
    await asyncio.sleep(0.2)
    await client.call("POST", "/_local/outage", {"seconds": 0.2})
    with pytest.raises(aiohttp.ClientConnectionError):
        await asyncio.wait_for(call, 3)
