"""For each operation of the contract of compute: how a user's program comes to call it.

Only public methods are used, and each must succeed; a test compares the keys with the contract.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from prime_compute import (
    AsyncComputeClient,
    Disk,
    DiskRequest,
    Pod,
    PodRequest,
    SlurmCluster,
    SshKey,
    StoredSecret,
)
from prime_core import AsyncLogin
from prime_local import PlatformProcess, RunTokens

# Its private half was thrown away.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXhFWFSkaWSzEan2yiepw/+XVnAq/su4+u/VmcjjHKK"


@dataclass(frozen=True)
class Ground:
    """What every operation finds there.

    Args:
        client: a client of the platform.
        login: a login at it.
        platform: the platform.
        team: a team of the caller's that owns a dedicated cluster.
    """

    client: AsyncComputeClient
    login: AsyncLogin
    platform: PlatformProcess
    team: str

    async def pod(self) -> Pod:
        offers = await self.client.availability.list_gpus(
            gpu_type="H100_80GB", gpu_count=1, data_center_id="CANADA-1", cloud_id="n3-H100x1"
        )
        return await self.client.pods.create(PodRequest.from_offer(offers.items[0], name="reached"))

    async def disk(self) -> Disk:
        offers = await self.client.availability.list_disks(data_center_id="CANADA-1")
        request = DiskRequest.from_offer(offers.items[0], size=500, name="reached")
        return await self.client.disks.create(request)

    async def ssh_key(self) -> SshKey:
        return await self.client.ssh_keys.upload("reached", PUBLIC_KEY)

    async def secret(self) -> StoredSecret:
        return await self.client.secrets.create("REACHED", "value")

    async def token(self) -> str:
        """The id of a key that nobody needs."""
        self.platform.add_key("reached")
        tokens = [token async for token in self.client.tokens.iter()]
        return tokens[-1].id

    async def cluster(self) -> SlurmCluster:
        return (await self.client.slurm.list(self.team))[0]


async def get_pod(ground: Ground) -> None:
    made = await ground.pod()
    assert (await ground.client.pods.get(made.id)).id == made.id


async def get_status(ground: Ground) -> None:
    made = await ground.pod()
    assert (await ground.client.pods.get_status(made.id)).pod_id == made.id


async def get_log(ground: Ground) -> None:
    assert await ground.client.pods.logs((await ground.pod()).id)


async def delete_pod(ground: Ground) -> None:
    await ground.client.pods.delete((await ground.pod()).id)
    assert not (await ground.client.pods.list()).data


async def get_disk(ground: Ground) -> None:
    made = await ground.disk()
    assert (await ground.client.disks.get(made.id)).id == made.id


async def rename_disk(ground: Ground) -> None:
    made = await ground.disk()
    assert (await ground.client.disks.rename(made.id, "other")).name == "other"


async def delete_disk(ground: Ground) -> None:
    await ground.client.disks.delete((await ground.disk()).id)
    assert not (await ground.client.disks.list()).data


async def set_primary(ground: Ground) -> None:
    await ground.client.ssh_keys.set_primary((await ground.ssh_key()).id)


async def delete_key(ground: Ground) -> None:
    await ground.client.ssh_keys.delete((await ground.ssh_key()).id)
    assert not (await ground.client.ssh_keys.list()).data


async def disable_token(ground: Ground) -> None:
    await ground.client.tokens.disable(await ground.token())


async def delete_token(ground: Ground) -> None:
    await ground.client.tokens.delete(await ground.token())


async def get_secret(ground: Ground) -> None:
    made = await ground.secret()
    assert (await ground.client.secrets.get(made.id)).name == "REACHED"


async def change_secret(ground: Ground) -> None:
    made = await ground.secret()
    assert (await ground.client.secrets.update(made.id, name="OTHER")).name == "OTHER"


async def delete_secret(ground: Ground) -> None:
    await ground.client.secrets.delete((await ground.secret()).id)
    assert not (await ground.client.secrets.list()).data


async def run_usage(ground: Ground) -> None:
    ground.platform.put_run("run_reached", RunTokens(1, 2, 3))
    assert (await ground.client.billing.run_usage("run_reached")).run_id == "run_reached"


async def connect(ground: Ground) -> None:
    assert (await ground.client.slurm.connection((await ground.cluster()).id)).connectable


async def list_members(ground: Ground) -> None:
    cluster = await ground.cluster()
    assert await ground.client.slurm.list_members(cluster.id, team_id=ground.team)


async def add_member(ground: Ground) -> None:
    cluster = await ground.cluster()
    await ground.client.slurm.add_member(cluster.id, "dan", [PUBLIC_KEY], team_id=ground.team)


async def remove_member(ground: Ground) -> None:
    cluster = await ground.cluster()
    await ground.client.slurm.remove_member(cluster.id, "carol", team_id=ground.team)


async def resize(ground: Ground) -> None:
    cluster = await ground.cluster()
    resized = await ground.client.slurm.resize(cluster.id, 7, team_id=ground.team)
    assert resized.num_nodes == 7


async def finish_login(ground: Ground) -> None:
    challenge = await ground.login.begin()
    ground.platform.approve_login(challenge.code)
    assert (await ground.login.finish(challenge, timeout=20)).user_name


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "list_gpu_availability": lambda ground: ground.client.availability.list_gpus(),
    "list_multinode_availability": lambda ground: ground.client.availability.list_multinode(),
    "list_disk_availability": lambda ground: ground.client.availability.list_disks(),
    "get_gpu_summary": lambda ground: ground.client.availability.gpu_summary(),
    "get_multinode_summary": lambda ground: ground.client.availability.multinode_summary(),
    "list_legacy_gpu_availability": lambda ground: ground.client.availability.list_legacy_gpus(),
    "list_legacy_cluster_availability": (
        lambda ground: ground.client.availability.list_legacy_clusters()
    ),
    "list_pods": lambda ground: ground.client.pods.list(),
    "create_pod": lambda ground: ground.pod(),
    "list_pod_history": lambda ground: ground.client.pods.history(),
    "get_pods_status": get_status,
    "get_pod": get_pod,
    "delete_pod": delete_pod,
    "get_pod_log": get_log,
    "list_disks": lambda ground: ground.client.disks.list(),
    "create_disk": lambda ground: ground.disk(),
    "get_disk": get_disk,
    "update_disk": rename_disk,
    "delete_disk": delete_disk,
    "list_ssh_keys": lambda ground: ground.client.ssh_keys.list(),
    "upload_ssh_key": lambda ground: ground.ssh_key(),
    "set_primary_ssh_key": set_primary,
    "delete_ssh_key": delete_key,
    "list_team_members": lambda ground: ground.client.teams.list_members(ground.team),
    "get_whoami": lambda ground: ground.client.account.whoami(),
    "list_my_teams": lambda ground: ground.client.teams.list(),
    "set_user_slug": lambda ground: ground.client.account.set_slug("reached"),
    "list_tokens": lambda ground: ground.client.tokens.list(),
    "delete_token": delete_token,
    "disable_token": disable_token,
    "list_secrets": lambda ground: ground.client.secrets.list(),
    "create_secret": lambda ground: ground.secret(),
    "get_secret": get_secret,
    "update_secret": change_secret,
    "delete_secret": delete_secret,
    "get_wallet": lambda ground: ground.client.billing.wallet(),
    "get_run_usage": run_usage,
    "submit_feedback": lambda ground: ground.client.feedback.submit("reached"),
    "list_slurm_clusters": lambda ground: ground.cluster(),
    "deploy_slurm_cluster": lambda ground: ground.client.slurm.deploy({}, team_id=ground.team),
    "get_slurm_connection": connect,
    "list_slurm_members": list_members,
    "add_slurm_member": add_member,
    "remove_slurm_member": remove_member,
    "resize_slurm_cluster": resize,
    "get_factory_status": lambda ground: ground.client.factory.status(ground.team),
    "get_factory_nodes": lambda ground: ground.client.factory.nodes(ground.team),
    "get_factory_utilization": lambda ground: ground.client.factory.utilization(ground.team),
    "list_factory_workloads": lambda ground: ground.client.factory.workloads(ground.team),
    "generate_auth_challenge": lambda ground: ground.login.begin(),
    "get_auth_challenge_status": finish_login,
}
