from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

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
    client: RawClient, prime_platform: LocalPlatform, when: Any, made: int
) -> None:
    prime_platform.add_faults(FaultRule(reset=when, times=1))
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
    choice: dict[str, Any],
    spoiled: list[int],
) -> None:
    prime_platform.add_faults(FaultRule(**choice, status=500))
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


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({}, "expected"),
        ({"rules": {}}, "expected"),
        ({"rules": [{}, {"statsu": 500}]}, "rule 2: .*statsu"),
        ({"rules": [{"status": "500"}]}, "rule 1: status"),
        ({"rules": [{"nth": 0}]}, "rule 1: nth"),
        ({"rules": [{"stall": -1}]}, "rule 1: stall"),
        ({"rules": [{"reset": "sometimes"}]}, "rule 1: reset"),
        ({"rules": [{"operation": "create_sandbx"}]}, "create_sandbx"),
    ],
)
async def test_rules_that_make_no_sense_are_refused_and_none_is_kept(
    client: RawClient, document: dict[str, object], reason: str
) -> None:
    answer = await client.call("POST", "/_local/faults", document)
    assert answer.status == 422
    assert re.search(reason, answer.body["detail"])
    assert (await client.call("GET", "/_local/faults")).body == {"rules": []}


async def test_every_field_of_a_rule_can_be_sent(client: RawClient) -> None:
    sent = [asdict(FaultRule()), asdict(FaultRule("get_sandbox", nth=[1, 2], omit="end_event"))]
    assert (await client.call("POST", "/_local/faults", {"rules": sent})).status == 200
    listed = (await client.call("GET", "/_local/faults")).body["rules"]
    assert listed == [{**rule, "matched": 0, "hits": 0} for rule in sent]


async def test_bad_chunk_breaks_the_encoding_after_some_bytes(
    client: RawClient, prime_platform: LocalPlatform, helpers: Any
) -> None:
    prime_platform.add_faults(FaultRule("create_sandbox", bad_chunk=7, times=1))
    body = json.dumps(BOX).encode()
    answer = await helpers.exchange_raw(client.url + PATH, "POST", client.key, body)
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert answer.endswith(b'\r\n\r\n7\r\n{"id":"\r\nno-size\r\n')
    assert prime_platform.ledger()["sandboxes"]["created"] == 1


async def test_trickle_sends_byte_by_byte(client: RawClient, prime_platform: LocalPlatform) -> None:
    prime_platform.add_faults(FaultRule("list_sandboxes", trickle=0.002))
    started = time.monotonic()
    async with client.session.get(client.url + PATH, headers=client.key) as response:
        pieces = [piece async for piece in response.content.iter_any()]
    body = b"".join(pieces)
    assert json.loads(body)["total"] == 0
    assert len(pieces) > len(body) / 2
    assert time.monotonic() - started >= 0.002 * len(body)


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
