from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform, control

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

BOX = {"name": "box", "docker_image": "python:3.11-slim"}


async def test_created_sandbox_is_pending_and_soon_running(client: RawClient) -> None:
    created = await client.create(
        cpu_cores=2.9,
        memory_gb=3,
        labels=["a", "b"],
        environment_vars={"A": "1"},
        secrets={"TOKEN": "hush"},
        team_id="team1",
    )
    assert created["status"] == "PENDING"
    assert (created["cpuCores"], created["memoryGB"], created["diskSizeGB"]) == (2, 3, 5)
    assert created["environmentVars"] == {"A": "1"}
    assert created["teamId"] == "team1"
    assert created["gatewayAuth"]["gateway_url"] == client.url + "/gateway"
    assert "hush" not in str(created)
    found = await client.until(created, "RUNNING")
    assert found["startedAt"] is not None
    assert "gatewayAuth" not in found


async def test_wrong_or_missing_key_is_401(client: RawClient) -> None:
    for headers in ({}, {"Authorization": "Bearer nope"}, {"Authorization": "Basic eA=="}):
        answer = await client.call("GET", "/api/v1/sandbox", headers=headers)
        assert (answer.status, answer.body) == (401, {"detail": "Invalid API key"})


async def test_422_names_every_problem_and_repeats_no_value(client: RawClient) -> None:
    body = {"name": "", "docker_image": "python", "timeout_minutes": 0, "secrets": {"K": 12345}}
    answer = await client.call("POST", "/api/v1/sandbox", body)
    assert answer.status == 422
    places = {".".join(map(str, problem["loc"])) for problem in answer.body["detail"]}
    assert places == {"body.name", "body.timeout_minutes", "body.secrets.K"}
    assert "12345" not in str(answer.body)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": None}, "name"),
        ({"gpu_count": 1, "gpu_type": "H100_80GB"}, "gpu_count"),
        ({"gpu_type": "H100_80GB"}, "gpu_type"),
        ({"docker_image": "registry.example.com/a/b:1"}, "docker_image"),
        ({"docker_image": "localhost/a"}, "docker_image"),
        ({"idle_timeout_minutes": 61}, "idle_timeout_minutes"),
        ({"start_command": {"executable": "a\0b"}}, "start_command"),
    ],
)
async def test_impossible_create_is_422(
    client: RawClient, prime_platform: LocalPlatform, change: dict[str, Any], place: str
) -> None:
    answer = await client.call("POST", "/api/v1/sandbox", {**BOX, **change})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body", place]
    assert prime_platform.ledger()["sandboxes"]["created"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "x"}, 422),
        ({**BOX, "checkpoint_id": "c1"}, 422),
        ({**BOX, "network_allowlist": [], "network_denylist": []}, 422),
        ({"name": "x", "checkpoint_id": "c1"}, 404),
        ({**BOX, "volumes": [{"name": "v", "mount_path": "/v"}]}, 501),
    ],
)
async def test_create_refusals(client: RawClient, body: dict[str, Any], status: int) -> None:
    assert (await client.call("POST", "/api/v1/sandbox", body)).status == status


async def test_body_that_is_no_json_object_is_422(client: RawClient) -> None:
    for data in (b"{", b"", b"\xff\xfe", b"null", b"[]", b"[" * 100_000):
        url = client.url + "/api/v1/sandbox"
        async with client.session.post(url, data=data, headers=client.key) as response:
            assert response.status == 422


async def test_image_outside_the_simulation_fails_to_pull(client: RawClient) -> None:
    created = await client.create(docker_image="prime/acme/app:v1")
    found = await client.until(created, "ERROR")
    assert found["errorType"] == "IMAGE_PULL_FAILED"
    answer = await client.call("GET", f"/api/v1/sandbox/{created['id']}/error-context")
    assert answer.body["status"] == "ERROR"
    assert answer.body["errorType"] == "IMAGE_PULL_FAILED"


