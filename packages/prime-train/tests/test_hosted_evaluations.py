"""Hosted evaluations: started once, followed line by line, cancelled, never lost track of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform
from prime_train import (
    APIConnectionError,
    AsyncTrainClient,
    BadRequestError,
    ConflictError,
    CreatedHostedEvaluation,
    HostedEvalConfig,
    HostedEvaluationError,
    HostedEvaluationTimeoutError,
    NotFoundError,
    PaymentRequiredError,
)

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = [pytest.mark.timeout(30), pytest.mark.usefixtures("quick_polls", "quick_looks")]

GSM8K = "cpublishedgsm8k0000000000"
WORDLE = "cpublishedwordle000000000"
MODEL = "openai/gpt-4.1-mini"
SMALL = HostedEvalConfig(num_examples=2, rollouts_per_example=2)


@pytest.fixture
async def slow(start_platform: StartPlatform) -> LocalPlatform:
    """A platform whose rollouts take ten seconds on its clock."""
    return await start_platform(rollout_time=10)


@pytest.fixture
async def slow_client(slow: LocalPlatform) -> Any:
    async with AsyncTrainClient() as client:
        yield client


async def started(client: AsyncTrainClient, **asked: Any) -> CreatedHostedEvaluation:
    used = {"environment_ids": [GSM8K], "eval_config": SMALL, **asked}
    return await client.hosted_evaluations.create(inference_model=MODEL, **used)


async def live(client: AsyncTrainClient) -> list[str]:
    return [
        each.evaluation_id
        async for each in client.evaluations.iter()
        if each.status in ("PENDING", "RUNNING")
    ]


async def test_a_hosted_evaluation_runs_to_its_end(client: AsyncTrainClient) -> None:
    made = await started(client, name="smoke")
    (evaluation_id,) = made.ids
    done = await client.hosted_evaluations.wait(evaluation_id, timeout=10)
    assert (done.status, done.total_samples, done.is_hosted) == ("COMPLETED", 4, True)
    assert done.name.startswith("smoke-")
    assert done.eval_config is not None
    assert done.eval_config["allow_sandbox_access"] is True
    log = await client.hosted_evaluations.get_logs(evaluation_id)
    assert "simulated" in log
    assert log.count("Rollout") == 4
    with pytest.raises(ConflictError):
        await client.hosted_evaluations.cancel(evaluation_id)


async def test_each_environment_has_an_evaluation(client: AsyncTrainClient) -> None:
    made = await started(client, environment_ids=[GSM8K, WORDLE])
    assert len(made.ids) == 2
    for evaluation_id in made.ids:
        await client.hosted_evaluations.wait(evaluation_id, timeout=10)


async def test_the_log_is_followed_line_by_line(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    (evaluation_id,) = (await started(slow_client)).ids
    slow.add_faults(
        FaultRule("get_hosted_evaluation_logs", nth=2, status=503),
        FaultRule("get_hosted_evaluation_logs", nth=3, reset="after_commit"),
    )
    lines = []

    async def pass_time() -> None:
        for _ in range(8):
            await asyncio.sleep(0.1)
            await slow.advance(10)

    passing = asyncio.ensure_future(pass_time())
    async for line in slow_client.hosted_evaluations.follow_logs(evaluation_id, timeout=10):
        lines.append(line)
    await passing
    assert lines == (await slow_client.hosted_evaluations.get_logs(evaluation_id)).splitlines()
    assert len(lines) == 7


async def test_following_an_unknown_evaluation_ends(client: AsyncTrainClient) -> None:
    with pytest.raises(NotFoundError):
        async for _ in client.hosted_evaluations.follow_logs("unknown"):
            pass


async def test_a_log_that_is_not_there_yet_is_empty(slow_client: AsyncTrainClient) -> None:
    (evaluation_id,) = (await started(slow_client)).ids
    assert await slow_client.hosted_evaluations.get_logs(evaluation_id) == ""


async def test_waiting_has_a_deadline_and_tells_a_cancelled_one(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    (evaluation_id,) = (await started(slow_client)).ids
    with pytest.raises(HostedEvaluationTimeoutError) as late:
        await slow_client.hosted_evaluations.wait(evaluation_id, timeout=0.2)
    assert isinstance(late.value, TimeoutError)
    with pytest.raises(HostedEvaluationTimeoutError):
        async for _ in slow_client.hosted_evaluations.follow_logs(evaluation_id, timeout=0.2):
            pass
    slow.add_faults(FaultRule("cancel_hosted_evaluation", nth=1, reset="after_commit"))
    assert (await slow_client.hosted_evaluations.cancel(evaluation_id)).status == "CANCELLED"
    with pytest.raises(HostedEvaluationError, match="CANCELLED"):
        await slow_client.hosted_evaluations.wait(evaluation_id, timeout=5)


async def test_an_evaluation_has_a_time_limit(
    start_platform: StartPlatform,
) -> None:
    platform = await start_platform(rollout_time=3600)
    async with AsyncTrainClient() as client:
        config = HostedEvalConfig(timeout_minutes=120)
        (evaluation_id,) = (await started(client, eval_config=config)).ids
        await platform.advance(2 * 3600 + 1)
        assert (await client.evaluations.get(evaluation_id)).status == "TIMEOUT"


async def test_a_create_without_an_answer_is_found_and_not_sent_again(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    slow.add_faults(FaultRule("create_hosted_evaluation", reset="after_commit"))
    made = await started(slow_client, environment_ids=[GSM8K, WORDLE], name="smoke")
    assert sorted(made.ids) == sorted(await live(slow_client))
    assert slow.ledger()["requests"]["create_hosted_evaluation"] == 1


async def test_a_create_that_did_not_arrive_leaves_nothing(
    slow: LocalPlatform, slow_client: AsyncTrainClient
) -> None:
    slow.add_faults(FaultRule("create_hosted_evaluation", reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await started(slow_client)
    assert await live(slow_client) == []


async def test_a_cancelled_create_is_cancelled_on_the_platform(slow: LocalPlatform) -> None:
    async with AsyncTrainClient() as client:
        slow.add_faults(FaultRule("create_hosted_evaluation", delay_after=0.3))
        create = asyncio.ensure_future(started(client))
        await asyncio.sleep(0.15)
        create.cancel()
        with pytest.raises(asyncio.CancelledError):
            await create
    async with AsyncTrainClient() as client:
        assert [each.status async for each in client.evaluations.iter()] == ["CANCELLED"]


async def test_an_empty_wallet_pays_for_nothing(start_platform: StartPlatform) -> None:
    await start_platform(balance=0)
    async with AsyncTrainClient() as client:
        with pytest.raises(PaymentRequiredError):
            await started(client)


async def test_models_are_listed_and_others_refused(client: AsyncTrainClient) -> None:
    assert MODEL in [model.id for model in await client.hosted_evaluations.models()]
    with pytest.raises(BadRequestError):
        await client.hosted_evaluations.create([GSM8K], "nobody/nothing")
    with pytest.raises(NotFoundError):
        await started(client, environment_ids=["unknown"])


async def test_secrets_of_a_run_are_sent_and_not_shown(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    config = HostedEvalConfig(num_examples=1, custom_secrets={"JUDGE_KEY": "sk-hidden"})
    assert "sk-hidden" not in repr(config)
    (evaluation_id,) = (await started(client, eval_config=config)).ids
    found = await client.evaluations.get(evaluation_id)
    assert "sk-hidden" not in found.model_dump_json()


async def test_the_runners_log_takes_the_place_of_the_log(client: AsyncTrainClient) -> None:
    (evaluation_id,) = (await started(client)).ids
    await client.hosted_evaluations.wait(evaluation_id, timeout=10)
    await client.hosted_evaluations.put_logs(evaluation_id, "all of it\n")
    assert await client.hosted_evaluations.get_logs(evaluation_id) == "all of it\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_examples": 0},
        {"num_examples": -2},
        {"rollouts_per_example": 2049},
        {"timeout_minutes": 45},
        {"timeout_minutes": 1441},
        {"custom_secrets": {"1st": "x"}},
        {"unknown": 1},
    ],
)
def test_a_wrong_configuration_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        HostedEvalConfig(**wrong)
