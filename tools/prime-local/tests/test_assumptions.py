"""Each open question, with every answer that the platform can give."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import re
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_local import Assumptions, FaultRule

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

BOX = {"name": "box", "docker_image": "python"}
PATH = "/api/v1/sandbox"
STATUSES = PATH + "/status:batchGet"


async def _create(client: RawClient, **changes: object) -> Any:
    return await client.call("POST", PATH, {**BOX, **changes})


@pytest.mark.parametrize("status", [201, 200])
async def test_replayed_create(open_platform: OpenPlatform, status: Any) -> None:
    _, client = await open_platform(assumptions=Assumptions(replayed_create=status))
    first, again = [await _create(client, idempotency_key="k") for _ in range(2)]
    assert (first.status, again.status) == (201, status)
    assert first.body["id"] == again.body["id"]


async def test_reused_key(open_platform: OpenPlatform) -> None:
    for answer, status in (("earlier", 201), ("conflict", 409)):
        _, client = await open_platform(assumptions=Assumptions.parse([f"reused_key={answer}"]))
        await _create(client, idempotency_key="k", labels=["a"])
        assert (await _create(client, labels=["a"], idempotency_key="k")).status == 201
        other = await _create(client, idempotency_key="k", labels=["b"])
        assert other.status == status


async def test_idempotency_window(open_platform: OpenPlatform) -> None:
    for window, same in ((None, True), (60.0, False)):
        platform, client = await open_platform(assumptions=Assumptions(idempotency_window=window))
        first = await _create(client, idempotency_key="k")
        await platform.advance(59)
        assert (await _create(client, idempotency_key="k")).body["id"] == first.body["id"]
        await platform.advance(2)
        again = await _create(client, idempotency_key="k")
        assert (again.body["id"] == first.body["id"]) is same


@pytest.mark.parametrize("status", [429, 403])
async def test_account_limit(open_platform: OpenPlatform, status: Any) -> None:
    _, client = await open_platform(assumptions=Assumptions(account_limit=status))
    answers = [await _create(client, memory_gb=64) for _ in range(65)]
    assert {answer.status for answer in answers[:64]} == {201}
    assert (answers[64].status, "Retry-After" in answers[64].headers) == (status, False)
    assert answers[64].body == {"detail": "Memory limit reached (4096)"}


async def test_retry_after(open_platform: OpenPlatform) -> None:
    found = {}
    for form in ("seconds", "date", "absent"):
        assumptions = Assumptions.parse([f"retry_after={form}"])
        _, client = await open_platform(assumptions=assumptions, clock_skew=3600)
        answers = [await client.call("PATCH", "/api/v1/images", {}) for _ in range(51)]
        assert answers[-1].status == 429
        found[form] = answers[-1].headers
    assert 50 <= int(found["seconds"]["Retry-After"]) <= 60
    at, now = [
        email.utils.parsedate_to_datetime(found["date"][name]) for name in ("Retry-After", "Date")
    ]
    assert 50 <= (at - now).total_seconds() <= 62
    assert "Retry-After" not in found["absent"]


async def test_validation_error(open_platform: OpenPlatform) -> None:
    _, client = await open_platform()
    body = (await _create(client, name="", timeout_minutes=0)).body
    assert {tuple(problem["loc"]) for problem in body["detail"]} == {
        ("body", "name"),
        ("body", "timeout_minutes"),
    }
    _, client = await open_platform(assumptions=Assumptions(validation_error="errors"))
    body = (await _create(client, name="", timeout_minutes=0)).body
    assert list(body) == ["errors"]
    assert {problem["param"] for problem in body["errors"]} == {
        "body.name",
        "body.timeout_minutes",
    }
    assert all(problem["details"] for problem in body["errors"])


async def test_team_header(open_platform: OpenPlatform) -> None:
    for answer, team in (("ignored", None), ("honoured", "t1")):
        _, client = await open_platform(assumptions=Assumptions.parse([f"team_header={answer}"]))
        client.key["X-Prime-Team-ID"] = "t1"
        made = await _create(client)
        assert made.body["teamId"] == team
        assert (await _create(client, team_id="t2")).body["teamId"] == "t2"
        assert (await client.call("GET", PATH)).body["sandboxes"][0]["id"] == made.body["id"]
        deleted = await client.call("DELETE", PATH, {})
        assert deleted.body["succeeded"] == [made.body["id"]]
        client.key["X-Prime-Team-ID"] = ""
        assert (await _create(client)).body["teamId"] is None


@pytest.mark.parametrize("status", [404, 405])
async def test_batch_routes(open_platform: OpenPlatform, status: Any) -> None:
    _, client = await open_platform(assumptions=Assumptions(batch_routes=status))
    box = await client.create()
    for path in (STATUSES, PATH + "/background-jobs/status:batchGet"):
        answer = await client.call("POST", path, {"sandbox_ids": [box["id"]]})
        assert answer.status == status
    assert (await client.get(box))["id"] == box["id"]


async def test_deleted_sandbox(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(assumptions=Assumptions(deleted_sandbox="missing"))
    box, ended = await client.running(), await client.running(timeout_minutes=1)
    path = f"{PATH}/{box['id']}"
    assert (await client.call("DELETE", path)).status == 200
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/error-context"), ("POST", "/auth")):
        assert (await client.call(method, path + tail)).status == 404, tail
    assert (await client.run(box, "true")).body["code"] == "not_found"
    answer = await client.call("POST", STATUSES, {"sandbox_ids": [box["id"]]})
    assert answer.body["errors"][0]["code"] == "NOT_FOUND"
    bulk = await client.call("DELETE", PATH, {"sandbox_ids": [box["id"], ended["id"]]})
    assert bulk.body["succeeded"] == [ended["id"]]
    assert bulk.body["failed"][0]["sandbox_id"] == box["id"]
    assert (await client.call("GET", PATH)).body["total"] == 0


async def test_sandbox_that_ended_by_itself_is_never_missing(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(assumptions=Assumptions(deleted_sandbox="missing"))
    box = await client.running(timeout_minutes=1)
    await platform.advance(61)
    assert (await client.get(box))["status"] == "TIMEOUT"
    await client.call("DELETE", f"{PATH}/{box['id']}")
    assert (await client.call("GET", f"{PATH}/{box['id']}")).status == 404


async def test_create_token_and_gateway_url(open_platform: OpenPlatform) -> None:
    assumptions = Assumptions(create_token="absent", gateway_url="slash")
    _, client = await open_platform(assumptions=assumptions)
    box = await client.running()
    assert box["gatewayAuth"] is None
    auth = (await client.call("POST", f"{PATH}/{box['id']}/auth")).body
    assert auth["gateway_url"].endswith("/gateway/")
    auth["gateway_url"] = auth["gateway_url"].rstrip("/")
    assert (await client.run({**box, "gatewayAuth": auth}, "echo x")).stdout == "x\n"


async def test_list_paging(open_platform: OpenPlatform) -> None:
    for spelling, keys in (
        ("snake_case", {"per_page", "has_next"}),
        ("camelCase", {"perPage", "hasNext"}),
    ):
        _, client = await open_platform(assumptions=Assumptions.parse([f"list_paging={spelling}"]))
        body = (await client.call("GET", PATH)).body
        assert set(body) == {"sandboxes", "total", "page", *keys}


async def test_secrets(open_platform: OpenPlatform) -> None:
    for answer, shown in (("absent", None), ("masked", {"TOKEN": "***"})):
        _, client = await open_platform(assumptions=Assumptions.parse([f"secrets={answer}"]))
        box = await client.create(secrets={"TOKEN": "hush"})
        assert box["secrets"] == (await client.get(box))["secrets"] == shown


async def test_ended_gateway(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(assumptions=Assumptions(ended_gateway="bad_gateway"))
    box = await client.running()
    unknown = await client.signal(box, session={"pid": 1}, signal="SIGNAL_SIGTERM")
    assert (unknown.status, unknown.body["code"]) == (404, "not_found")
    await client.call("DELETE", f"{PATH}/{box['id']}")
    gone = await client.run(box, "true")
    assert (gone.status, gone.body["error"]) == (502, "sandbox_not_found")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ("unavailable", 503, {"code": "unavailable"}),
        ("not_found", 404, {"code": "not_found"}),
        ("bad_gateway", 502, {"error": "sandbox_not_found", "code": 502}),
    ],
)
async def test_early_gateway(
    open_platform: OpenPlatform, answer: str, status: int, said: dict[str, object]
) -> None:
    assumptions = Assumptions.parse([f"early_gateway={answer}"])
    platform, client = await open_platform(assumptions=assumptions, gateway_delay=30)
    box = await client.running()
    early = await client.run(box, "true")
    assert (early.status, {key: early.body.get(key) for key in said}) == (status, said)
    await platform.advance(31)
    assert (await client.run(box, "true")).exit_code == 0


async def test_json_codec(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(assumptions=Assumptions(json_codec="refused"))
    refused = await client.run(await client.running(), "true")
    assert (refused.status, refused.body["code"]) == (400, "invalid_argument")


async def test_command_that_runs_on_after_its_deadline(open_platform: OpenPlatform) -> None:
    _, client = await open_platform(assumptions=Assumptions(timed_out_command="runs_on"))
    box = await client.running()
    result = await client.run(box, "echo a; sleep 0.6; touch late", timeout_ms=200)
    assert (result.stdout, result.error_code) == ("a\n", "deadline_exceeded")
    deadline = time.monotonic() + 5
    while (await client.run(box, "ls")).stdout != "late\n":
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_signalled_exit_code(open_platform: OpenPlatform) -> None:
    for answer, code in (("shell", 137), ("minus_one", -1)):
        assumptions = Assumptions.parse([f"signalled_exit_code={answer}"])
        _, client = await open_platform(assumptions=assumptions)
        result = await client.run(await client.running(), "kill -KILL $$")
        assert (result.exit_code, result.exit.get("exited", False)) == (code, False)


async def test_retained_sessions(open_platform: OpenPlatform) -> None:
    session = "4be64f08-9c1f-4d0a-8e05-3d6c8de2f4ba"
    for kept, lines in ((256, "x\n"), (0, "x\nx\n")):
        _, client = await open_platform(assumptions=Assumptions(retained_sessions=kept))
        box = await client.running()
        for _ in range(2):
            result = await client.run(box, "echo x >> ran", session_uuid=session)
            assert result.exit_code == 0
        assert (await client.run(box, "cat ran")).stdout == lines


async def test_keep_alive(open_platform: OpenPlatform) -> None:
    for seconds, expected in ((None, False), (0.05, True)):
        _, client = await open_platform(assumptions=Assumptions(keep_alive=seconds))
        result = await client.run(await client.running(), "sleep 0.3")
        assert ({"keepalive": {}} in result.events) is expected
        assert result.exit_code == 0


async def test_keep_alive_of_a_stream_that_broke_ends_with_its_command(
    open_platform: OpenPlatform,
) -> None:
    platform, client = await open_platform(assumptions=Assumptions(keep_alive=0.02))
    box = await client.running()
    platform.add_faults(FaultRule("command_session_start", after_envelopes=2, reset="after_commit"))
    with pytest.raises(aiohttp.ClientError):
        await client.run(box, "sleep 0.2")
    await client.call("DELETE", f"{PATH}/{box['id']}")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("replayed_create=202", "201 or 200"),
        ("nonsense=1", "is none of replayed_create"),
        ("keep_alive=-1", "seconds above 0"),
        ("idempotency_window=soon", "seconds above 0"),
        ("retained_sessions=1.5", "whole number"),
        ("team_header", "ignored or honoured"),
    ],
)
def test_answer_that_is_none_is_refused(setting: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Assumptions.parse([setting])


@given(st.sampled_from([kept.name for kept in fields(Assumptions)]), st.text(max_size=10))
def test_any_text_is_read_as_an_answer_or_refused(name: str, text: str) -> None:
    with contextlib.suppress(ValueError):
        # Nothing but ValueError may come out, and what is read must be an answer.
        replace(Assumptions.parse([f"{name}={text}"]))


def test_every_assumption_is_explained_with_its_switch() -> None:
    page = (Path(__file__).parent.parent / "ASSUMPTIONS.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)=", page))
    assert named == {assumption.name for assumption in fields(Assumptions)}