async def test_one_idempotency_key_makes_one_sandbox_even_at_once(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    made = await asyncio.gather(*(client.create(idempotency_key="k1") for _ in range(20)))
    assert len({sandbox["id"] for sandbox in made}) == 1
    ledger = prime_platform.ledger()
    assert ledger["creates_per_key"] == {"k1": 1}
    assert ledger["sandboxes"]["created"] == 1


async def test_idempotency_key_counts_per_team(client: RawClient) -> None:
    personal = await client.create(idempotency_key="k1")
    team = await client.create(idempotency_key="k1", team_id="t")
    assert personal["id"] != team["id"]


async def test_list_filters_by_team_labels_status_and_activity(client: RawClient) -> None:
    ab = await client.running(labels=["a", "b"])
    only_a = await client.running(labels=["a"])
    team = await client.running(team_id="t", labels=["a"])
    await client.call("DELETE", f"/api/v1/sandbox/{only_a['id']}")

    async def listed(query: str) -> list[str]:
        answer = await client.call("GET", f"/api/v1/sandbox?{query}")
        assert answer.status == 200
        return [sandbox["id"] for sandbox in answer.body["sandboxes"]]

    assert await listed("") == [only_a["id"], ab["id"]]
    assert await listed("team_id=t") == [team["id"]]
    assert await listed("labels=a&labels=b") == [ab["id"]]
    assert await listed("is_active=true") == [ab["id"]]
    assert await listed("is_active=false") == [only_a["id"], ab["id"]]
    assert await listed("status=TERMINATED") == [only_a["id"]]
    assert (await client.call("GET", "/api/v1/sandbox?user_id=other")).status == 403


async def test_list_pages(client: RawClient) -> None:
    ids = [(await client.create())["id"] for _ in range(5)][::-1]
    pages = [
        (await client.call("GET", f"/api/v1/sandbox?page={page}&per_page=2")).body
        for page in (1, 2, 3, 4)
    ]
    assert [[box["id"] for box in page["sandboxes"]] for page in pages] == [
        ids[:2],
        ids[2:4],
        ids[4:],
        [],
    ]
    assert [page["has_next"] for page in pages] == [True, True, False, False]
    assert {page["total"] for page in pages} == {5}


async def test_bad_query_is_422(client: RawClient) -> None:
    for query in ("page=0", "per_page=1001", "page=x", "status=GONE", "is_active=maybe"):
        assert (await client.call("GET", f"/api/v1/sandbox?{query}")).status == 422, query


async def test_delete_is_idempotent_and_the_sandbox_stays_readable(
    client: RawClient, prime_platform: LocalPlatform
) -> None:
    created = await client.running()
    for _ in range(2):
        answer = await client.call("DELETE", f"/api/v1/sandbox/{created['id']}")
        assert answer.status == 200
    found = await client.get(created)
    assert found["status"] == "TERMINATED"
    assert found["terminatedAt"] is not None
    assert prime_platform.ledger()["sandboxes"] == {
        "live": 0,
        "peak": 1,
        "created": 1,
        "deleted": 1,
    }


@pytest.mark.parametrize(
    ("method", "tail"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/logs"),
        ("GET", "/error-context"),
        ("POST", "/auth"),
    ],
)
async def test_unknown_sandbox_is_404(client: RawClient, method: str, tail: str) -> None:
    answer = await client.call(method, f"/api/v1/sandbox/sbx_nope{tail}")
    assert (answer.status, answer.body) == (404, {"detail": "Sandbox not found"})


async def test_bulk_delete_by_ids_reports_each(client: RawClient) -> None:
    known = [(await client.create())["id"] for _ in range(2)]
    body = {"sandbox_ids": [*known, "sbx_nope", known[0]], "all_users": False}
    answer = await client.call("DELETE", "/api/v1/sandbox", body)
    assert answer.status == 200
    assert answer.body["succeeded"] == known
    assert answer.body["failed"] == [{"sandbox_id": "sbx_nope", "error": "Sandbox not found"}]


async def test_bulk_delete_by_labels_takes_those_with_all_of_them(client: RawClient) -> None:
    both = await client.create(labels=["x", "y"])
    await client.create(labels=["x"])
    await client.create(labels=["x", "y"], team_id="t")
    answer = await client.call("DELETE", "/api/v1/sandbox", {"labels": ["x", "y"]})
    assert answer.body["succeeded"] == [both["id"]]


async def test_bulk_delete_of_a_scope_takes_its_active_sandboxes(client: RawClient) -> None:
    old = await client.create()
    await client.call("DELETE", f"/api/v1/sandbox/{old['id']}")
    mine = await client.create()
    team = await client.create(team_id="t")
    answer = await client.call("DELETE", "/api/v1/sandbox", {})
    assert answer.body["succeeded"] == [mine["id"]]
    answer = await client.call("DELETE", "/api/v1/sandbox", {"team_id": "t", "all_users": True})
    assert answer.body["succeeded"] == [team["id"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"sandbox_ids": ["a"], "labels": ["b"]}, 400),
        ({"all_users": True}, 400),
        ({"user_id": "other", "team_id": "t"}, 403),
        ({"sandbox_ids": []}, 422),
        ({"sandbox_ids": ["x"] * 501}, 422),
    ],
)
async def test_bulk_delete_refusals(client: RawClient, body: dict[str, Any], status: int) -> None:
    assert (await client.call("DELETE", "/api/v1/sandbox", body)).status == status


