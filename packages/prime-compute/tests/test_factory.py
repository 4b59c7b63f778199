"""What dedicated clusters do: one state, seen from four sides."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from prime_compute import (
    APIResponseError,
    AsyncComputeClient,
    ConfigurationError,
    FactoryNodes,
    FactoryStatus,
    ForbiddenError,
    NodeState,
    WorkloadState,
    known_sum,
)
from prime_compute.models import FactorySource
from prime_local import FaultRule, LocalPlatform

SOURCE = {"kind": "capacity", "status": "ok"}


@pytest.fixture
async def team(client: AsyncComputeClient) -> str:
    return (await client.teams.list()).data[0].team_id


async def test_all_views_are_of_one_state(
    platform: LocalPlatform, client: AsyncComputeClient, team: str
) -> None:
    await platform.advance(120)  # past the minute for which a Slurm job waits
    status = await client.factory.status(team)
    (cluster,) = status.clusters
    slurm = {each.type: each for each in cluster.allocations}["slurm"]
    assert (slurm.reserved_gpus, slurm.in_use_gpus, slurm.idle_inside_gpus) == (48, 16, 32)
    reserved = known_sum(each.reserved_gpus for each in cluster.allocations)
    parts = (reserved, cluster.unassigned_gpus, cluster.unknown_gpus)
    assert known_sum(parts) == status.total_gpus == 160
    nodes = (await client.factory.nodes(team)).clusters[0].nodes
    claimed = [node for node in nodes if node.assigned_to == "slurm"]
    assert sum(node.gpus_total or 0 for node in claimed) == slurm.reserved_gpus
    assert known_sum(node.gpus_used for node in claimed) == slurm.in_use_gpus
    running = (await client.factory.workloads(team, state="running")).workloads
    in_use = dict.fromkeys(("training", "inference", "slurm"), 0)
    for job in running:
        in_use[job.type] += job.allocated_gpus or 0
    assert in_use == {each.type: each.in_use_gpus for each in cluster.allocations}


async def test_a_resize_shows_in_the_factory(client: AsyncComputeClient, team: str) -> None:
    (row,) = await client.slurm.list(team)
    before = await client.factory.status(team)
    await client.slurm.resize(row.id, 8, team_id=team)
    after = await client.factory.status(team)
    assert (before.unassigned_gpus, after.unassigned_gpus) == (40, 24)


async def test_what_was_not_observed_is_none(client: AsyncComputeClient, team: str) -> None:
    nodes = (await client.factory.nodes(team)).clusters[0].nodes
    assert (nodes[-1].state, nodes[-1].gpus_used) == (NodeState.CORDONED, None)
    assert known_sum(node.gpus_used for node in nodes) is None
    assert known_sum([]) == 0


async def test_jobs_move_with_the_clock(
    platform: LocalPlatform, client: AsyncComputeClient, team: str
) -> None:
    def of_slurm(state: Any) -> Any:
        return client.factory.workloads(team, workload_type="slurm", state=state)

    (queued,) = (await of_slurm("queued")).workloads
    assert (queued.state, queued.allocated_gpus, queued.started_at) == ("queued", None, None)
    await platform.advance(61)
    (running,) = (await of_slurm(None)).workloads
    assert (running.id, running.state, running.ended_at) == (queued.id, "running", None)
    await platform.advance(900)
    done = (await of_slurm("completed")).workloads
    assert done[0].id == queued.id
    assert done[0].ended_at is not None
    assert [job.ended_at for job in done] == sorted((job.ended_at for job in done), reverse=True)


async def test_windows_with_ended_jobs_are_bounded(client: AsyncComputeClient, team: str) -> None:
    ended = await client.factory.workloads(team, state="all")
    assert (len(ended.workloads), ended.truncated) == (50, True)
    assert len((await client.factory.workloads(team, state="all", limit=200)).workloads) == 200
    since = datetime.now(timezone.utc) - timedelta(hours=1)
    recent = await client.factory.workloads(team, state="completed", since=since)
    assert recent.workloads
    assert all(job.ended_at and job.ended_at >= since for job in recent.workloads)
    live = await client.factory.workloads(team)
    assert {job.state for job in live.workloads} <= {WorkloadState.RUNNING, WorkloadState.QUEUED}
    assert live.truncated is False


async def test_the_curve_of_utilization_is_kept_as_it_comes(
    client: AsyncComputeClient, team: str
) -> None:
    curve = (await client.factory.utilization(team)).model_dump()
    assert {point["allocated_nodes"] for point in curve["points"]} == {0, 2}
    assert curve["schema_version"] == 1


async def test_a_team_without_clusters_has_none(client: AsyncComputeClient) -> None:
    duo = (await client.teams.list()).data[1].team_id
    status = await client.factory.status(duo)
    assert (status.clusters, status.total_gpus) == ([], 0)
    assert (await client.factory.nodes(duo)).sources == []
    assert (await client.factory.workloads(duo)).workloads == []
    with pytest.raises(ForbiddenError):
        await client.factory.status("cmg0team5x0002zz4m1k6w7bd")


async def test_impossible_questions_are_not_sent(
    platform: LocalPlatform, client: AsyncComputeClient, team: str
) -> None:
    with pytest.raises(ValueError, match="zone"):
        await client.factory.workloads(team, since=datetime(2026, 1, 1))
    for limit in (0, 201):
        with pytest.raises(ValueError, match="limit"):
            await client.factory.workloads(team, limit=limit)
    with pytest.raises(ConfigurationError, match="team_id="):
        await client.factory.status()
    assert not any("factory" in each for each in platform.ledger()["requests"])


NODES = {"schema_version": 1, "clusters": [{"display_name": "a", "nodes": []}], "sources": [SOURCE]}


@pytest.mark.parametrize(
    "answer",
    [
        {**NODES, "schema_version": 2},
        {**NODES, "schema_version": None},
        {key: value for key, value in NODES.items() if key != "schema_version"},
        {**NODES, "sources": []},
        {**NODES, "sources": [SOURCE, SOURCE]},
        {**NODES, "sources": [{**SOURCE, "kind": "slurm"}]},
        {**NODES, "clusters": None},
        [NODES],
        "<html>",
    ],
)
async def test_a_malformed_answer_is_an_error_never_half_understood(
    answer: object, platform: LocalPlatform, client: AsyncComputeClient, team: str
) -> None:
    body = answer if isinstance(answer, str) else json.dumps(answer)
    platform.add_faults(FaultRule("get_factory_nodes", status=200, body=body))
    with pytest.raises(APIResponseError):
        await client.factory.nodes(team)


def test_the_older_name_of_allocations_is_read() -> None:
    cluster = {"display_name": "a", "sources": [SOURCE], "pools": [{"type": "slurm"}]}
    status = FactoryStatus.model_validate({"schema_version": 1, "clusters": [cluster]})
    assert status.clusters[0].allocations[0].reserved_gpus is None
    assert status.unassigned_gpus is None


def test_whatever_is_not_ok_is_degraded() -> None:
    words = ("ok", "stale", "error", "new")
    degraded = [FactorySource(kind="slurm", status=word).degraded for word in words]
    assert degraded == [False, True, True, True]


def test_newer_words_are_kept_and_times_without_a_zone_are_utc() -> None:
    node = {"name": "n", "state": "melting"}
    text = {**NODES, "as_of": "2026-10-08T12:00:05"}
    text["clusters"] = [{"display_name": "a", "nodes": [node]}]
    nodes = FactoryNodes.model_validate_json(json.dumps(text))
    assert nodes.clusters[0].nodes[0].state == "melting"
    assert nodes.as_of == datetime(2026, 10, 8, 12, 0, 5, tzinfo=timezone.utc)
