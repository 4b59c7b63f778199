"""All volumes of a platform: creating, attaching, publishing and deleting them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from prime_local.checkpoints.mounts import mount_problems
from prime_local.checkpoints.record import Checkpoint, State, Volume, dump, load
from prime_local.checkpoints.registry import CheckpointRegistry, Workshop
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError, invalid, not_simulated
from prime_local.sandboxes.isolation.base import Isolation
from prime_local.sandboxes.isolation.filling import VOLUME_GIB
from prime_local.sandboxes.life import SandboxLife
from prime_local.sandboxes.record import Attachment, Owner, Sandbox

KIND = "volume"
# The name of a volume's only folder in its checkpoints.
PART = "volume"
# A plausible figure; nothing enforces it.
_STORAGE_LIMIT_GB = 500
_BEING_REMOVED = "Volume data is being removed"


class VolumeRegistry:
    """Every volume since the last reset.

    Args:
        workshop: what it takes to make checkpoints.
        checkpoints: the versions of volumes, among others.
        isolation: knows where sandboxes keep their copies.
        live: the sandboxes that have not ended.
    """

    def __init__(
        self,
        workshop: Workshop,
        checkpoints: CheckpointRegistry,
        isolation: Isolation,
        live: Callable[[], Iterable[Sandbox]],
    ) -> None:
        self._workshop = workshop
        self._checkpoints = checkpoints
        self._isolation = isolation
        self._live = live
        self._volumes: dict[str, Volume] = {}
        self._publishing: set[str] = set()

    def take_over(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an earlier platform kept."""
        for kept in stored:
            volume = load(Volume, kept)
            self._volumes[volume.id] = volume

    def create(self, name: str, owner: Owner) -> Volume:
        """Create an empty volume.

        Raises:
            PlatformError: 409 when the owner has one of this name.
        """
        if self._find(name, owner) is not None:
            raise PlatformError(409, "A volume with this name already exists in this scope")
        shop = self._workshop
        while (volume_id := shop.identifiers.make("vol_")) in self._volumes:
            pass
        volume = Volume(volume_id, name, owner, shop.clock.date())
        self._volumes[volume.id] = volume
        self._save(volume)
        return volume

    def get(self, name: str, owner: Owner) -> Volume:
        """Return a volume of an owner.

        Raises:
            PlatformError: 404.
        """
        volume = self._find(name, owner)
        if volume is None:
            raise PlatformError(404, "Volume not found")
        return volume

    def select(self, owner: Owner) -> list[Volume]:
        """Return the volumes of an owner, oldest first."""
        return [volume for volume in self._volumes.values() if volume.owner == owner]

    def attach(self, mounts: Sequence[JsonObject], owner: Owner) -> tuple[Attachment, ...]:
        """Return the attachments of a new sandbox, each based on its volume's present head.

        Args:
            mounts: `VolumeMount` objects of the contract.
            owner: whose the sandbox is; it sees the volumes of the same scope.

        Raises:
            PlatformError: 404, 409, 422, or 501 where the isolation mode cannot mount one.
        """
        if problems := mount_problems(mounts):
            raise invalid(problems)
        return tuple(self._attach(mount, owner) for mount in mounts)

    async def publish(
        self, life: SandboxLife, name: str, *, force: bool, failure: str | None
    ) -> JsonObject:
        """Make a sandbox's copy of a volume the volume's new head, once that is DURABLE.

        Args:
            life: the sandbox; it runs.
            name: the volume.
            force: also when the head is not the one that the copy was taken from.
            failure: makes it fail with this error.

        Returns the wire form of the unfinished checkpoint.

        Raises:
            PlatformError: 400, 404 or 409.
        """
        attachment = _attached(life.record, name)
        volume = self._volumes[attachment.volume_id]
        if volume.id in self._publishing:
            raise PlatformError(409, "Another sandbox is publishing this volume")
        if attachment.base != volume.head and not force:
            text = "The volume's checkpoint has advanced since this sandbox attached it"
            raise PlatformError(409, f"{text}; publish with force to replace its contents")
        self._publishing.add(volume.id)
        return await self._checkpoints.make(
            life.record,
            {PART: self._isolation.volume(life.record.id, name)},
            disk_size_gb=VOLUME_GIB,
            parent_id=attachment.base,
            volume_id=volume.id,
            failure=failure,
            on_end=partial(self._published, volume, life),
        )

    async def delete(self, volume: Volume) -> None:
        """Delete a volume and its versions.

        Raises:
            PlatformError: 409 while a live sandbox has it, 503 while its data is being removed.
        """
        if any(each.volume_id == volume.id for live in self._live() for each in live.attachments):
            raise PlatformError(409, "Volume is mounted by one or more sandboxes")
        volume.removing, volume.head = True, None
        self._save(volume)
        for checkpoint in self._checkpoints.of_volume(volume.id):
            await self._checkpoints.remove(checkpoint)
        if self._checkpoints.of_volume(volume.id):
            raise PlatformError(503, _BEING_REMOVED)
        # Two deletes at once both come here.
        self._volumes.pop(volume.id, None)
        self._workshop.storage.save_object(KIND, volume.id, None)

    def has_as_head(self, checkpoint: Checkpoint) -> bool:
        """Say whether a checkpoint is the present version of a volume."""
        return any(volume.head == checkpoint.id for volume in self._volumes.values())

    def occupied_bytes(self, volume: Volume) -> int:
        """Return how much data the present version of a volume holds."""
        head = self._checkpoints.find(volume.head) if volume.head is not None else None
        return 0 if head is None else head.occupied_bytes

    def account(self, owner: Owner) -> tuple[int, int]:
        """Return how many bytes an owner's checkpoints hold, and how many GiB they may."""
        return self._checkpoints.used_bytes(owner), _STORAGE_LIMIT_GB

    def clear(self) -> None:
        """Forget every volume, at a reset."""
        self._volumes.clear()

    def _find(self, name: str, owner: Owner) -> Volume | None:
        found = (
            each for each in self._volumes.values() if (each.name, each.owner) == (name, owner)
        )
        return next(found, None)

    def _attach(self, mount: JsonObject, owner: Owner) -> Attachment:
        name, path = mount["name"], mount["mount_path"]
        refusal = self._isolation.mount_refusal(path)
        if refusal is not None:
            raise not_simulated(f"create_sandbox with a volume at {path} ({refusal})")
        volume = self.get(name, owner)
        if volume.removing:
            raise PlatformError(409, _BEING_REMOVED)
        return Attachment(volume.id, name, path, mount.get("read_only", False), volume.head)

    def _published(self, volume: Volume, life: SandboxLife, checkpoint: Checkpoint) -> None:
        self._publishing.discard(volume.id)
        if checkpoint.state is not State.DURABLE:
            return
        volume.head = checkpoint.id
        self._save(volume)
        life.attach(
            tuple(
                replace(each, base=checkpoint.id) if each.volume_id == volume.id else each
                for each in life.record.attachments
            )
        )

    def _save(self, volume: Volume) -> None:
        self._workshop.storage.save_object(KIND, volume.id, dump(volume))


def _attached(sandbox: Sandbox, name: str) -> Attachment:
    for attachment in sandbox.attachments:
        if attachment.name == name:
            if attachment.read_only:
                raise PlatformError(400, "Read-only attachments cannot publish")
            return attachment
    raise PlatformError(404, "Volume is not attached to this sandbox")
