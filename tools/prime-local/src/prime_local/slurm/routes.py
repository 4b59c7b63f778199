"""Routes of Slurm deployments."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.errors import PlatformError
from prime_local.slurm.record import RUNNING, Deployment
from prime_local.slurm.registry import SlurmRegistry


async def list_slurm_clusters(call: Call) -> Reply:
    slurm = _slurm(call)
    team = call.core.account.people.team(call.parameters["team_id"])
    return Reply({"data": [slurm.read(each) for each in slurm.of_team(team.id)]})


async def deploy_slurm_cluster(call: Call) -> Reply:
    team = call.core.account.people.check_admin(call.parameters["team_id"])
    slurm = _slurm(call)
    deployment = slurm.deploy(team.id, call.body)
    wire = deployment.to_wire()
    slurm.start(deployment)
    await call.core.saved()
    return Reply(wire)


async def get_slurm_connection(call: Call) -> Reply:
    deployment = _slurm(call).get(call.parameters["cluster_id"])
    if deployment.stage != RUNNING:
        raise PlatformError(409, "The cluster is not RUNNING")
    # An address of the documentation's range: nothing listens there.
    return Reply({"connectable": True, "sshHost": "203.0.113.40", "sshPort": 2222})


async def list_slurm_members(call: Call) -> Reply:
    return Reply({"data": _deployment(call).members})


async def add_slurm_member(call: Call) -> Reply:
    member = _slurm(call).add_member(_deployment(call, admin=True), call.body)
    await call.core.saved()
    return Reply(member)


async def remove_slurm_member(call: Call) -> Reply:
    _slurm(call).remove_member(_deployment(call, admin=True), call.parameters["username"])
    await call.core.saved()
    return Reply(b"", 204)


async def resize_slurm_cluster(call: Call) -> Reply:
    result = _slurm(call).resize(_deployment(call, admin=True), call.body["numNodes"])
    await call.core.saved()
    if call.fault is not None and call.fault.fails is not None:
        raise PlatformError(502, call.fault.fails)
    return Reply(result)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_slurm_clusters,
        deploy_slurm_cluster,
        get_slurm_connection,
        list_slurm_members,
        add_slurm_member,
        remove_slurm_member,
        resize_slurm_cluster,
    )
}


def _slurm(call: Call) -> SlurmRegistry:
    return call.core.slurm


def _deployment(call: Call, *, admin: bool = False) -> Deployment:
    people, team_id = call.core.account.people, call.parameters["team_id"]
    team = people.check_admin(team_id) if admin else people.team(team_id)
    return _slurm(call).get(call.parameters["job_id"], team.id)
