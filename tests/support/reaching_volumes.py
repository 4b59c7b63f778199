"""For each operation of training volumes: how a user's program comes to call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pydantic import SecretStr

from prime_train import BucketCredentials, BucketTransfer, Volume, VolumeSession

if TYPE_CHECKING:
    from reaching_training import Ground

NAME = "reached"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIexample ada"


async def volume(ground: Ground, team_id: str | None = None) -> Volume:
    return await ground.client.volumes.create(NAME, "1Gi", team_id=team_id)


async def list_volumes(ground: Ground) -> None:
    made = await volume(ground)
    assert await ground.client.volumes.list() == [made]


async def expand(ground: Ground) -> None:
    await volume(ground)
    assert (await ground.client.volumes.expand(NAME, "2Gi")).size == "2Gi"


async def delete(ground: Ground) -> None:
    await volume(ground)
    await ground.client.volumes.delete(NAME)


async def session(ground: Ground) -> tuple[str, VolumeSession]:
    """A session, and the team that has it: one that owns a cluster."""
    await ground.compute.ssh_keys.upload("reached", KEY)
    team = (await ground.compute.teams.list()).data[0].team_id
    await volume(ground, team)
    made = await ground.client.volumes.sessions.create(NAME, team_id=team)
    return team, made


async def list_sessions(ground: Ground) -> None:
    team, made = await session(ground)
    (found,) = await ground.client.volumes.sessions.list(NAME, team_id=team)
    assert found.id == made.id


async def get_session(ground: Ground) -> None:
    team, made = await session(ground)
    await ground.client.volumes.sessions.wait_until_ready(NAME, made.id, team_id=team)


async def stop_session(ground: Ground) -> None:
    team, made = await session(ground)
    await ground.client.volumes.sessions.stop(NAME, made.id, team_id=team)


async def route(ground: Ground) -> str:
    await volume(ground)
    found = await ground.client.volumes.route_transfer(NAME, "put", "data/")
    assert found.lease_id is not None
    return found.lease_id


async def release(ground: Ground) -> None:
    await ground.client.volumes.release_transfer(NAME, await route(ground))


async def transfer(ground: Ground) -> BucketTransfer:
    await volume(ground)
    keys = ground.platform.add_bucket("mine")
    credentials = BucketCredentials(
        access_key_id=keys["access_key_id"],
        secret_access_key=SecretStr(keys["secret_access_key"]),
    )
    return await ground.client.volumes.bucket_transfers.create(
        NAME, "import", "data", "s3://mine", credentials, endpoint_url=keys["endpoint"]
    )


async def list_transfers(ground: Ground) -> None:
    made = await transfer(ground)
    (found,) = await ground.client.volumes.bucket_transfers.list(NAME)
    assert found.id == made.id


async def get_transfer(ground: Ground) -> None:
    made = await transfer(ground)
    await ground.client.volumes.bucket_transfers.wait(NAME, made.id)


async def cancel_transfer(ground: Ground) -> None:
    made = await transfer(ground)
    await ground.client.volumes.bucket_transfers.cancel(NAME, made.id)


REACH: dict[str, Callable[[Ground], Awaitable[object]]] = {
    "list_volumes": list_volumes,
    "create_volume": volume,
    "expand_volume": expand,
    "delete_volume": delete,
    "get_volume_usage": lambda ground: ground.client.volumes.usage(),
    "list_volume_sessions": list_sessions,
    "create_volume_session": session,
    "get_volume_session": get_session,
    "stop_volume_session": stop_session,
    "route_volume_transfer": route,
    "release_volume_transfer": release,
    "create_bucket_transfer": transfer,
    "list_bucket_transfers": list_transfers,
    "get_bucket_transfer": get_transfer,
    "cancel_bucket_transfer": cancel_transfer,
}
