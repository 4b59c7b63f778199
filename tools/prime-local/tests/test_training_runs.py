"""Hosted runs: how a run passes through its states, what it costs, and what its owner can do."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform

if TYPE_CHECKING:
    from conftest import OpenPlatform, RawClient

Json = dict[str, Any]
RUNS, DISPATCHED = "/api/v1/rft/runs", "/api/v1/training/runs"
H200 = "H200_141GB"
TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"
RL: Json = {
    "max_steps": 10,
    "seq_len": 2048,
    "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
    "orchestrator": {
        "batch_size": 128,
        "train": {
            "group_size": 8,
            "sampling": {"max_completion_tokens": 512},
            "source": [{"name": "sort", "env": {"taskset": {"id": "alphabet-sort"}}}],
        },
    },
    "inference": {},
}


async def dispatch(client: RawClient, config: Json | None = None, **asked: Any) -> str:
    """Dispatch a run, whose volume is made for it."""
    if "volume" in asked:
        volume = {"name": asked["volume"], "size": "1Gi", "teamId": asked.get("teamId")}
        await client.call("POST", "/api/v1/training/volumes", volume)
    body = {"config": config or RL, "name": "mine", "gpuType": H200, **asked}
    answer = await client.call("POST", DISPATCHED, body)
    assert answer.status == 201, answer.body
    made: str = answer.body["runId"]
    return made


async def read(client: RawClient, run_id: str) -> Json:
    answer = await client.call("GET", f"{RUNS}/{run_id}")
    assert answer.status == 200, answer.body
    run: Json = answer.body["run"]
    return run


async def status(client: RawClient, run_id: str) -> str:
    found: str = (await read(client, run_id))["status"]
    return found


async def paid(client: RawClient, run_id: str) -> Decimal:
    """What a run has cost."""
    wallet = (await client.call("GET", "/api/v1/billing/wallet")).body
    rows = [row for row in wallet["recent_billings"] if row["resource_id"] == run_id]
    assert all(row["resource_type"] == "training" for row in rows)
    return Decimal(str(sum(row["amount_usd"] for row in rows)))


@pytest.fixture
async def paced(open_platform: OpenPlatform) -> tuple[LocalPlatform, RawClient]:
    """A platform on which each state before RUNNING takes a minute, and each step ten seconds."""
    return await open_platform(training_setup_time=60, training_step_time=10)


async def test_a_run_passes_through_its_states_to_its_end(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    run_id = await dispatch(client)
    seen = []
    for _ in range(4):
        seen.append(await status(client, run_id))
        await platform.advance(60)
    assert seen == ["PENDING", "CREATING", "PULLING_IMAGE", "RUNNING"]
    run = await read(client, run_id)
    assert (run["status"], run["completedAt"]) == ("RUNNING", None)
    await platform.advance(41)
    run = await read(client, run_id)
    assert (run["status"], run["errorMessage"], run["failureAnalysis"]) == ("COMPLETED", None, None)
    assert platform.ledger()["runs"] == {"live": 0, "peak": 1, "created": 1, "deleted": 0}


async def test_a_run_is_described_by_its_config(client: RawClient) -> None:
    run_id = await dispatch(client, volume="research", wandbApiKey="w")
    run = await read(client, run_id)
    known = {name: run[name] for name in ("batchSize", "rolloutsPerExample", "seqLen", "maxTokens")}
    assert known == {
        "batchSize": 128,
        "rolloutsPerExample": 8,
        "seqLen": 2048,
        "maxTokens": 512,
    }
    assert (run["gpuCount"], run["volumeName"], run["loss"]) == (2, "research", "rl")
    assert run["environments"] == [{"name": "sort", "taskset": {"id": "alphabet-sort"}}]
    (listed,) = (await client.call("GET", RUNS)).body["runs"]
    assert "volumeName" not in listed


async def test_a_run_is_paid_by_the_second_while_its_pods_are_ready(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    run_id = await dispatch(client, {**RL, "max_steps": 1000})
    await platform.advance(180)
    assert await paid(client, run_id) == 0
    await platform.advance(90)
    # Charged each minute, and at the end for the rest.
    assert await paid(client, run_id) == pytest.approx(Decimal("5.38") / 60, abs=Decimal("1e-9"))
    platform.fail_run(run_id, "out of memory")
    spent = await paid(client, run_id)
    assert spent == pytest.approx(Decimal("5.38") * 90 / 3600, abs=Decimal("0.003"))
    await platform.advance(3600)
    assert await paid(client, run_id) == spent
    usage = (await client.call("GET", f"/api/v1/billing/runs/{run_id}/usage")).body
    assert (usage["run_name"], usage["status"], usage["total_tokens"]) == ("mine", "FAILED", 0)


async def test_reserved_gpus_cost_nothing_and_go_first(client: RawClient) -> None:
    teams = (await client.call("GET", "/api/v1/user/teams")).body["data"]
    owner = teams[0]["teamId"]
    answer = await client.call("POST", DISPATCHED, {"config": RL, "teamId": owner, "gpuType": H200})
    assert answer.body["onDemand"] is False
    assert answer.body["pricePerGpuHour"] is None
    assert (await read(client, answer.body["runId"]))["primeClusterId"] is not None


async def test_without_room_a_run_waits_and_is_promoted(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    platform.set_training_capacity(H200, free=2)
    first = await dispatch(client)
    second, third = await dispatch(client), await dispatch(client)
    waiting = await read(client, third)
    assert (waiting["status"], waiting["runsAhead"]) == ("QUEUED", 1)
    assert waiting["queueReason"]
    await platform.advance(3600)
    assert [await status(client, each) for each in (first, second, third)] == ["COMPLETED"] * 3
    ends = [(await read(client, each))["completedAt"] for each in (first, second, third)]
    assert ends == sorted(ends)


async def test_who_comes_later_does_not_overtake(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    platform.set_training_capacity(H200, free=4)
    large = {**RL, "deployment": {"num_train_gpus": 4, "num_infer_gpus": 4}}
    platform.set_training_capacity(H200, free=8)
    await dispatch(client, large)
    platform.set_training_capacity(H200, free=2)
    waits = await dispatch(client, large)
    small = await dispatch(client)
    assert [await status(client, each) for each in (waits, small)] == ["QUEUED", "QUEUED"]
    platform.set_training_capacity(H200, free=10)
    assert [await status(client, each) for each in (waits, small)] == ["PENDING", "PENDING"]


async def test_a_wallet_is_looked_at_again_at_the_promotion(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    platform.set_training_capacity(H200, free=2)
    await dispatch(client)
    waits = await dispatch(client)
    platform.set_balance(0)
    await platform.advance(3600)
    run = await read(client, waits)
    assert (run["status"], run["errorMessage"]) == ("FAILED", "Insufficient funds in the wallet")
    refused = await client.call("POST", DISPATCHED, {"config": RL})
    assert (refused.status, refused.body) == (402, {"detail": "Insufficient funds in the wallet"})


async def test_ten_runs_wait_and_no_more(paced: tuple[LocalPlatform, RawClient]) -> None:
    platform, client = paced
    platform.set_training_capacity(H200, free=2)
    for _ in range(11):
        await dispatch(client)
    refused = await client.call("POST", DISPATCHED, {"config": RL, "gpuType": H200})
    assert refused.status == 400
    assert "10" in refused.body["detail"]


async def test_a_stopped_run_makes_room_after_a_while(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    platform.set_training_capacity(H200, free=2)
    first, second = await dispatch(client), await dispatch(client)
    await platform.advance(200)
    stopping = await client.call("PUT", f"{RUNS}/{first}/stop")
    assert (stopping.status, stopping.body["run"]["status"]) == (200, "RUNNING")
    await platform.advance(61)
    assert (await status(client, first), await status(client, second)) == ("STOPPED", "PENDING")
    assert (await client.call("PUT", f"{RUNS}/{first}/stop")).status == 200
    third = await dispatch(client)
    queued = await client.call("PUT", f"{RUNS}/{third}/stop")
    assert queued.body["run"]["status"] == "STOPPED"


async def test_a_run_restarts_from_its_latest_checkpoint(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    run_id = await dispatch(client, {**RL, "ckpt": {"interval": 4}})
    assert (await client.call("PUT", f"{RUNS}/{run_id}/restart")).status == 409
    await platform.advance(180 + 61)
    restarted = await client.call("PUT", f"{RUNS}/{run_id}/restart")
    assert restarted.body["run"]["status"] == "PENDING"
    # Six steps are left, of ten: the first four are in the checkpoint.
    await platform.advance(180 + 59)
    assert await status(client, run_id) == "RUNNING"
    await platform.advance(2)
    assert await status(client, run_id) == "COMPLETED"
    spent = await paid(client, run_id)
    assert spent == pytest.approx(Decimal("5.38") * 121 / 3600, abs=Decimal("0.004"))


async def test_pausing_is_paid_and_a_paused_run_is_not(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    run_id = await dispatch(client, volume="research")
    early = await client.call("POST", f"{DISPATCHED}/{run_id}/pause")
    assert early.status == 409
    await platform.advance(180 + 25)
    pausing = await client.call("POST", f"{DISPATCHED}/{run_id}/pause")
    assert pausing.body == {"runId": run_id, "status": "PAUSING"}
    await platform.advance(4)
    assert await status(client, run_id) == "PAUSING"
    await platform.advance(2)
    assert await status(client, run_id) == "PAUSED"
    spent = await paid(client, run_id)
    assert spent == pytest.approx(Decimal("5.38") * 30 / 3600, abs=Decimal("0.002"))
    await platform.advance(3600)
    assert await paid(client, run_id) == spent
    answer = await client.call("POST", f"{DISPATCHED}/{run_id}/resume", {})
    assert answer.status == 201
    # It goes on after the third step.
    await platform.advance(180 + 69)
    assert await status(client, answer.body["runId"]) == "RUNNING"
    await platform.advance(2)
    assert await status(client, answer.body["runId"]) == "COMPLETED"


@pytest.mark.parametrize(
    ("asked", "status_code"),
    [({}, 400), ({"volume": "research", "imageTag": "v0.10.0"}, 400)],
)
async def test_not_every_run_can_be_paused(
    client: RawClient, asked: Json, status_code: int
) -> None:
    run_id = await dispatch(client, {"model": RL["model"], "inference": {}}, **asked)
    answer = await client.call("GET", f"{RUNS}/{run_id}")
    while answer.body["run"]["status"] != "RUNNING":
        answer = await client.call("GET", f"{RUNS}/{run_id}")
    assert (await client.call("POST", f"{DISPATCHED}/{run_id}/pause")).status == status_code


async def test_a_volume_has_one_run_until_its_last_files_are_saved(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    first = await dispatch(client, volume="research")
    body = {"config": RL, "volume": "research"}
    refused = await client.call("POST", DISPATCHED, body)
    assert refused.status == 409
    assert first in refused.body["detail"]
    missing = await client.call("POST", DISPATCHED, {**body, "teamId": TEAM})
    assert missing.status == 404
    await dispatch(client, volume="research", teamId=TEAM)
    await platform.advance(3600)
    assert (await client.call("POST", DISPATCHED, body)).status == 201


async def test_sft_with_evaluations_outlasts_its_last_step(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    data = {"type": "fake"}
    base = {"max_steps": 5, "model": RL["model"], "data": data}
    plain = await dispatch(client, base, mode="sft")
    evaluated = await dispatch(client, {**base, "eval": {}, "inference": {}}, mode="sft")
    await platform.advance(180 + 51)
    assert await status(client, plain) == "COMPLETED"
    assert await status(client, evaluated) == "RUNNING"
    await platform.advance(10)
    assert await status(client, evaluated) == "COMPLETED"


async def test_what_the_cluster_refuses_fails_while_it_is_installed(
    paced: tuple[LocalPlatform, RawClient],
) -> None:
    platform, client = paced
    platform.add_faults(FaultRule("create_training_run", fails="no such image"))
    run_id = await dispatch(client)
    await platform.advance(121)
    run = await read(client, run_id)
    assert (run["status"], run["errorMessage"]) == ("FAILED", "no such image")
    assert 0 <= run["failureAnalysis"]["confidence"] <= 1
    assert run["startedAt"] is None
    with pytest.raises(ValueError, match=run_id):
        platform.fail_run(run_id, "again")


@pytest.mark.parametrize("route", [RUNS, DISPATCHED])
async def test_a_deleted_run_is_ended_and_gone(client: RawClient, route: str) -> None:
    run_id = await dispatch(client, volume="research")
    deleted = await client.call("DELETE", f"{route}/{run_id}")
    assert deleted.status == 200
    assert (await client.call("GET", f"{RUNS}/{run_id}")).status == 404
    assert (await client.call("GET", RUNS)).body["runs"] == []
    # One of the two routes may be repeated.
    again = (await client.call("DELETE", f"{RUNS}/{run_id}")).status
    idempotent = await client.call("DELETE", f"{DISPATCHED}/{run_id}")
    assert (again, idempotent.status, idempotent.body["deleted"]) == (404, 200, True)
    assert (await client.call("DELETE", f"{DISPATCHED}/unknown")).status == 404


async def test_external_runs_are_listed_and_deleted_beside_hosted_ones(client: RawClient) -> None:
    body = {"base_model": "m", "max_steps": 5, "environments": [], "team_id": TEAM}
    external = (await client.call("POST", "/api/v1/rft/external-runs", body)).body["run"]["id"]
    hosted = await dispatch(client, teamId=TEAM)
    listed = (await client.call("GET", f"{RUNS}?team_id={TEAM}")).body
    assert [run["id"] for run in listed["runs"]] == [hosted, external]
    assert [run["kind"] for run in listed["runs"]] == ["DEDICATED_FULL_FT", "EXTERNAL"]
    assert (await client.call("PUT", f"{RUNS}/{external}/stop")).status == 409
    assert (await client.call("DELETE", f"{RUNS}/{external}")).status == 200
    assert (await client.call("GET", f"{RUNS}/{external}")).status == 404


async def test_runs_go_on_after_a_restart_of_the_platform(tmp_path: Path, helpers: Any) -> None:
    options: Json = {"data_dir": tmp_path, "training_setup_time": 60, "training_step_time": 10}
    async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
        platform.set_training_capacity(H200, free=2)
        run_id = await dispatch(client, volume="research")
        waits = await dispatch(client)
        await platform.advance(180 + 35)
        assert (await status(client, run_id), await status(client, waits)) == ("RUNNING", "QUEUED")
    async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
        # There is room in the new one.
        assert (await status(client, run_id), await status(client, waits)) == ("RUNNING", "PENDING")
        refused = await client.call("POST", DISPATCHED, {"config": RL, "volume": "research"})
        assert refused.status == 409
        await platform.advance(66)
        assert await status(client, run_id) == "COMPLETED"
        spent = await paid(client, run_id)
        assert spent == pytest.approx(Decimal("5.38") * 100 / 3600, abs=Decimal("0.004"))
        await platform.advance(300)
        assert await status(client, waits) == "COMPLETED"
        await platform.reset()
        assert (await client.call("GET", RUNS)).body["total"] == 0
    async with LocalPlatform(**options) as platform, helpers.client_of(platform) as client:
        assert (await client.call("GET", RUNS)).body["total"] == 0


async def test_the_pace_is_changed_for_runs_to_come(prime_platform: LocalPlatform) -> None:
    prime_platform.set_training_pace(step_time=5)
    for wrong in ({"step_time": 0}, {"setup_time": -1}, {"speed": 1}, {"step_time": "fast"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            prime_platform.set_training_pace(**wrong)


async def test_a_learning_rate_that_is_no_number_is_not_told(client: RawClient) -> None:
    run_id = await dispatch(client, {**RL, "trainer": {"optim": {"lr": "nan"}}})
    listed = (await client.call("GET", RUNS)).body["runs"]
    assert [(run["id"], run["learningRate"]) for run in listed] == [(run_id, None)]
