"""Routes of volumes."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.errors import PlatformError
from prime_local.s3.operations import PREFIX
from prime_local.sandboxes.record import Owner
from prime_local.training.volumes.leases import route_wire
from prime_local.training.volumes.paths import check_writable, clean_path, destinations
from prime_local.training.volumes.record import TrainingVolume
from prime_local.training.volumes.registry import TrainingVolumes


async def list_volumes(call: Call) -> Reply:
    volumes = _volumes(call)
    return Reply({"volumes": [volumes.wire(each) for each in volumes.all(_team(call))]})


async def create_volume(call: Call) -> Reply:
    volumes, owner = _volumes(call), Owner(call.core.user_id, _team(call))
    warm = call.body.get("warm", True)
    volume = volumes.create(call.body["name"], call.body["size"], owner, warm=warm)
    await call.core.saved()
    return Reply(volumes.wire(volume), 201)


async def expand_volume(call: Call) -> Reply:
    volume = _volume(call)
    _volumes(call).expand(volume, call.body["size"])
    await call.core.saved()
    return Reply(_volumes(call).wire(volume))


async def delete_volume(call: Call) -> Reply:
    volume = _volume(call)
    if volume.team_id is not None and call.assumptions.team_role == "member":
        raise PlatformError(403, "Only a team admin may delete a volume of the team")
    _volumes(call).delete(volume, call.fault.fails if call.fault else None)
    await call.core.saved()
    return Reply({}, 202)


async def get_volume_usage(call: Call) -> Reply:
    volumes = _volumes(call)
    every = volumes.all(_team(call))
    used = sum(volumes.used(volume)[0] for volume in every)
    return Reply({"usedBytes": used, "volumeCount": len(every)})


async def list_volume_sessions(call: Call) -> Reply:
    sessions = _volumes(call).sessions
    live = sessions.live(_volume(call).id)
    return Reply({"sessions": [sessions.wire(session) for session in live]})


async def create_volume_session(call: Call) -> Reply:
    volumes, volume = _volumes(call), _volume(call)
    read_only = call.body.get("readOnly", True)
    own = volumes.sessions.writable(volume.id)
    if read_only and call.body.get("allowWritable") and own is not None:
        return Reply(volumes.sessions.wire(own), 201)
    volumes.check_session(volume, read_only=read_only)
    wire = volumes.sessions.create(volume, read_only=read_only)
    await call.core.saved()
    return Reply(wire, 201)


async def get_volume_session(call: Call) -> Reply:
    sessions = _volumes(call).sessions
    return Reply(sessions.wire(sessions.get(call.parameters["session_id"], _volume(call).id)))


async def stop_volume_session(call: Call) -> Reply:
    sessions = _volumes(call).sessions
    sessions.stop(sessions.get(call.parameters["session_id"], _volume(call).id))
    await call.core.saved()
    return Reply({}, 202)


async def route_volume_transfer(call: Call) -> Reply:
    volumes, volume = _volumes(call), _volume(call)
    volumes.check_there(volume)
    path = clean_path(call.body["path"], volume.prefix)
    putting = call.body["mode"] == "put"
    paths = destinations(path, call.body.get("entries")) if putting else [path]
    own = volumes.sessions.writable(volume.id)
    if own is not None and volumes.sessions.is_ready(own) and path.split("/")[0] != "runs":
        return Reply({"via": "session", "session": volumes.sessions.wire(own)})
    lease, lease_id = None, call.body.get("leaseId")
    if not putting:
        key = volumes.leases.get_keys(volume, path)
    else:
        if lease_id is not None:
            lease = volumes.leases.refresh(lease_id, volume, paths)
        else:
            advice = "put through that session or end it first"
            volumes.check_free(volume, "has a live read-write SSH session", advice)
            lease = volumes.leases.begin(volume, paths)
        key = volumes.leases.put_keys(lease, volume)
    await call.core.saved()
    return Reply(route_wire(key, volume.prefix, _endpoint(call), lease))


async def release_volume_transfer(call: Call) -> Reply:
    _volumes(call).leases.release(call.body["leaseId"], _volume(call).id)
    await call.core.saved()
    return Reply(b"", 204)


async def create_bucket_transfer(call: Call) -> Reply:
    volumes, volume = _volumes(call), _volume(call)
    path = clean_path(call.body["path"], volume.prefix)
    if call.body["direction"] == "import":
        check_writable([path])
        advice = "end that session first"
        volumes.check_free(volume, "has a live read-write SSH session", advice)
    volumes.check_there(volume)
    asked = {**call.body, "path": path.rstrip("/")}
    transfer = volumes.transfers.create(volume, asked, _endpoint(call))
    wire = volumes.transfers.wire(transfer)
    await call.core.saved()
    return Reply(wire, 201)


async def list_bucket_transfers(call: Call) -> Reply:
    transfers = _volumes(call).transfers
    found = transfers.of(_volume(call).id)
    return Reply({"transfers": [transfers.wire(transfer) for transfer in found]})


async def get_bucket_transfer(call: Call) -> Reply:
    transfers = _volumes(call).transfers
    found = transfers.get(call.parameters["transfer_id"], _volume(call).id)
    return Reply(transfers.wire(found))


async def cancel_bucket_transfer(call: Call) -> Reply:
    transfers = _volumes(call).transfers
    transfers.cancel(transfers.get(call.parameters["transfer_id"], _volume(call).id))
    await call.core.saved()
    return Reply({}, 202)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        list_volumes,
        create_volume,
        expand_volume,
        delete_volume,
        get_volume_usage,
        list_volume_sessions,
        create_volume_session,
        get_volume_session,
        stop_volume_session,
        route_volume_transfer,
        release_volume_transfer,
        create_bucket_transfer,
        list_bucket_transfers,
        get_bucket_transfer,
        cancel_bucket_transfer,
    )
}


def _endpoint(call: Call) -> str:
    """Return where this caller reaches the storage."""
    return str(call.request.url.origin()) + PREFIX


def _volumes(call: Call) -> TrainingVolumes:
    return call.core.training_volumes


def _volume(call: Call) -> TrainingVolume:
    return _volumes(call).get(call.parameters["name"], _team(call))


def _team(call: Call) -> str | None:
    """Return the team that a request names, in its query or its body."""
    named = call.parameters if call.body is None else call.body
    team_id: str | None = named.get("teamId")
    return team_id or None
