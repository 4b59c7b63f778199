"""Answers that make no sense, hosts that do not answer, keys that are missing."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_sandboxes import (
    APIConnectionError,
    APIError,
    APIResponseError,
    APITimeoutError,
    AsyncAPIClient,
    AsyncSandboxClient,
    ConfigurationError,
    CreateSandboxRequest,
    SandboxClient,
    ServerError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from conftest import Running

pytestmark = pytest.mark.timeout(30)

BOX = CreateSandboxRequest(name="box", docker_image="python:3.11-slim")
NOBODY = "sbx_nobody"
Call = Callable[[AsyncSandboxClient, str], Awaitable[Any]]

# Every operation of the control plane, and a call that makes it.
CALLS: dict[str, Call] = {
    "create_sandbox": lambda client, box: client.create(BOX),
    "get_sandbox": lambda client, box: client.get(box),
    "list_sandboxes": lambda client, box: client.list(),
    "delete_sandbox": lambda client, box: client.delete(box),
    "bulk_delete_sandboxes": lambda client, box: client.bulk_delete([box]),
    "batch_get_sandbox_statuses": lambda client, box: client.get_sandbox_statuses([box]),
    "get_sandbox_logs": lambda client, box: client.get_logs(box),
    "get_sandbox_error_context": lambda client, box: client.get_error_context(box),
    "create_sandbox_auth_token": lambda client, box: client.execute_command(box, "true"),
}
UNREADABLE = {
    "html": "<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>",
    "cut": '{"id": "sbx_1", "na',
    "list": "[]",
    "number": "12",
    "empty": "",
    "nonsense": '{"success": {"deep": 1}, "logs": 5, "statuses": "none", "status": []',
}


def assert_complete(error: APIError, operation: str, platform: LocalPlatform) -> None:
    """It names operation, host and request id, and holds no key anywhere."""
    assert error.operation == operation
    assert error.host == platform.url.removeprefix("http://")
    assert error.request_id
    for part in (operation, error.host, error.request_id):
        assert part in str(error)
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    assert platform.api_key not in told
    assert platform.api_key.encode() not in pickle.dumps(error)
    causes: list[BaseException | None] = [error.__cause__, error.__context__]
    for cause in filter(None, causes):
        assert platform.api_key not in repr(cause)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def spoil(operation: str, **fault: Any) -> FaultRule:
    """Spoils an operation, but lets what a failed create left behind be found and deleted."""
    if operation == "create_sandbox":
        fault["times"] = 3
    if operation == "delete_sandbox":
        fault["path_prefix"] = f"/api/v1/sandbox/{NOBODY}"
    return FaultRule(operation, **fault)


async def failures(
    client: AsyncSandboxClient, sandbox_id: str, calls: dict[str, Call]
) -> dict[str, Any]:
    """What calls that are made side by side come to."""
    results = await asyncio.gather(
        *(call(client, sandbox_id) for call in calls.values()), return_exceptions=True
    )
    return dict(zip(calls, results, strict=True))


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE)
async def test_an_answer_that_cannot_be_read_is_a_typed_error(
    client: AsyncSandboxClient, platform: LocalPlatform, body: str
) -> None:
    calls = dict(CALLS)
    if not body:
        del calls["delete_sandbox"]  # a delete may be answered by nothing
    platform.add_faults(*(spoil(operation, status=200, body=body) for operation in calls))
    for operation, error in (await failures(client, NOBODY, calls)).items():
        assert type(error) is APIResponseError, (operation, error)
        assert str(error).startswith("HTTP 200")
        assert ("HTML" in str(error)) == body.startswith("<")
        assert_complete(error, operation, platform)


async def test_an_answer_cut_short_is_a_typed_error(
    client: AsyncSandboxClient, platform: LocalPlatform, running: Running
) -> None:
    box = await running(client)
    client.clear_auth_cache()
    calls = {name: call for name, call in CALLS.items() if "delete" not in name}
    platform.add_faults(*(spoil(operation, truncate=5) for operation in calls))
    for operation, error in (await failures(client, box.id, calls)).items():
        assert type(error) is APIResponseError, (operation, error)
        assert "cut short" in str(error)
        assert_complete(error, operation, platform)


@pytest.mark.parametrize("operation", ["get_sandbox", "list_sandboxes", "delete_sandbox"])
async def test_a_safe_call_with_a_spoiled_answer_is_made_again(
    client: AsyncSandboxClient, platform: LocalPlatform, operation: str
) -> None:
    created = await client.create(BOX)
    platform.add_faults(
        FaultRule(operation, nth=1, garbage=True), FaultRule(operation, nth=1, truncate=9)
    )
    await CALLS[operation](client, created.id)
    assert platform.ledger()["requests"][operation] == 3


async def test_an_unreadable_answer_of_a_create_leaves_nothing_running(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    platform.add_faults(FaultRule("create_sandbox", garbage=True, times=3))
    with pytest.raises(APIResponseError):
        await client.create(BOX)
    await client.aclose()
    sandboxes = platform.ledger()["sandboxes"]
    assert (sandboxes["created"], sandboxes["live"]) == (1, 0)


async def test_a_create_answer_that_breaks_off_is_asked_for_again_with_the_same_key(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    platform.add_faults(FaultRule("create_sandbox", nth=1, truncate=20))
    created = await client.create(BOX)
    assert list(platform.ledger()["creates_per_key"].values()) == [1]
    assert [box.id for box in (await client.list()).sandboxes] == [created.id]


@pytest.mark.parametrize("status", [400, 500, 503])
async def test_ten_megabytes_of_error_are_not_held(
    either: AsyncSandboxClient, platform: LocalPlatform, status: int
) -> None:
    body = "<html>" + "<p>bad gateway " * 666_667
    platform.add_faults(FaultRule("get_sandbox", status=status, body=body))
    began = time.monotonic()
    with pytest.raises(APIError, match=f"^HTTP {status}: bad gateway") as caught:
        await either.get(NOBODY)
    assert time.monotonic() - began < 5
    assert caught.value.body is not None
    assert len(caught.value.body) <= 64 * 1024
    assert len(str(caught.value)) < 1000
    assert_complete(caught.value, "get_sandbox", platform)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"detail": "No such luck"}', "No such luck"),
        ('{"error": {"code": "E7", "message": "Broken"}}', "Broken"),
        ('{"detail": [{"loc": ["body", "a", 0], "msg": "Bad"}]}', "a.0: Bad"),
        ("plain text", "plain text"),
        ("", "no explanation|Internal Server Error"),
        ('{"detail": {"reason": "deep"}}', "deep"),
        ("[" * 100_000, r"\["),
    ],
)
async def test_an_error_in_any_shape_is_told_with_its_status(
    client: AsyncSandboxClient, platform: LocalPlatform, body: str, text: str
) -> None:
    platform.add_faults(FaultRule("get_sandbox", status=500, body=body))
    with pytest.raises(ServerError, match=rf"^HTTP 500: .*({text})") as caught:
        await client.get(NOBODY)
    assert caught.value.attempts == 3


async def test_what_is_not_known_yet_simply_works(
    client: AsyncSandboxClient, platform: LocalPlatform
) -> None:
    created = await client.create(BOX)
    wire = json.loads((await client.get(created.id)).model_dump_json(by_alias=True))
    wire |= {"status": "HIBERNATING", "mood": {"of": "the day"}, "secrets": {"K": "***"}}
    wire["startCommand"] = {"executable": "a", "args": [], "shell": "no"}
    wire["createdAt"] = "2026-01-02T03:04:05.678901"
    platform.add_faults(FaultRule("get_sandbox", status=200, body=json.dumps(wire)))
    box = await client.get(created.id)
    assert box.status == "HIBERNATING"
    assert box.model_extra == {"mood": {"of": "the day"}}
    assert box.created_at.utcoffset() is not None
    page = {"sandboxes": [wire], "total": 1, "page": 1, "perPage": 50, "hasNext": False, "eh": 1}
    platform.add_faults(FaultRule("list_sandboxes", status=200, body=json.dumps(page)))
    assert [each.status async for each in client.iter()] == ["HIBERNATING"]


async def test_a_call_without_a_key_is_refused_before_sending(
    platform: LocalPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PRIME_API_KEY")
    async with AsyncSandboxClient() as client:
        for call in CALLS.values():
            with pytest.raises(ConfigurationError, match="PRIME_API_KEY"):
                await call(client, NOBODY)
    with pytest.raises(ConfigurationError):
        await asyncio.to_thread(SandboxClient().create, BOX)
    assert platform.ledger()["requests"] == {}


async def test_a_wrong_key_is_named_and_not_tried_again(platform: LocalPlatform) -> None:
    async with AsyncSandboxClient("wrong-key-1234567890") as client:
        for operation, call in CALLS.items():
            with pytest.raises(UnauthorizedError, match=r"^HTTP 401: .*PRIME_API_KEY") as caught:
                await call(client, NOBODY)
            assert_complete(caught.value, operation, platform)
            assert "wrong-key" not in str(caught.value)
    assert set(platform.ledger()["requests"].values()) == {1}


async def test_a_host_that_refuses_is_told_quickly(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setenv("PRIME_BASE_URL", f"http://{host}")
    monkeypatch.setenv("PRIME_API_KEY", "key-1")
    began = time.monotonic()
    async with AsyncSandboxClient() as client:
        results = await failures(client, NOBODY, CALLS)
    assert time.monotonic() - began < 4
    for operation, error in results.items():
        assert type(error) is APIConnectionError, (operation, error)
        assert isinstance(error, ConnectionError)
        assert "Can't connect" in str(error)
        assert (error.sent, error.host, error.operation) == ("no", host, operation)


async def test_a_host_that_never_answers_is_given_up_in_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("PRIME_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("PRIME_API_KEY", "key-1")
        began = time.monotonic()
        async with (
            AsyncAPIClient(timeout=0.5) as connections,
            AsyncSandboxClient(client=connections) as client,
        ):
            with pytest.raises(APITimeoutError, match=r"within 0\.5 s") as caught:
                await client.get(NOBODY)
        assert time.monotonic() - began < 2
    assert (caught.value.phase, caught.value.sent) == ("total", "unknown")
    assert isinstance(caught.value, TimeoutError)
