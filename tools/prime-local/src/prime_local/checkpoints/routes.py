"""Routes of checkpoints and volumes."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.checkpoints.record import Checkpoint, Volume
from prime_local.contract.document import JsonObject
from prime_local.control import life_of, scope_of
from prime_local.errors import PlatformError


async def create_checkpoint(call: Call) -> Reply:
    core = call.core
    record = core.sandboxes.running(call.parameters["sandbox_id"]).record
    wire = await core.checkpoints.make(
        record,
        core.isolation_mode.parts(record.id),
        disk_size_gb=record.resources.disk,
        parent_id=record.checkpoint_id,
        failure=_failure(call),
    )
    await core.saved()
    return Reply(wire)


async def list_checkpoints(call: Call) -> Reply:
    life = life_of(call)
    only = call.parameters.get("checkpoint_id")
    found = call.core.checkpoints.of_sandbox(life.record.id)
    wanted = [checkpoint for checkpoint in found if only in (None, checkpoint.id)]
    return Reply({"checkpoints": [call.core.checkpoints.wire(each) for each in wanted]})


async def delete_sandbox_checkpoints(call: Call) -> Reply:
    checkpoints = call.core.checkpoints
    life = life_of(call)
    deleted: list[str] = []
    errors: list[JsonObject] = []
    for checkpoint in checkpoints.of_sandbox(life.record.id):
        reason = checkpoints.hold(checkpoint)
        if reason is None:
            await checkpoints.remove(checkpoint)
            deleted.append(checkpoint.id)
        else:
            error = {"code": "CONFLICT", "message": reason}
            errors.append({"checkpoint_id": checkpoint.id, **error})
    await call.core.saved()
    return Reply({"deleted": deleted, "errors": errors})


async def get_checkpoint(call: Call) -> Reply:
    return Reply(call.core.checkpoints.wire(_checkpoint(call)))


async def delete_checkpoint(call: Call) -> Reply:
    core, checkpoint = call.core, _checkpoint(call)
    reason = core.checkpoints.hold(checkpoint)
    if reason is None and core.volumes.has_as_head(checkpoint):
        reason = "The checkpoint is the present version of a volume"
    if reason is not None:
        raise PlatformError(409, reason)
    await core.checkpoints.remove(checkpoint)
    await core.saved()
    return Reply({"success": True, "message": "Checkpoint deleted"})


async def batch_get_checkpoints(call: Call) -> Reply:
    checkpoints = call.core.checkpoints
    found: list[JsonObject] = []
    errors: list[JsonObject] = []
    for checkpoint_id in call.body["checkpoint_ids"]:
        checkpoint = checkpoints.find(checkpoint_id)
        if checkpoint is None:
            error = {"code": "NOT_FOUND", "message": "Checkpoint not found"}
            errors.append({"checkpoint_id": checkpoint_id, **error})
        else:
            found.append(checkpoints.wire(checkpoint))
    return Reply({"checkpoints": found, "errors": errors})


async def create_sandbox_volume(call: Call) -> Reply:
    volume = call.core.volumes.create(call.body["name"], scope_of(call, call.body))
    await call.core.saved()
    return Reply(_single(call, volume), 201)


async def list_sandbox_volumes(call: Call) -> Reply:
    volumes, owner = call.core.volumes, scope_of(call, call.parameters)
    page, per_page = call.parameters["page"], call.parameters["per_page"]
    first, last = (page - 1) * per_page, page * per_page
    found = volumes.select(owner)
    used_bytes, limit_gb = volumes.account(owner)
    return Reply(
        {
            "volumes": [
                volume.to_wire(volumes.occupied_bytes(volume)) for volume in found[first:last]
            ],
            "total": len(found),
            "page": page,
            "per_page": per_page,
            "has_next": last < len(found),
            "storage_used_bytes": used_bytes,
            "storage_limit_gb": limit_gb,
        }
    )


async def get_sandbox_volume(call: Call) -> Reply:
    return Reply(_single(call, _volume(call)))


async def delete_sandbox_volume(call: Call) -> Reply:
    volume = _volume(call)
    if volume.owner.team_id is not None and call.assumptions.team_role != "admin":
        raise PlatformError(403, "Team admin required")
    try:
        await call.core.volumes.delete(volume)
    finally:
        await call.core.saved()
    return Reply(b"", 204)


async def publish_sandbox_volume(call: Call) -> Reply:
    core = call.core
    life = core.sandboxes.running(call.parameters["sandbox_id"])
    wire = await core.volumes.publish(
        life,
        call.parameters["name"],
        force=call.body.get("force", False),
        failure=_failure(call),
    )
    await core.saved()
    return Reply(wire)


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (
        create_checkpoint,
        list_checkpoints,
        delete_sandbox_checkpoints,
        get_checkpoint,
        delete_checkpoint,
        batch_get_checkpoints,
        create_sandbox_volume,
        list_sandbox_volumes,
        get_sandbox_volume,
        delete_sandbox_volume,
        publish_sandbox_volume,
    )
}


def _checkpoint(call: Call) -> Checkpoint:
    return call.core.checkpoints.get(call.parameters["checkpoint_id"])


def _volume(call: Call) -> Volume:
    return call.core.volumes.get(call.parameters["name"], scope_of(call, call.parameters))


def _failure(call: Call) -> str | None:
    """Return the error that a fault rule wants the work to end with."""
    return None if call.fault is None else call.fault.fails


def _single(call: Call, volume: Volume) -> JsonObject:
    volumes = call.core.volumes
    used_bytes, limit_gb = volumes.account(volume.owner)
    return {
        **volume.to_wire(volumes.occupied_bytes(volume)),
        "account_storage_used_bytes": used_bytes,
        "account_storage_limit_gb": limit_gb,
    }
