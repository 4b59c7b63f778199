"""Routes of disks."""

from __future__ import annotations

from prime_local.calls import Call, Handler, Reply
from prime_local.disks.registry import DiskRegistry
from prime_local.pods.routes import offset_page, owner_of


async def list_disks(call: Call) -> Reply:
    disks = _disks(call)
    return Reply(offset_page(call, disks.all(), disks.read))


async def create_disk(call: Call) -> Reply:
    wire = _disks(call).create(call.body, owner_of(call))
    await call.core.saved()
    return Reply(wire, 201)


async def get_disk(call: Call) -> Reply:
    disks = _disks(call)
    return Reply(disks.read(disks.get(call.parameters["disk_id"])))


async def update_disk(call: Call) -> Reply:
    disks = _disks(call)
    disk = disks.get(call.parameters["disk_id"])
    disks.rename(disk, call.body["name"])
    return Reply({"id": disk.id, "name": disk.name})


async def delete_disk(call: Call) -> Reply:
    disks = _disks(call)
    disks.delete(disks.get(call.parameters["disk_id"]))
    await call.core.saved()
    return Reply({"status": "TERMINATED"})


def _disks(call: Call) -> DiskRegistry:
    return call.core.rentals.disks


HANDLERS: dict[str, Handler] = {
    handler.__name__: handler
    for handler in (list_disks, create_disk, get_disk, update_disk, delete_disk)
}
