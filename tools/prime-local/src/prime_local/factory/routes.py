"""Routes of the factory: views of one state, at the platform's date."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from prime_local.calls import Call, Handler, Reply
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.errors import invalid
from prime_local.factory.cluster import CORDONED, GPU_TYPE, GPUS, INFERENCE, NAME, NODES, TRAINING
from prime_local.factory.jobs import Job, jobs_until, source
from prime_local.sandboxes.record import wire_date
from prime_local.slurm.record import Deployment

_LIVE = ("running", "queued")
_MOST = 200
_TERMINAL_DEFAULT = 50
_BUCKET = timedelta(minutes=5)
_CURVE = timedelta(days=1)


async def get_factory_status(call: Call) -> Reply:
    deployments, now = _deployments(call), call.core.clock.date()
    clusters = [] if deployments is None else [_cluster(call, deployments, now)]
    return _reply(now, {"clusters": clusters})


async def get_factory_nodes(call: Call) -> Reply:
    deployments, now = _deployments(call), call.core.clock.date()
    if deployments is None:
        return _reply(now, {"clusters": [], "sources": []})
    nodes = [_node(name, deployments, now) for name in NODES]
    cluster = {"display_name": NAME, "status": "online", "nodes": nodes}
    return _reply(now, {"clusters": [cluster], "sources": [source("capacity", now)]})


async def get_factory_utilization(call: Call) -> Reply:
    deployments, now = _deployments(call), call.core.clock.date()
    if deployments is None:
        return _reply(now, {"points": [], "sources": []})
    return _reply(now, {"points": _curve(deployments, now), "sources": [source("slurm", now)]})


async def list_factory_workloads(call: Call) -> Reply:
    deployments, now, query = _deployments(call), call.core.clock.date(), call.parameters
    since = _since(query.get("since"))
    state, kind = query.get("state"), query.get("workload_type")
    states = _LIVE if state is None else None if state == "all" else (state,)
    live = state is None or state in _LIVE
    limit = query.get("limit") or (_MOST if live else _TERMINAL_DEFAULT)

    def wanted(job: Job) -> bool:
        return (
            (states is None or job.state(now) in states)
            and kind in (None, job.kind)
            and (since is None or job.moment(now) >= since)
        )

    jobs: list[Job] = []
    if deployments is not None:
        opened = call.core.account.people.since
        jobs = [job for job in jobs_until(now, opened, deployments) if wanted(job)]
    if not live:
        jobs.sort(key=lambda job: job.moment(now), reverse=True)
    kinds = (kind,) if kind else ("training", "inference", "slurm")
    answer = {
        "workloads": [job.to_wire(now) for job in jobs[:limit]],
        "sources": [source(each, now) for each in kinds],
        "truncated": len(jobs) > limit,
    }
    return _reply(now, answer)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        get_factory_status,
        get_factory_nodes,
        get_factory_utilization,
        list_factory_workloads,
    )
}


def _deployments(call: Call) -> list[Deployment] | None:
    """Return the deployments of a team; None for a team without a cluster."""
    people = call.core.account.people
    team = people.team(call.parameters["team_id"])
    return call.core.slurm.of_team(team.id) if team is people.lab else None


def _reply(now: datetime, answer: JsonObject) -> Reply:
    return Reply({"schema_version": 1, "as_of": wire_date(now), **answer})


def _cluster(call: Call, deployments: Sequence[Deployment], now: datetime) -> JsonObject:
    claimed = GPUS * sum(len(each.nodes) for each in deployments)
    busy = GPUS * sum(len(each.busy_nodes(now)) for each in deployments)
    full = {"training": GPUS * len(TRAINING), "inference": GPUS * len(INFERENCE)}
    allocations = [_allocation(kind, gpus, gpus) for kind, gpus in full.items()]
    return {
        "display_name": NAME,
        "gpu_type": GPU_TYPE,
        "total_gpus": GPUS * len(NODES),
        "status": "online",
        "unassigned_gpus": GPUS * len(call.core.slurm.idle_nodes()),
        "unknown_gpus": GPUS,  # of the cordoned node
        "allocations": [*allocations, _allocation("slurm", claimed, busy)],
        "sources": [source(kind, now) for kind in ("capacity", "training", "inference", "slurm")],
    }


def _allocation(kind: str, reserved: int, in_use: int) -> JsonObject:
    return {
        "type": kind,
        "reserved_gpus": reserved,
        "in_use_gpus": in_use,
        "idle_inside_gpus": reserved - in_use,
        "unknown_gpus": 0,
    }


def _node(name: str, deployments: Sequence[Deployment], now: datetime) -> JsonObject:
    busy = {*TRAINING, *INFERENCE, *(node for each in deployments for node in each.busy_nodes(now))}
    claimed = any(name in each.nodes for each in deployments)
    used = GPUS if name in busy else 0
    return {
        "name": name,
        "state": "cordoned" if name == CORDONED else "ready",
        "gpu_type": GPU_TYPE,
        "gpus_total": GPUS,
        "gpus_used": None if name == CORDONED else used,
        "assigned_to": "slurm" if claimed else None,
    }


def _curve(deployments: Sequence[Deployment], now: datetime) -> list[JsonObject]:
    """Points of the last day; before the first deployment ran there are none."""
    starts = [each.started_at for each in deployments if each.started_at is not None]
    if not starts:
        return []
    first = max(min(starts), now - _CURVE)
    points = []
    for number in range((now - first) // _BUCKET + 1):
        at = first + number * _BUCKET
        running = [each for each in deployments if each.started_at and each.started_at <= at]
        busy = sum(len(each.busy_nodes(at)) for each in running)
        idle = sum(len(each.nodes) for each in running) - busy
        points.append({"at": wire_date(at), "allocated_nodes": busy, "idle_nodes": idle})
    return points


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    problem = Problem(("query", "since"), "Not a date and time with an offset", "value")
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise invalid([problem]) from None
    if moment.tzinfo is None:
        raise invalid([problem])
    return moment
