"""Who may use the traces service, how much it stores, and when its index is ready."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from trace_uploads import Uploads, ids, lines, record, rows

from prime_local import PlatformProcess

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

pytestmark = pytest.mark.timeout(60)

LIST, GET = ("GET", "/traces/api/v1/traces"), ("GET", "/traces/api/v1/traces/a")
DELETE = ("DELETE", "/traces/api/v1/traces/a")


async def code(client: RawClient, route: tuple[str, str]) -> str:
    answer = await client.call(*route)
    return f"{answer.status} {answer.body['error']['code']}"


async def test_a_key_is_needed(client: RawClient) -> None:
    for headers in ({}, {"Authorization": "Bearer pit_wrong"}):
        for route in (LIST, DELETE, ("POST", LIST[1])):
            answer = await client.call(*route, headers=headers)
            assert (answer.status, answer.body["error"]["code"]) == (401, "unauthenticated")


async def test_an_account_that_opted_out_has_no_route(
    open_platform: OpenPlatform, tmp_path: Path
) -> None:
    platform, client = await open_platform(data_dir=tmp_path)
    uploads = Uploads(client)
    await uploads.stored(record("a"))
    await platform.set_traces(enabled=False)
    for route in (LIST, GET, DELETE):
        assert await code(client, route) == "403 service_not_enabled"
    assert (await uploads.refused(record("b"))).startswith("403 service_not_enabled: ")
    assert (await client.call("GET", "/api/v1/sandbox")).status == 200
    await platform.set_traces(enabled=True)
    await uploads.stored(record("b"))
    assert ids(tmp_path) == ["a", "b"]


async def test_a_key_has_scopes(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    uploads = Uploads(client)
    await platform.set_traces(scopes=["traces:write"])
    await uploads.stored(record("a"))
    assert await code(client, LIST) == "403 forbidden"
    await platform.set_traces(scopes=("traces:read",))
    assert await uploads.refused(record("b")) == "403 forbidden: the key lacks traces:write"
    assert await code(client, DELETE) == "403 forbidden"


async def test_storage_is_limited_by_owner(open_platform: OpenPlatform, tmp_path: Path) -> None:
    platform, client = await open_platform(data_dir=tmp_path)
    uploads = Uploads(client)
    first = record("a", note="x" * 1000)
    await platform.set_traces(storage_limit=len(lines(first)) - 1)
    await uploads.stored(first)
    error = await uploads.refused(record("b"))
    assert error.startswith("402 None: over the storage limit of ")
    await uploads.stored(first)
    await uploads.stored(record("c"), team="other")
    assert ids(tmp_path) == ["a", "c"]
    await platform.set_traces(storage_limit=None)
    await uploads.stored(record("b"))


async def test_the_index_may_be_late(open_platform: OpenPlatform, tmp_path: Path) -> None:
    _, client = await open_platform(data_dir=tmp_path, trace_index_delay=90)
    await Uploads(client).stored(record("a"))
    (found,) = rows(tmp_path, "SELECT indexed_at - ingested_at AS delay FROM traces")
    assert found["delay"] == pytest.approx(90)


async def test_the_index_may_be_held_back(open_platform: OpenPlatform, tmp_path: Path) -> None:
    platform, client = await open_platform(data_dir=tmp_path)
    uploads = Uploads(client)
    await uploads.stored(record("a"))
    await platform.set_traces(hold_index=True)
    await uploads.stored(record("b"))
    pending = "SELECT trace_id FROM traces WHERE indexed_at IS NULL"
    assert rows(tmp_path, pending) == [{"trace_id": "b"}]
    await platform.set_traces(enabled=True)
    assert rows(tmp_path, pending) == [{"trace_id": "b"}], "another switch changes nothing"
    await platform.set_traces(hold_index=False)
    (found,) = rows(tmp_path, "SELECT indexed_at FROM traces WHERE trace_id = 'b'")
    assert abs(found["indexed_at"] - time.time()) < 10


@pytest.mark.parametrize(
    "change",
    [
        {"enabled": 1},
        {"hold_index": None},
        {"scopes": "traces:read"},
        {"scopes": ["traces:admin"]},
        {"scopes": [5]},
        {"storage_limit": -1},
        {"storage_limit": "1"},
        {"storage_limit": True},
        {"colour": True},
    ],
)
async def test_switches_have_sensible_values(
    open_platform: OpenPlatform, change: dict[str, Any]
) -> None:
    platform, client = await open_platform()
    before = (await client.call("GET", "/_local/traces")).body
    with pytest.raises(ValueError, match=next(iter(change))):
        await platform.set_traces(**change)
    answer = await client.call("POST", "/_local/traces", change)
    assert answer.status == 422
    assert next(iter(change)) in answer.body["detail"]
    assert (await client.call("GET", "/_local/traces")).body == before


async def test_a_reset_turns_the_switches_back(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform()
    before = (await client.call("GET", "/_local/traces")).body
    await platform.set_traces(enabled=False, scopes=[], storage_limit=0, hold_index=True)
    assert (await client.call("GET", "/_local/traces")).body == {
        "enabled": False,
        "scopes": [],
        "storage_limit": 0,
        "hold_index": True,
    }
    await platform.reset()
    assert (await client.call("GET", "/_local/traces")).body == before


async def test_a_process_has_the_same_switches(tmp_path: Path, helpers: Any) -> None:
    options = ["--data-dir", str(tmp_path), "--trace-index-delay", "60"]
    with PlatformProcess(options, isolation="process") as server:
        async with helpers.client_of(server) as client:
            await Uploads(client).stored(record("a"))
            (found,) = rows(tmp_path, "SELECT indexed_at - ingested_at AS delay FROM traces")
            assert found["delay"] == pytest.approx(60)
            server.set_traces(enabled=False)
            assert await code(client, LIST) == "403 service_not_enabled"