async def test_batch_status_answers_each_id_once(client: RawClient) -> None:
    created = await client.running()
    path = "/api/v1/sandbox/status:batchGet"
    answer = await client.call("POST", path, {"sandbox_ids": [created["id"], "sbx_nope"]})
    assert [item["status"] for item in answer.body["statuses"]] == ["RUNNING"]
    assert [item["code"] for item in answer.body["errors"]] == ["NOT_FOUND"]
    for ids in ([], ["a", "a"], [str(number) for number in range(101)]):
        assert (await client.call("POST", path, {"sandbox_ids": ids})).status == 422


async def test_logs_hold_the_start_commands_output_and_its_exit_ends_the_sandbox(
    client: RawClient,
) -> None:
    start = {"executable": "/bin/sh", "args": ["-c", "echo out; echo err >&2; exit 5"]}
    created = await client.create(start_command=start)
    found = await client.until(created, "TERMINATED")
    assert found["exitCode"] == 5
    assert found["startCommand"] == start
    answer = await client.call("GET", f"/api/v1/sandbox/{created['id']}/logs")
    assert sorted(answer.body["logs"].split()) == ["err", "out"]


async def test_start_command_runs_without_a_shell(client: RawClient) -> None:
    start = {"executable": "echo", "args": ["$HOME", "a  b", ";ls"]}
    created = await client.create(start_command=start)
    await client.until(created, "TERMINATED")
    answer = await client.call("GET", f"/api/v1/sandbox/{created['id']}/logs")
    assert answer.body["logs"] == "$HOME a  b ;ls\n"


async def test_start_command_that_does_not_exist_is_an_error(client: RawClient) -> None:
    created = await client.create(start_command={"executable": "no-such-program"})
    found = await client.until(created, "ERROR")
    assert found["errorType"] == "START_COMMAND_FAILED"


async def test_token_is_only_for_running_sandboxes(open_platform: OpenPlatform) -> None:
    platform, client = await open_platform(start_delay=30)
    created = await client.create()
    path = f"/api/v1/sandbox/{created['id']}/auth"
    assert (await client.call("POST", path)).status == 409
    await platform.advance(31)
    answer = await client.call("POST", path)
    assert answer.status == 200
    assert answer.body["token"] != created["gatewayAuth"]["token"]
    await client.call("DELETE", f"/api/v1/sandbox/{created['id']}")
    assert (await client.call("POST", path)).status == 409


async def test_a_route_without_a_handler_says_so(
    open_platform: OpenPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(control.HANDLERS, "get_sandbox")
    _, client = await open_platform()
    answer = await client.call("GET", "/api/v1/sandbox/sbx_1")
    assert answer.status == 501
    assert "not simulated yet" in str(answer.body)


async def test_unknown_path_is_404_and_unknown_method_405(client: RawClient) -> None:
    assert (await client.call("GET", "/api/v1/nothing")).status == 404
    assert (await client.call("GET", "/")).status == 404
    answer = await client.call("GET", "/api/v1/sandbox/status:batchGet")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_percent_encoded_slash_stays_in_its_segment(client: RawClient) -> None:
    answer = await client.call("GET", "/api/v1/sandbox/a%2Flogs")
    assert answer.body == {"detail": "Sandbox not found"}
