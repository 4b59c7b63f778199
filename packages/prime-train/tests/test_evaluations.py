"""Evaluations: created, listed, changed without wiping, completed, closed and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from prime_local import FaultRule, LocalPlatform, PlatformProcess
from prime_train import (
    APIConnectionError,
    AsyncTrainClient,
    ConflictError,
    EnvironmentReference,
    NotFoundError,
    TrainClient,
)

if TYPE_CHECKING:
    from conftest import StartPlatform

pytestmark = pytest.mark.timeout(30)

TEAM = "cmb4f0k2p0001l8zq7h3n9x5t"


async def made(client: AsyncTrainClient, name: str = "baseline", **asked: Any) -> str:
    used: dict[str, Any] = {"environments": ["primeintellect/gsm8k"], **asked}
    created = await client.evaluations.create(name, **used)
    return created.evaluation_id


async def test_an_evaluation_goes_from_its_creation_to_its_end(client: AsyncTrainClient) -> None:
    created = await client.evaluations.create(
        "baseline", environments=["primeintellect/gsm8k"], model_name="m", tags=["a"]
    )
    assert (created.status, created.eval_type) == ("PENDING", "environment")
    pushed = await client.evaluations.push_samples(
        created.evaluation_id, [{"reward": 1.0}, {"reward": 0.0}]
    )
    assert (pushed.samples_pushed, pushed.samples_skipped) == (2, 0)
    done = await client.evaluations.finalize(created.evaluation_id, metrics={"acc": 0.5})
    assert (done.status, done.avg_score, done.total_samples) == ("COMPLETED", 0.5, 2)
    found = await client.evaluations.get(created.evaluation_id)
    assert (found.tags, found.metrics, found.model_name) == (["a"], {"acc": 0.5}, "m")


@pytest.mark.parametrize(
    "environment",
    [
        "primeintellect/gsm8k",
        {"slug": "primeintellect/gsm8k"},
        EnvironmentReference(id="cpublishedgsm8k0000000000"),
        {"id": "cpublishedgsm8k0000000000"},
    ],
)
async def test_an_environment_is_named_by_slug_or_id(
    client: AsyncTrainClient, environment: str
) -> None:
    found = await client.evaluations.get(await made(client, environments=[environment]))
    assert found.environment_names == ["gsm8k"]


async def test_a_name_of_ones_own_is_made(client: AsyncTrainClient) -> None:
    found = await client.evaluations.get(await made(client, environments=["mine"]))
    again = await client.environments.resolve("mine")
    assert (found.environment_ids, again.created) == ([again.id], False)


@pytest.mark.parametrize("environment", ["primeintellect/none", {"id": "cnone"}])
async def test_an_unknown_environment_is_not_dropped_silently(
    client: AsyncTrainClient, environment: str
) -> None:
    with pytest.raises(NotFoundError):
        await made(client, environments=[environment])


@pytest.mark.parametrize(
    "asked",
    [{"environments": []}, {"environments": None}, {"environments": "a"}, {"environments": [{}]}],
)
async def test_an_evaluation_of_nothing_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient, asked: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="environment"):
        await made(client, **asked)
    assert platform.ledger()["requests"] == {}


async def test_lists_know_scopes_filters_and_parts(client: AsyncTrainClient) -> None:
    ids = [await made(client, f"e{number}") for number in range(3)]
    other = await made(client, "other", environments=["mine"])
    teams = await made(client, "team", team_id=TEAM)
    assert [each.evaluation_id async for each in client.evaluations.iter()] == [other, *ids[::-1]]
    part = await client.evaluations.list(environment_name="primeintellect/gsm8k", skip=1, limit=1)
    assert ([each.evaluation_id for each in part.evaluations], part.total) == ([ids[1]], 3)
    named = await client.evaluations.list(team_id=TEAM)
    assert [each.evaluation_id for each in named.evaluations] == [teams]
    with pytest.raises(ValueError, match="limit"):
        await client.evaluations.list(limit=101)


async def test_an_update_wipes_nothing_that_it_was_not_given(client: AsyncTrainClient) -> None:
    evaluation_id = await made(
        client, tags=["a"], metadata={"n": 1, "deep": {"x": 1}}, metrics={"acc": 1}
    )
    await client.evaluations.update(evaluation_id, name="other", metadata={"m": 2})
    found = await client.evaluations.get(evaluation_id)
    assert (found.name, found.tags) == ("other", ["a"])
    assert (found.metadata, found.metrics) == ({"n": 1, "deep": {"x": 1}, "m": 2}, {"acc": 1})
    await client.evaluations.update(evaluation_id, tags=[], metadata={"k": 0}, replace=True)
    found = await client.evaluations.get(evaluation_id)
    assert (found.tags, found.metadata) == ([], {"k": 0})


async def test_an_update_of_nothing_is_not_sent(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    with pytest.raises(ValueError, match="nothing to change"):
        await client.evaluations.update("e")
    assert platform.ledger()["requests"] == {}


async def test_a_lost_answer_of_a_create_is_not_sent_again(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    platform.add_faults(FaultRule("create_evaluation", reset="after_commit"))
    with pytest.raises(APIConnectionError) as failure:
        await made(client)
    assert failure.value.sent == "unknown"
    assert platform.ledger()["requests"]["create_evaluation"] == 1


async def test_a_lost_answer_of_finalize_is_found_out(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    evaluation_id = await made(client)
    await client.evaluations.push_samples(evaluation_id, [{"reward": 1.0}])
    platform.add_faults(FaultRule("finalize_evaluation", reset="after_commit"))
    done = await client.evaluations.finalize(evaluation_id)
    assert (done.status, done.avg_score) == ("COMPLETED", 1.0)
    assert platform.ledger()["requests"]["finalize_evaluation"] == 1


async def test_a_finalize_that_did_not_arrive_is_an_error(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    evaluation_id = await made(client)
    platform.add_faults(FaultRule("finalize_evaluation", reset="before_commit"))
    with pytest.raises(APIConnectionError):
        await client.evaluations.finalize(evaluation_id)
    assert (await client.evaluations.get(evaluation_id)).status == "PENDING"


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
async def test_closing_says_why_and_survives_a_lost_answer(
    platform: LocalPlatform, client: AsyncTrainClient, status: str
) -> None:
    evaluation_id = await made(client)
    platform.add_faults(FaultRule("update_evaluation", nth=1, reset="after_commit"))
    closed = await client.evaluations.close(evaluation_id, status, "w" * 5000)  # type: ignore[arg-type]
    assert (closed.status, closed.error_message) == (status, "w" * 4096)
    other = {"FAILED": "CANCELLED", "CANCELLED": "FAILED"}[status]
    with pytest.raises(ConflictError):
        await client.evaluations.close(evaluation_id, other)  # type: ignore[arg-type]


async def test_evaluations_are_deleted_with_their_samples(client: AsyncTrainClient) -> None:
    evaluation_id = await made(client)
    await client.evaluations.push_samples(evaluation_id, [{"reward": 1.0}])
    await client.evaluations.delete(evaluation_id)
    with pytest.raises(NotFoundError):
        await client.evaluations.samples(evaluation_id)
    with pytest.raises(NotFoundError):
        await client.evaluations.delete(evaluation_id)


async def test_a_bulk_delete_knows_what_a_lost_answer_has_deleted(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    ids = [await made(client) for _ in range(3)]
    platform.add_faults(FaultRule("bulk_delete_evaluations", nth=1, reset="after_commit"))
    done = await client.evaluations.bulk_delete([*ids, ids[0]])
    assert (sorted(done.successful_ids), done.failed_ids) == (sorted(ids), [])
    again = await client.evaluations.bulk_delete(ids)
    assert (again.successful_ids, again.failed_ids) == ([], ids)


async def test_a_bulk_delete_goes_by_the_hundred(
    platform: LocalPlatform, client: AsyncTrainClient
) -> None:
    ids = [f"unknown-{number}" for number in range(201)]
    assert (await client.evaluations.bulk_delete(ids)).failed_ids == ids
    assert platform.ledger()["requests"]["bulk_delete_evaluations"] == 3


async def test_what_a_newer_server_adds_is_read(start_platform: StartPlatform) -> None:
    await start_platform(noise=True)
    async with AsyncTrainClient() as client:
        evaluation_id = await made(client)
        await client.evaluations.push_samples(evaluation_id, [{"reward": 1.0}])
        assert [each.evaluation_id async for each in client.evaluations.iter()] == [evaluation_id]
        await client.evaluations.finalize(evaluation_id)


def test_the_sync_client_does_the_same(clean_environment: None) -> None:
    with (
        PlatformProcess(["--isolation", "process"]) as platform,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in platform.env.items():
            patch.setenv(name, value)
        with TrainClient() as client:
            created = client.evaluations.create("sync", environments=["mine"])
            client.evaluations.push_samples(created.evaluation_id, iter([{"reward": 1.0}]))
            assert list(client.evaluations.iter_samples(created.evaluation_id)) == [{"reward": 1.0}]
            assert client.evaluations.finalize(created.evaluation_id).status == "COMPLETED"
        platform.check_contract()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"metrics": {"loss": float("nan")}}, "metrics"),
        ({"metadata": {"a": [float("inf")]}}, "metadata"),
        ({"metadata": {"a": {(1, 2): 3}}}, "metadata"),
        ({"metadata": 5}, "metadata"),
        ({"tags": "smoke"}, "tags"),
        ({"tags": [1]}, "tags.0"),
    ],
)
async def test_what_json_cannot_say_is_refused_before_anything_is_sent(
    platform: LocalPlatform, client: AsyncTrainClient, wrong: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        await client.evaluations.create("baseline", environments=["mine"], **wrong)
    with pytest.raises(ValueError, match=named):
        await client.evaluations.update("unknown", **wrong)
    assert platform.ledger()["requests"] == {}
