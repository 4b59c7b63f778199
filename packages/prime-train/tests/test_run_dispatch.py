"""The dispatch of runs: refusals by what they mean, and money that is never lost track of."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from prime_core.secret import Secret
from prime_local import FaultRule, LocalPlatform
from prime_local.ledger import LedgerSnapshot
from prime_train import (
    APIConnectionError,
    AsyncTrainClient,
    BadRequestError,
    ConfigurationError,
    ForbiddenError,
    InvalidConfigError,
    NotFoundError,
    OnDemandAccessError,
    PaymentRequiredError,
    Run,
    RunSecrets,
    TrainClient,
    VolumeBusyError,
    build_request,
    load_config,
)

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]

RL: dict[str, Any] = {
    "name": "sort",
    "max_steps": 10_000,
    "model": {"name": "Qwen/Qwen3-4B-Instruct-2507"},
    "orchestrator": {"train": {"source": [{"env": {"taskset": {"id": "alphabet-sort"}}}]}},
    "inference": {},
}
CONFIG = load_config(RL)
HIDDEN = "sk-hidden-value"
ECHO = json.dumps({"detail": f"bad value {HIDDEN}"})
OLD_ROW = {"kind": "DEDICATED_FULL_FT", "createdAt": "2026-10-12T18:00:00Z", "status": "RUNNING"}


async def every(client: AsyncTrainClient) -> list[Run]:
    return [run async for run in client.runs.iter()]


async def until(platform: LocalPlatform, condition: Callable[[LedgerSnapshot], bool]) -> None:
    """Waits until the platform's ledger says something."""
    deadline = time.monotonic() + 10
    while not condition(platform.ledger()):
        assert time.monotonic() < deadline, platform.ledger()
        await asyncio.sleep(0.02)


async def settled(platform: LocalPlatform, live: int) -> None:
    """Waits until so many runs go on."""
    await until(platform, lambda ledger: ledger["runs"]["live"] == live)


async def paused(platform: LocalPlatform, client: AsyncTrainClient) -> str:
    """A run that is PAUSED."""
    made = await client.runs.create(CONFIG, volume="research")
    await client.runs.wait(made.run_id, until="RUNNING", timeout=5)
    await client.runs.pause(made.run_id)
    await platform.advance(1)
    return made.run_id


