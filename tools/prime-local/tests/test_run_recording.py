"""Evaluations, external training runs and the environments they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import LocalPlatform

if TYPE_CHECKING:
    from conftest import RawClient

Json = dict[str, Any]
TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"
EVALUATIONS = "/api/v1/evaluations/"


async def environment(client: RawClient, name: str = "mine", **asked: object) -> Json:
    answer = await client.call("POST", "/api/v1/environmentshub/resolve", {"name": name, **asked})
    assert answer.status == 200, answer.body
    found: Json = answer.body["data"]
    return found


async def evaluation(client: RawClient, **asked: object) -> str:
    used = {"environments": [{"id": (await environment(client))["id"]}], **asked}
    answer = await client.call("POST", EVALUATIONS, {"name": "e", **used})
    assert answer.status == 201, answer.body
    created: str = answer.body["evaluation_id"]
    return created


async def external_run(client: RawClient, **asked: object) -> str:
    body = {"base_model": "m", "max_steps": 5, "environments": [], "team_id": TEAM, **asked}
    answer = await client.call("POST", "/api/v1/rft/external-runs", body)
    assert answer.status == 201, answer.body
    created: str = answer.body["run"]["id"]
    return created


async def test_an_environment_is_made_once_in_each_scope(client: RawClient) -> None:
    first = await environment(client, visibility="PUBLIC")
    again = await environment(client)
    of_team = await environment(client, team_id=TEAM)
    assert (first["created"], again["created"], of_team["created"]) == (True, False, True)
    assert first["id"] == again["id"] != of_team["id"]
    assert of_team["owner"] == {"name": TEAM, "type": "team"}


async def test_an_environment_is_read_by_slug_and_by_id(client: RawClient) -> None:
    made = await environment(client)
    slug = f"{made['owner']['name']}/mine"
    read = await client.call("GET", f"/api/v1/environmentshub/{slug}/@latest")
    assert (read.status, read.body["data"]["id"]) == (200, made["id"])
    looked_up = await client.call("POST", "/api/v1/environmentshub/lookup", {"id": made["id"]})
    assert looked_up.body["data"]["owner"] == made["owner"]
    published = await client.call("GET", "/api/v1/environmentshub/primeintellect/gsm8k/@latest")
    assert published.status == 200
    path = "/api/v1/environmentshub/primeintellect/gsm8k/@latest"
    assert (await client.call("GET", path, headers={})).status == 200  # no key is needed
    wrong = {"Authorization": "Bearer wrong"}
    assert (await client.call("GET", path, headers=wrong)).status == 401
    unknown = await client.call("GET", "/api/v1/environmentshub/primeintellect/nothing/@latest")
    assert (unknown.status, unknown.body) == (404, {"detail": "Environment not found"})
    older = await client.call("GET", f"/api/v1/environmentshub/{slug}/@0.0.1")
    assert older.status == 404


async def test_an_evaluation_runs_from_its_first_sample_to_its_end(client: RawClient) -> None:
    evaluation_id = await evaluation(client, tags=["a"], metadata={"n": 1}, team_id=TEAM)
    path = EVALUATIONS + evaluation_id
    created = (await client.call("GET", path)).body
    assert (created["status"], created["team_id"]) == ("PENDING", TEAM)
    samples = [{"reward": 1.0, "own": [1]}, {"score": 0.0}, {"example_id": 3}]
    pushed = await client.call("POST", f"{path}/samples", {"samples": samples})
    assert (pushed.body["samples_pushed"], pushed.body["status"]) == (3, "RUNNING")
    page = (await client.call("GET", f"{path}/samples?page=2&limit=2")).body
    assert (page["samples"], page["total"], page["total_pages"]) == ([{"example_id": 3}], 3, 2)
    closed = await client.call("POST", f"{path}/finalize", {"metrics": {"acc": 0.5}})
    assert (closed.body["status"], closed.body["avg_score"]) == ("COMPLETED", 0.5)
    found = (await client.call("GET", path)).body
    assert (found["metrics"], found["metadata"], found["tags"]) == ({"acc": 0.5}, {"n": 1}, ["a"])
    assert (found["min_score"], found["max_score"], found["total_samples"]) == (0.0, 1.0, 3)


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
async def test_an_evaluation_is_closed_once(client: RawClient, status: str) -> None:
    path = EVALUATIONS + await evaluation(client)
    end = {"status": status, "error_message": "why"}
    assert (await client.call("PUT", path, end)).status == 200
    assert (await client.call("PUT", path, end)).status == 409
    assert (await client.call("POST", f"{path}/finalize", {})).status == 409
    assert (await client.call("POST", f"{path}/samples", {"samples": [{}]})).status == 409
    # What is said about it can still change.
    assert (await client.call("PUT", path, {"name": "f", "tags": ["x"]})).status == 200
    found = (await client.call("GET", path)).body
    assert (found["status"], found["error_message"]) == (status, "why")
    assert (found["name"], found["tags"]) == ("f", ["x"])


async def test_an_update_changes_what_it_names(client: RawClient) -> None:
    path = EVALUATIONS + await evaluation(client, metadata={"a": 1}, tags=["t"])
    await client.call("PUT", path, {"metadata": {"b": 2}, "metrics": {"m": 1}})
    found = (await client.call("GET", path)).body
    assert (found["metadata"], found["metrics"], found["tags"]) == ({"b": 2}, {"m": 1}, ["t"])


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({}, 400),
        ({"environments": []}, 400),
        ({"environments": [{"id": "unknown"}]}, 404),
        ({"environments": [{}]}, 422),
        ({"run_id": "run"}, 201),
        ({"suite_id": "suite"}, 201),
    ],
)
async def test_an_evaluation_is_about_something(
    client: RawClient, asked: Json, status: int
) -> None:
    assert (await client.call("POST", EVALUATIONS, {"name": "e", **asked})).status == status


async def test_samples_of_more_than_25_mib_are_refused(client: RawClient) -> None:
    path = EVALUATIONS + await evaluation(client)
    body = {"samples": [{"text": "x" * 26_214_400}]}
    assert (await client.call("POST", f"{path}/samples", body)).status == 413
    assert (await client.call("GET", path)).body["total_samples"] == 0


@pytest.mark.parametrize("what", ["evaluations/none", "rft/runs/none", "rft/runs/none/metrics"])
async def test_what_is_not_there_is_404(client: RawClient, what: str) -> None:
    assert (await client.call("GET", f"/api/v1/{what}")).status == 404


async def test_an_external_run_keeps_a_row_of_metrics_a_step(client: RawClient) -> None:
    run_id = await external_run(client, name="r", run_config={"lr": 1})
    for metrics in ({"step": 1, "a": 1}, {"step": 2, "a": 2}, {"step": 1, "b": 3}, {"c": 4}):
        body = {"run_id": run_id, "metrics": metrics}
        assert (await client.call("POST", "/api/v1/rft/metrics", body)).status == 200
    read = await client.call("GET", f"/api/v1/rft/runs/{run_id}/metrics")
    assert read.body["metrics"] == [{"step": 1, "a": 1, "b": 3}, {"step": 2, "a": 2}, {"c": 4}]
    later = await client.call("GET", f"/api/v1/rft/runs/{run_id}/metrics?min_step=2&limit=1")
    assert later.body["metrics"] == [{"step": 2, "a": 2}]
    run = (await client.call("GET", f"/api/v1/rft/runs/{run_id}")).body["run"]
    assert (run["kind"], run["status"], run["runConfig"]) == ("EXTERNAL", "RUNNING", {"lr": 1})


async def test_an_external_run_ends_once(client: RawClient) -> None:
    run_id = await external_run(client)
    path = f"/api/v1/rft/external-runs/{run_id}/status"
    end = {"status": "failed", "error_message": "why"}
    assert (await client.call("PUT", path, end)).status == 200
    assert (await client.call("PUT", path, {"status": "completed"})).status == 409
    finalize = {"run_id": run_id, "exit_code": 0}
    assert (await client.call("POST", "/api/v1/rft/finalize", finalize)).status == 200
    run = (await client.call("GET", f"/api/v1/rft/runs/{run_id}")).body["run"]
    assert (run["status"], run["errorMessage"]) == ("FAILED", "why")


@pytest.mark.parametrize(("code", "status"), [(0, "COMPLETED"), (3, "FAILED")])
async def test_an_exit_code_says_how_an_external_run_ended(
    client: RawClient, code: int, status: str
) -> None:
    run_id = await external_run(client)
    body = {"run_id": run_id, "exit_code": code}
    assert (await client.call("POST", "/api/v1/rft/finalize", body)).status == 200
    run = (await client.call("GET", f"/api/v1/rft/runs/{run_id}")).body["run"]
    assert run["status"] == status


async def test_an_external_run_belongs_to_a_team(client: RawClient) -> None:
    body = {"base_model": "m", "max_steps": 5, "environments": []}
    assert (await client.call("POST", "/api/v1/rft/external-runs", body)).status == 422


async def test_a_team_that_is_not_enabled_records_no_external_runs(
    prime_platform: LocalPlatform, client: RawClient
) -> None:
    prime_platform.set_training_access(external_runs=False)
    body = {"base_model": "m", "max_steps": 5, "environments": [], "team_id": TEAM}
    assert (await client.call("POST", "/api/v1/rft/external-runs", body)).status == 403


async def test_external_runs_are_listed_for_their_team_newest_first(client: RawClient) -> None:
    made = [await external_run(client, name=f"r{number}") for number in range(3)]
    await external_run(client, team_id="cother000000000000000000x")
    page = (await client.call("GET", f"/api/v1/rft/runs?team_id={TEAM}&page=2&limit=2")).body
    assert [run["id"] for run in page["runs"]] == made[:1]
    assert (page["total"], page["page"], page["limit"], page["total_pages"]) == (3, 2, 2, 2)
    personal = (await client.call("GET", "/api/v1/rft/runs")).body
    assert (personal["runs"], personal["total"]) == ([], 0)


async def test_all_of_it_survives_a_restart_and_goes_with_a_reset(
    tmp_path: Path, helpers: Any
) -> None:
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        evaluation_id, run_id = await evaluation(client), await external_run(client)
        samples = {"samples": [{"reward": 1.0}]}
        for _ in range(2):
            await client.call("POST", f"{EVALUATIONS}{evaluation_id}/samples", samples)
        metrics = {"run_id": run_id, "metrics": {"step": 1}}
        await client.call("POST", "/api/v1/rft/metrics", metrics)
        kept = (await client.call("GET", EVALUATIONS + evaluation_id)).body
    async with LocalPlatform(data_dir=tmp_path) as platform, helpers.client_of(platform) as client:
        assert (await client.call("GET", EVALUATIONS + evaluation_id)).body == kept
        page = (await client.call("GET", f"{EVALUATIONS}{evaluation_id}/samples")).body
        assert page["samples"] == [{"reward": 1.0}] * 2
        rows = (await client.call("GET", f"/api/v1/rft/runs/{run_id}/metrics")).body["metrics"]
        assert rows == [{"step": 1}]
        assert not (await environment(client))["created"]
        await platform.reset()
        assert (await client.call("GET", EVALUATIONS + evaluation_id)).status == 404
        assert (await client.call("GET", f"/api/v1/rft/runs/{run_id}")).status == 404
        assert (await environment(client))["created"]
