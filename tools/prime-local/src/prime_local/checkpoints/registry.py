"""All checkpoints of a platform: making, reading and deleting them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prime_local.checkpoints.archive import Archive
from prime_local.checkpoints.record import Checkpoint, State, dump, load
from prime_local.clock import PlatformClock, Timer
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError, invalid, not_simulated
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.copying import CopyError
from prime_local.sandboxes.isolation.base import ModeName
from prime_local.sandboxes.isolation.filling import GIB
from prime_local.sandboxes.record import Owner, Sandbox
from prime_local.storage import Storage
from prime_local.tasks import TaskSet

KIND = "checkpoint"
_DIED = "The local platform ended before the checkpoint was durable"
_SOURCE_ENDED = "The sandbox ended before its checkpoint was durable"


@dataclass(frozen=True)
class Workshop:
    """What it takes to make and remove checkpoints.

    Args:
        making_time: seconds on the platform clock from the copy of the files to DURABLE.
        removal_time: seconds on the platform clock that a checkpoint is DELETING.
        unfinished: wire name of the state before DURABLE and FAILED.
        layout: the isolation mode of the sandboxes.
    """

    clock: PlatformClock
    identifiers: Identifiers
    tasks: TaskSet
    storage: Storage
    archive: Archive
    making_time: float
    removal_time: float
    unfinished: str
    layout: ModeName


@dataclass
class _Making:
    """A checkpoint on its way; `failure` is what it will end with, `on_end` is told of its end."""

    checkpoint: Checkpoint
    failure: str | None
    on_end: Callable[[Checkpoint], None]
    stop: threading.Event = field(default_factory=threading.Event)
    copied: bool = False
    timer: Timer | None = None


class CheckpointRegistry:
    """Every checkpoint since the last reset, those of volumes included.

    Args:
        workshop: what it takes to make them.
        live: the sandboxes that have not ended.
    """

    def __init__(self, workshop: Workshop, live: Callable[[], Iterable[Sandbox]]) -> None:
        self._workshop = workshop
        self._live = live
        self._records: dict[str, Checkpoint] = {}
        self._making: dict[str, _Making] = {}

    async def take_over(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take over what an earlier platform kept; what it had not finished has failed."""
        for kept in stored:
            checkpoint = load(Checkpoint, kept)
            if checkpoint.state is State.DELETING:
                self._workshop.storage.save_object(KIND, checkpoint.id, None)
                continue
            self._records[checkpoint.id] = checkpoint
            if checkpoint.state is State.UNFINISHED:
                self._enter(checkpoint, State.FAILED, _DIED)
        durable = {each.id for each in self._records.values() if each.state is State.DURABLE}
        await self._workshop.archive.drop_all_but(durable)

    async def make(
        self,
        sandbox: Sandbox,
        parts: Mapping[str, Path],
        *,
        disk_size_gb: float,
        parent_id: str | None,
        volume_id: str | None = None,
        failure: str | None = None,
        on_end: Callable[[Checkpoint], None] = lambda checkpoint: None,
    ) -> JsonObject:
        """Copy some files of a running sandbox; time then makes it DURABLE.

        Args:
            sandbox: the source.
            parts: the folders to copy, by the names to keep them under.
            disk_size_gb: the most that they may hold, in GiB.
            parent_id: the checkpoint that the files grew from.
            volume_id: the volume that they are a version of.
            failure: makes it FAILED with this error.
            on_end: told when it is DURABLE or FAILED.

        Returns the wire form of the checkpoint, unfinished, as soon as the files are copied.
        """
        shop = self._workshop
        parent = self._records.get(parent_id) if parent_id is not None else None
        now = shop.clock.date()
        checkpoint = Checkpoint(
            id=self._new_id(),
            owner=sandbox.owner,
            sandbox_id=sandbox.id,
            volume_id=volume_id,
            parent_id=parent_id,
            depth=1 if parent is None else parent.depth + 1,
            docker_image=sandbox.docker_image,
            disk_size_gb=disk_size_gb,
            layout=shop.layout,
            created_at=now,
            updated_at=now,
        )
        self._records[checkpoint.id] = checkpoint
        self._save(checkpoint)
        making = self._making[checkpoint.id] = _Making(checkpoint, failure, on_end)
        # A task of the platform's: a caller that hangs up must not leave half a checkpoint.
        return await asyncio.shield(shop.tasks.start(self._copy(making, parts)))

    def find(self, checkpoint_id: str) -> Checkpoint | None:
        return self._records.get(checkpoint_id)

    def get(self, checkpoint_id: str) -> Checkpoint:
        """Return a checkpoint.

        Raises:
            PlatformError: 404.
        """
        checkpoint = self.find(checkpoint_id)
        if checkpoint is None:
            raise PlatformError(404, "Checkpoint not found")
        return checkpoint

    def to_restore(self, checkpoint_id: str) -> Checkpoint:
        """Return a checkpoint that a new sandbox can start from.

        Raises:
            PlatformError: 404, 409 before it is DURABLE, 422 for a volume's, 501 for one of
                another isolation mode.
        """
        checkpoint = self.get(checkpoint_id)
        if checkpoint.volume_id is not None:
            problem = "The checkpoint is a volume's and holds no root filesystem"
            raise invalid([Problem(("body", "checkpoint_id"), problem, "value_error")])
        if checkpoint.state is not State.DURABLE:
            raise PlatformError(409, f"Checkpoint is not durable ({self._state_name(checkpoint)})")
        if checkpoint.layout != self._workshop.layout:
            raise not_simulated(
                f"create_sandbox in isolation {self._workshop.layout} from a checkpoint"
                f" of isolation {checkpoint.layout}"
            )
        return checkpoint

    def of_sandbox(self, sandbox_id: str) -> list[Checkpoint]:
        """Return the checkpoints of a sandbox's root filesystem, oldest first."""
        return [
            each
            for each in self._records.values()
            if each.sandbox_id == sandbox_id and each.volume_id is None
        ]

    def of_volume(self, volume_id: str) -> list[Checkpoint]:
        """Return the versions of a volume, oldest first."""
        return [each for each in self._records.values() if each.volume_id == volume_id]

    def used_bytes(self, owner: Owner) -> int:
        """Return how much data the checkpoints of an owner hold."""
        return sum(each.occupied_bytes for each in self._records.values() if each.owner == owner)

    def wire(self, checkpoint: Checkpoint) -> JsonObject:
        """Return the contract's form of a checkpoint."""
        return checkpoint.to_wire(self._workshop.unfinished)

    def hold(self, checkpoint: Checkpoint) -> str | None:
        """Say why a checkpoint cannot be deleted; None when it can."""
        if checkpoint.state is State.UNFINISHED:
            return f"Checkpoint is {self._workshop.unfinished.lower()}"
        for sandbox in self._live():
            bases = (attachment.base for attachment in sandbox.attachments)
            if checkpoint.id in (sandbox.checkpoint_id, *bases):
                return "A live sandbox builds on this checkpoint"
        return None

    async def remove(self, checkpoint: Checkpoint) -> None:
        """Remove a checkpoint that nothing holds; it is DELETING for a time, if so set."""
        if checkpoint.state is State.DELETING:
            return
        self._enter(checkpoint, State.DELETING, checkpoint.error)
        shop = self._workshop
        if shop.removal_time:

            def forget() -> None:
                shop.tasks.start(self._forget(checkpoint))

            shop.clock.call_later(shop.removal_time, forget)
        else:
            await self._forget(checkpoint)

    def source_ended(self, sandbox: Sandbox) -> None:
        """Fail what was being made from a sandbox that has ended."""
        for making in list(self._making.values()):
            if making.checkpoint.sandbox_id == sandbox.id:
                making.failure = _SOURCE_ENDED
                making.stop.set()
                if making.timer is not None:
                    making.timer.cancel()
                self._end(making)

    async def clear(self) -> None:
        """Forget every checkpoint, at a reset; the sandboxes have ended."""
        self._records.clear()
        await self._workshop.archive.drop_all_but(())

    async def _copy(self, making: _Making, parts: Mapping[str, Path]) -> JsonObject:
        shop, checkpoint = self._workshop, making.checkpoint
        most_bytes = int(checkpoint.disk_size_gb * GIB)
        try:
            checkpoint.occupied_bytes = await shop.archive.keep(
                checkpoint.id, parts, most_bytes, making.stop
            )
        except CopyError as error:
            making.failure = making.failure or str(error)
        making.copied = True
        answer = self.wire(checkpoint)
        if checkpoint.state is State.UNFINISHED:
            making.timer = shop.clock.call_later(shop.making_time, lambda: self._end(making))
        else:
            await shop.archive.drop(checkpoint.id)
        return answer

    def _end(self, making: _Making) -> None:
        checkpoint = making.checkpoint
        del self._making[checkpoint.id]
        if making.failure is None:
            self._enter(checkpoint, State.DURABLE)
        else:
            checkpoint.occupied_bytes = 0
            self._enter(checkpoint, State.FAILED, making.failure)
            if making.copied:
                self._workshop.tasks.start(self._workshop.archive.drop(checkpoint.id))
        making.on_end(checkpoint)

    async def _forget(self, checkpoint: Checkpoint) -> None:
        await self._workshop.archive.drop(checkpoint.id)
        if self._records.pop(checkpoint.id, None) is not None:
            self._workshop.storage.save_object(KIND, checkpoint.id, None)

    def _enter(self, checkpoint: Checkpoint, state: State, error: str | None = None) -> None:
        checkpoint.state, checkpoint.error = state, error
        checkpoint.updated_at = self._workshop.clock.date()
        self._save(checkpoint)

    def _save(self, checkpoint: Checkpoint) -> None:
        if checkpoint.id in self._records:
            self._workshop.storage.save_object(KIND, checkpoint.id, dump(checkpoint))

    def _state_name(self, checkpoint: Checkpoint) -> str:
        return str(self.wire(checkpoint)["state"])

    def _new_id(self) -> str:
        # A seeded platform with a data directory draws the names of its earlier runs again.
        while (checkpoint_id := self._workshop.identifiers.make("ckpt_")) in self._records:
            pass
        return checkpoint_id
