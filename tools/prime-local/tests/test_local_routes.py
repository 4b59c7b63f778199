from __future__ import annotations

import asyncio
import os
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest

from prime_local import ContractViolation, LocalPlatform
from prime_local.calls import Call, Reply
from prime_local.control import HANDLERS

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient


async def test_local_routes_need_no_key(client: RawClient) -> None:
    for method, path in (("GET", "/_local/ledger"), ("POST", "/_local/reset")):
        assert (await client.call(method, path, headers={})).status == 200
    document = (await client.call("GET", "/openapi.json", headers={})).body
    assert document["openapi"] == "3.1.0"
    assert (await client.call("GET", "/_local/nothing")).status == 404


async def test_ledger_counts_what_happened(client: RawClient) -> None:
    made = [await client.create(idempotency_key=key) for key in ("a", "b", "a")]
    await client.call("DELETE", f"/api/v1/sandbox/{made[0]['id']}")
    await client.call("GET", "/api/v1/sandbox/sbx_nope")
    assert (await client.call("GET", "/_local/ledger")).body == {
        "sandboxes": {"live": 1, "peak": 2, "created": 2, "deleted": 1},
        "pods": {"live": 0, "peak": 0, "created": 0, "deleted": 0},
        "disks": {"live": 0, "peak": 0, "created": 0, "deleted": 0},
        "training_volumes": {"live": 0, "peak": 0, "created": 0, "deleted": 0},
        "runs": {"live": 0, "peak": 0, "created": 0, "deleted": 0},
        "creates_per_key": {"a": 1, "b": 1},
        "requests": {"create_sandbox": 3, "delete_sandbox": 1, "get_sandbox": 1},
        "responses": {"201": 3, "200": 1, "404": 1},
        "inference": {"open": 0, "peak": 0, "abandoned": 0, "accounts": {}},
    }


async def test_reset_forgets_sandboxes_keys_and_counts(client: RawClient) -> None:
    before = await client.create(idempotency_key="k")
    await client.call("POST", "/_local/reset")
    assert (await client.call("GET", f"/api/v1/sandbox/{before['id']}")).status == 404
    after = await client.create(idempotency_key="k")
    assert after["id"] != before["id"]
    ledger = (await client.call("GET", "/_local/ledger")).body
    assert ledger["sandboxes"] == {"live": 1, "peak": 1, "created": 1, "deleted": 0}


async def test_sandboxes_get_the_ids_they_are_given(client: RawClient) -> None:
    for ids in ([], ["sbx_123", "<web-sandbox-id>"]):
        answer = await client.call("POST", "/_local/sandbox-ids", {"ids": ids})
        assert answer.status == 200
    first, second = await client.running(), await client.running()
    assert (first["id"], second["id"]) == ("sbx_123", "<web-sandbox-id>")
    assert (await client.run(second, "echo there")).stdout == "there\n"
    assert (await client.call("DELETE", "/api/v1/sandbox/%3Cweb-sandbox-id%3E")).status == 200
    assert (await client.create())["id"].startswith("sbx_")
    for wrong in (["sbx_123"], ["a", "a"], ["a/b"], [".."], [""], ["x" * 65], [1], "abc", None):
        answer = await client.call("POST", "/_local/sandbox-ids", {"ids": wrong})
        assert answer.status == 422
    assert (await client.create())["id"].startswith("sbx_")


async def test_clock_route_advances_and_refuses_nonsense(client: RawClient) -> None:
    box = await client.running(timeout_minutes=1)
    answer = await client.call("POST", "/_local/clock/advance", {"seconds": 61})
    assert answer.status == 200
    assert (await client.get(box))["status"] == "TIMEOUT"
    for seconds in (-1, "x", None):
        answer = await client.call("POST", "/_local/clock/advance", {"seconds": seconds})
        assert answer.status == 422
    assert (await client.call("POST", "/_local/clock/advance", [])).status == 422


async def test_seed_repeats_ids_and_key(open_platform: OpenPlatform) -> None:
    seen = []
    for seed in (1, 1, 2):
        platform, client = await open_platform(seed=seed)
        seen.append((platform.api_key, (await client.create())["id"]))
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


async def test_same_seed_beside_each_other_does_not_kill_the_others_commands(
    open_platform: OpenPlatform,
) -> None:
    (_, one), (_, two) = [await open_platform(seed=1) for _ in range(2)]
    first, second = await one.running(), await two.running()
    assert first["id"] == second["id"]
    async with two.start(second, "sleep 0.5; echo survived") as response:
        await response.content.readexactly(5)
        await one.run(first, "true")
        await one.call("DELETE", f"/api/v1/sandbox/{first['id']}")
        assert b"c3Vydml2ZWQK" in await response.read()


async def _get_once(seen: list[int]) -> None:
    async with LocalPlatform() as platform, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {platform.api_key}"}
        url = platform.url + "/api/v1/sandbox/x"
        async with session.get(url, headers=headers) as response:
            assert "oops" not in await response.text()
            seen.append(response.status)


async def test_answer_that_breaks_the_contract_fails_the_platform_on_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(call: Call) -> Reply:
        return Reply({"id": 5})

    monkeypatch.setitem(HANDLERS, "get_sandbox", broken)
    with pytest.raises(ContractViolation, match=r"get_sandbox 200 answer\.name: Field required"):
        await _get_once([])


async def test_failing_handler_is_500_and_fails_the_platform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(call: Call) -> Reply:
        raise KeyError("oops")

    monkeypatch.setitem(HANDLERS, "get_sandbox", broken)
    seen: list[int] = []
    with pytest.raises(ContractViolation, match="unexpected error"):
        await _get_once(seen)
    assert seen == [500]


async def test_platform_outside_its_block_says_so() -> None:
    platform = LocalPlatform()
    with pytest.raises(RuntimeError, match="async with"):
        _ = platform.url


async def test_taken_port_is_an_error_and_leaves_nothing_open(
    open_platform: OpenPlatform,
) -> None:
    platform, _ = await open_platform()
    port = int(platform.url.rpartition(":")[2])
    with pytest.raises(OSError, match="address"):
        async with LocalPlatform(port=port):
            pass


async def test_request_that_breaks_off_is_no_fault_of_the_platform(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform()
    address = urllib.parse.urlsplit(platform.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    key = client.key["Authorization"]
    head = ("POST /api/v1/sandbox HTTP/1.1", "Host: x", f"Authorization: {key}")
    writer.write("\r\n".join((*head, "Content-Length: 90", "", "{")).encode())
    await writer.drain()
    await asyncio.sleep(0.1)
    writer.transport.abort()
    await asyncio.sleep(0.1)
    assert platform.ledger()["requests"] == {"create_sandbox": 1}
    assert platform.ledger()["sandboxes"]["created"] == 0


async def test_leaving_keeps_only_the_records_in_the_data_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    async with LocalPlatform(data_dir=tmp_path):
        assert [name for name in os.listdir(tmp_path) if name.startswith("prime-local-")]
    assert sorted(os.listdir(tmp_path)) == ["mine", "platform.sqlite3", "traces.sqlite3"]