async def test_a_create_without_an_answer_is_found_and_not_sent_again(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_training_run", reset="after_commit"))
    made = await client.runs.create(CONFIG)
    assert [run.id for run in await every(client)] == [made.run_id]
    assert (made.token_value, made.on_demand) == (None, None)
    assert platform.ledger()["requests"]["create_training_run"] == 1


@pytest.mark.parametrize("spoiled", [{"garbage": True}, {"status": 500}, {"truncate": 20}])
async def test_a_create_that_leaves_its_outcome_open_is_never_doubled(
    platform: LocalPlatform, client: AsyncTrainClient, spoiled: dict[str, Any]
) -> None:
    platform.add_faults(FaultRule("create_training_run", nth=1, **spoiled))
    answers = await asyncio.gather(client.runs.create(CONFIG), return_exceptions=True)
    assert platform.ledger()["requests"]["create_training_run"] == 1
    expected = 0 if isinstance(answers[0], BaseException) else 1
    await settled(platform, expected)
    assert expected == ("status" not in spoiled)


async def test_a_create_that_did_not_arrive_leaves_nothing(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_training_run", reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await client.runs.create(CONFIG)
    assert await every(client) == []


@pytest.mark.parametrize("committed", [False, True])
async def test_a_cancelled_create_is_deleted(platform: LocalPlatform, committed: bool) -> None:
    delay: dict[str, Any] = {"delay_after" if committed else "delay_before": 0.4}
    async with AsyncTrainClient() as client:
        platform.add_faults(FaultRule("create_training_run", **delay))
        create = asyncio.ensure_future(client.runs.create(CONFIG))
        await until(platform, lambda ledger: "create_training_run" in ledger["requests"])
        create.cancel()
        with pytest.raises(asyncio.CancelledError):
            await create
    await settled(platform, 0)
    assert platform.ledger()["runs"]["created"] == platform.ledger()["runs"]["deleted"] == 1


async def test_where_only_admins_may_use_one_route_the_other_deletes(
    platform: LocalPlatform,
) -> None:
    platform.add_faults(
        FaultRule("create_training_run", delay_after=0.3),
        FaultRule("delete_training_run", status=403),
    )
    async with AsyncTrainClient() as client:
        create = asyncio.ensure_future(client.runs.create(CONFIG))
        await until(platform, lambda ledger: ledger["runs"]["created"] == 1)
        create.cancel()
        with pytest.raises(asyncio.CancelledError):
            await create
    await settled(platform, 0)


async def test_a_resume_without_an_answer_is_found_and_not_sent_again(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await paused(platform, client)
    other = await client.runs.create(CONFIG)
    platform.add_faults(FaultRule("resume_training_run", reset="after_commit"))
    again = await client.runs.resume(run_id)
    assert again.run_id not in (run_id, other.run_id)
    assert again.run_id in [run.id for run in await every(client)]
    assert platform.ledger()["requests"]["resume_training_run"] == 1


async def test_a_cancelled_resume_is_deleted_and_nothing_else(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    run_id = await paused(platform, client)
    platform.add_faults(FaultRule("resume_training_run", nth=1, delay_after=0.3))
    resume = asyncio.ensure_future(client.runs.resume(run_id))
    await until(platform, lambda ledger: ledger["runs"]["created"] == 2)
    resume.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resume
    await settled(platform, 0)
    assert (await client.runs.get(run_id)).status == "PAUSED"
    # The volume is free again.
    await client.runs.resume(run_id)


async def test_a_volume_that_is_not_there_is_made_for_a_run(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    made = await client.runs.create(CONFIG, volume="research", volume_size="500Gi")
    assert made.volume_created == "500Gi"
    volume = await client.volumes.get_volume("research")
    assert (volume.size, volume.status) == ("500Gi", "RUNNING")
    assert (await client.runs.get(made.run_id)).volume_name == "research"
    await client.runs.stop(made.run_id, wait=True)
    again = await client.runs.create(CONFIG, volume="research", volume_size="1Ti")
    assert again.volume_created is None
    assert [each.size for each in await client.volumes.list()] == ["500Gi"]
    default = await client.runs.create(load_config(RL, {"volume": "other"}))
    assert default.volume_created == "5Ti"
    in_file = {"volume": "third", "volume_size": "10Gi"}
    assert (await client.runs.create(load_config(RL, in_file))).volume_created == "10Gi"
    of_team = await client.runs.create(CONFIG, volume="other", volume_size="1Gi", team_id="team-1")
    assert of_team.volume_created == "1Gi"
    assert [each.name for each in await client.volumes.list(team_id="team-1")] == ["other"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"volume_size": "1Ti"}, "needs volume"),
        ({"volume": "research", "volume_size": "1TB"}, "whole number"),
        ({"volume": "research", "volume_size": "21Ti"}, "20Ti"),
    ],
)
async def test_a_wrong_size_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, asked: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        await client.runs.create(CONFIG, **asked)  # type: ignore[arg-type]
    assert platform.ledger()["requests"] == {}


async def test_a_volume_that_was_made_for_a_refused_run_is_deleted(
    platform: LocalPlatform,
) -> None:
    async with AsyncTrainClient() as client:
        with pytest.raises(BadRequestError):
            await client.runs.create(CONFIG, volume="research", gpu_type="A100_80GB")
    await until(platform, lambda ledger: ledger["training_volumes"]["live"] == 0)
    assert platform.ledger()["training_volumes"]["created"] == 1


async def test_a_second_try_has_a_volume_of_its_own(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    """Not the one of the first try, which is being deleted."""
    platform.add_faults(FaultRule("create_training_run", nth=1, status=400))
    platform.add_faults(FaultRule("delete_volume", nth=[1, 2], status=500))
    with pytest.raises(BadRequestError, match="volume 'research', made for it, is deleted"):
        await client.runs.create(CONFIG, volume="research")
    made = await client.runs.create(CONFIG, volume="research")
    assert made.volume_created == "5Ti"
    await client.runs.stop(made.run_id, wait=True)
    counts = platform.ledger()["training_volumes"]
    assert (counts["created"], counts["deleted"], counts["live"]) == (2, 1, 1)


async def test_a_volume_that_somebody_makes_in_between_is_used(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "10Gi")
    platform.add_faults(FaultRule("list_volumes", nth=1, status=200, body='{"volumes":[]}'))
    assert (await client.runs.create(CONFIG, volume="research")).volume_created is None


async def test_a_volume_whose_answer_was_lost_outlives_a_refused_run(
    platform: LocalPlatform, caplog: pytest.LogCaptureFixture
) -> None:
    platform.add_faults(FaultRule("create_volume", nth=1, reset="after_commit"))
    async with AsyncTrainClient() as client:
        with pytest.raises(BadRequestError):
            await client.runs.create(CONFIG, volume="research", gpu_type="A100_80GB")
    assert "Volume 'research'" in caplog.text
    assert platform.ledger()["training_volumes"]["live"] == 1


@pytest.mark.parametrize("answer", ["late", "lost"])
async def test_a_cancelled_create_deletes_run_and_volume(
    platform: LocalPlatform, answer: str
) -> None:
    reset: Any = "after_commit" if answer == "lost" else None
    platform.add_faults(FaultRule("create_training_run", delay_after=0.3, reset=reset))
    async with AsyncTrainClient() as client:
        create = asyncio.ensure_future(client.runs.create(CONFIG, volume="research"))
        await until(platform, lambda ledger: ledger["runs"]["created"] == 1)
        create.cancel()
        with pytest.raises(asyncio.CancelledError):
            await create
    await settled(platform, 0)
    await until(platform, lambda ledger: ledger["training_volumes"]["live"] == 0)


async def test_a_volume_that_was_there_outlives_a_refused_run(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.volumes.create("research", "10Gi")
    with pytest.raises(BadRequestError):
        await client.runs.create(CONFIG, volume="research", gpu_type="A100_80GB")
    assert [each.name for each in await client.volumes.list()] == ["research"]


async def test_refusals_are_told_by_what_they_mean(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    await client.runs.create(CONFIG, volume="research")
    with pytest.raises(VolumeBusyError, match="research"):
        await client.runs.create(CONFIG, volume="research")
    with pytest.raises(BadRequestError, match="A100_80GB"):
        await client.runs.create(CONFIG, gpu_type="A100_80GB")
    with pytest.raises(ForbiddenError, match="restricted"):
        await client.runs.create(CONFIG, source_ref="feature/x")
    with pytest.raises(NotFoundError):
        await client.runs.create(CONFIG, resume_from="unknown")
    platform.set_training_access(on_demand=False)
    with pytest.raises(OnDemandAccessError, match="beta"):
        await client.runs.create(CONFIG)
    platform.set_training_access(on_demand=True)
    platform.set_balance(0)
    with pytest.raises(PaymentRequiredError, match="Insufficient funds"):
        await client.runs.create(CONFIG)
    assert platform.ledger()["runs"]["created"] == 1


async def test_what_the_config_shows_to_be_wrong_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    wrong = load_config(RL, {"deployment": {"num_train_gpus": 64}})
    with pytest.raises(InvalidConfigError, match="64"):
        await client.runs.create(wrong)
    assert platform.ledger()["requests"] == {}


async def test_a_request_holds_what_it_is_to_hold(client: AsyncTrainClient) -> None:
    request = build_request(CONFIG, name="built", gpu_type="B200_180GB")
    made = await client.runs.create(request)
    assert made.gpu_type == "B200_180GB"
    name = (await client.runs.get(made.run_id)).name
    assert name is not None
    assert name.startswith("built-")
    with pytest.raises(TypeError, match="gpu_type"):
        await client.runs.create(request, gpu_type="H200_141GB")
    with pytest.raises(TypeError, match="dict"):
        await client.runs.create({})  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [404, 405, 500, 503])
async def test_a_platform_that_cannot_prepare_runs_dispatches_them(
    platform: LocalPlatform, client: AsyncTrainClient, status: int
) -> None:
    platform.add_faults(FaultRule("prepare_training_run", status=status))
    await client.runs.create(CONFIG)


async def test_what_prepare_refuses_is_not_dispatched(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("prepare_training_run", status=400))
    with pytest.raises(BadRequestError):
        await client.runs.create(CONFIG)
    assert "create_training_run" not in platform.ledger()["requests"]


async def test_the_build_of_a_run_is_read(client: AsyncTrainClient) -> None:
    found = await client.runs.prepare("sft", image_tag="v0.12.0")
    assert (found.contract_version, found.mode) == (1, "sft")
    assert found.runtime.schema_commit == found.runtime.image_commit
    assert found.runtime.repository.endswith("/primeintellect-ai/prime-rl")


async def test_secrets_are_sent_and_in_no_error(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    secrets = RunSecrets(
        Secret(HIDDEN), Secret(HIDDEN), {"JUDGE_KEY": Secret(HIDDEN), "N": Secret("1")}
    )
    made = await client.runs.create(CONFIG, secrets=secrets)
    assert HIDDEN not in (await client.runs.get(made.run_id)).model_dump_json()
    echo = FaultRule("create_training_run", status=422, body=ECHO)
    platform.add_faults(echo)
    with pytest.raises(Exception, match="withheld") as refused:
        await client.runs.create(CONFIG, secrets=secrets)
    assert HIDDEN not in f"{refused.value!r} {vars(refused.value)}"
    platform.clear_faults()
    run_id = await paused(platform, client)
    platform.add_faults(FaultRule("resume_training_run", status=400, body=ECHO))
    with pytest.raises(BadRequestError, match="withheld"):
        await client.runs.resume(run_id, secrets=secrets)
    reserved = RunSecrets(values={"HF_TOKEN": Secret(HIDDEN)})
    with pytest.raises(ValueError, match="HF_TOKEN"):
        await client.runs.resume(run_id, secrets=reserved)


async def test_runs_are_listed_page_by_page(client: AsyncTrainClient) -> None:
    made = [(await client.runs.create(CONFIG, name=f"run{n}")).run_id for n in range(3)]
    of_team = await client.runs.create(CONFIG, team_id="team-1")
    first = await client.runs.list(limit=2)
    assert ([run.id for run in first.runs], first.total, first.total_pages) == (
        made[:0:-1],
        3,
        2,
    )
    second = await client.runs.list(page=2, limit=2, mine=True)
    assert [run.id for run in second.runs] == made[:1]
    assert [run.id for run in await every(client)] == made[::-1]
    assert [run.id async for run in client.runs.iter(team_id="team-1")] == [of_team.run_id]
    with pytest.raises(ValueError, match="limit"):
        await client.runs.list(limit=0)


async def test_an_older_platform_that_lists_everything_is_paged_here(
    platform: LocalPlatform, client: AsyncTrainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {**OLD_ROW, "id": f"r{n}", "userId": f"u{n % 2}", "updatedAt": OLD_ROW["createdAt"]}
        for n in range(5)
    ]
    rows[0]["teamId"] = "team-1"
    platform.add_faults(
        FaultRule("list_training_runs", status=200, body=json.dumps({"runs": rows}))
    )
    page = await client.runs.list(page=2, limit=3)
    assert ([run.id for run in page.runs], page.total, page.total_pages) == (["r4"], 4, 2)
    assert [run.id for run in await every(client)] == ["r1", "r2", "r3", "r4"]
    assert [run.id async for run in client.runs.iter(team_id="team-1")] == ["r0"]
    with pytest.raises(ConfigurationError, match="PRIME_USER_ID"):
        await client.runs.list(mine=True)
    monkeypatch.setenv("PRIME_USER_ID", "u1")
    async with AsyncTrainClient() as known:
        assert [run.id async for run in known.runs.iter(mine=True)] == ["r1", "r3"]


def test_runs_work_without_a_loop(prime_platform_server: Any, monkeypatch: Any) -> None:
    for name, value in prime_platform_server.env.items():
        monkeypatch.setenv(name, value)
    prime_platform_server.set_training_pace(step_time=0.01)
    with TrainClient() as client:
        made = client.runs.create(load_config(RL, {"max_steps": 3}))
        assert client.runs.wait(made.run_id, timeout=10).status == "COMPLETED"
        assert made.run_id in [run.id for run in client.runs.iter()]
        client.runs.delete(made.run_id)
