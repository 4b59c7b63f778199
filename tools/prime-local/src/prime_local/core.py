"""The platform without its network side: everything it remembers and runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from prime_local.account.service import Account
from prime_local.availability.catalogue import Catalogue
from prime_local.checkpoints.archive import Archive
from prime_local.checkpoints.registry import KIND as CHECKPOINT
from prime_local.checkpoints.registry import CheckpointRegistry, Workshop
from prime_local.checkpoints.volumes import KIND as VOLUME
from prime_local.checkpoints.volumes import PART, VolumeRegistry
from prime_local.clock import PlatformClock
from prime_local.contract import ContractChecks, load_contract
from prime_local.faults import FaultRule, FaultRules
from prime_local.identifiers import Identifiers
from prime_local.images.kitchen import Kitchen, top_mount
from prime_local.images.record import Content
from prime_local.images.registry import BUILDS, IMAGES, Depot, ImageRegistry
from prime_local.inference.service import InferenceService
from prime_local.inference.upstream import Upstream
from prime_local.ledger import Ledger
from prime_local.limits import CreationLimits, RateLimits
from prime_local.networks.fabric import Fabric
from prime_local.networks.lans import LanNetworks
from prime_local.recording import Recording
from prime_local.refusals import Refusals
from prime_local.rentals import Rentals
from prime_local.s3.operations import NAMES as S3_NAMES
from prime_local.s3.service import S3Service
from prime_local.sandboxes.images import ImageBuilds
from prime_local.sandboxes.isolation.base import Box, ModeName, Mount
from prime_local.sandboxes.isolation.premises import Premises
from prime_local.sandboxes.life import Host, SandboxLife
from prime_local.sandboxes.record import Sandbox, Status
from prime_local.sandboxes.registry import SandboxRegistry
from prime_local.settings import Settings
from prime_local.slurm.registry import KIND as SLURM
from prime_local.slurm.registry import SlurmRegistry
from prime_local.ssh.sessions import SshSessions
from prime_local.storage import SqliteStorage, Storage
from prime_local.tasks import TaskSet
from prime_local.tokens import GatewayTokens
from prime_local.traces.service import TracesService
from prime_local.training.volumes.registry import TrainingVolumes

if TYPE_CHECKING:
    from prime_local.contract.protobuf import CommandMessages

_STORAGE_NAME = "platform.sqlite3"
_ARCHIVE_NAME = "checkpoints"
_IMAGES_NAME = "images"
_BUILDS_NAME = "builds"
_TRACES_NAME = "traces.sqlite3"
_S3_NAME = "s3"
_CLOSE_SECONDS = 2.5


class PlatformCore:
    """State and machinery of one platform, on the event loop that opened it."""

    def __init__(
        self,
        settings: Settings,
        faults: Iterable[FaultRule],
        premises: Premises,
        tasks: TaskSet,
        storage: Storage,
    ) -> None:
        self.settings = settings
        self._storage = storage
        self._premises = premises
        self.tasks = tasks
        self.contract = load_contract()
        self.checks = ContractChecks(self.contract)
        self._ahead = float(storage.facts.get("clock_ahead", 0.0))
        self.clock = PlatformClock(settings.clock_skew + self._ahead)
        self.identifiers = Identifiers(settings.seed)
        api_key, user_id = self.identifiers.make("pit_", 40), self.identifiers.make("usr_")
        self.api_key = storage.facts.get("api_key", api_key)
        self.user_id = storage.facts.get("user_id", user_id)
        self.refusals = Refusals(self.clock, settings.assumptions)
        self.faults = FaultRules([*self.contract.operations, *S3_NAMES])
        self.faults.add(faults)
        self.ssh_sessions = SshSessions(self.clock, self.identifiers)
        self.tokens = GatewayTokens(self.clock, self.identifiers, settings.token_lifetime)
        self.violations: list[str] = []
        self.lans = LanNetworks(self.clock, self.identifiers, storage)
        self.fabric = Fabric(
            self.clock,
            tasks,
            premises.isolation,
            self.lans,
            settings.network_delay,
            pretend=settings.assumptions.unenforced_rules == "applied",
        )
        self.isolation_mode = premises.isolation
        kept = settings.data_dir or premises.root
        self.traces = TracesService(
            kept / _TRACES_NAME, self.clock, self.user_id, settings.trace_index_delay
        )
        self._s3_folder = kept / _S3_NAME
        self._archive = Archive(kept / _ARCHIVE_NAME, premises.copier)
        self._image_archive = Archive(kept / _IMAGES_NAME, premises.copier)
        self._host = Host(
            clock=self.clock,
            identifiers=self.identifiers,
            isolation=premises.isolation,
            tasks=tasks,
            instance=premises.instance,
            builds=ImageBuilds(self.clock, self.identifiers, settings.image_build_time),
            start_delay=settings.start_delay,
            gateway_delay=settings.gateway_delay,
            retained_sessions=settings.assumptions.retained_sessions,
            begin_network=self.fabric.begin,
            content=self._content,
            hold=lambda content: self.images.hold(content),
            is_built=lambda reference: self.images.is_built(reference),
            box=self._box,
            session_retention=settings.assumptions.session_retention,
            on_change=storage.save,
            on_end=self._on_end,
        )
        upstream = settings.inference_upstream
        self._upstream = None if upstream is None else Upstream(upstream)
        self._begin(storage.records)

    @classmethod
    async def open(cls, settings: Settings, faults: Iterable[FaultRule] = ()) -> PlatformCore:
        """Make a platform, with what its data directory remembers of an earlier one.

        Raises:
            OSError: the data directory cannot be used, or another platform uses it.
            IsolationError: sandboxes cannot be isolated as asked.
        """
        tasks = TaskSet()
        premises = await Premises.open(settings.isolation, settings.data_dir, tasks)
        try:
            storage = Storage({}, (), {})
            if settings.data_dir is not None:
                storage = await SqliteStorage.open(settings.data_dir / _STORAGE_NAME)
            try:
                core = cls(settings, faults, premises, tasks, storage)
                await core.traces.store.open()
                try:
                    await core._take_over()
                except BaseException:
                    await core.traces.store.close()
                    raise
            except BaseException:
                await storage.close()
                raise
        except BaseException:
            await premises.close()
            raise
        return core

    async def _take_over(self) -> None:
        """End what an earlier platform of this data directory left, and leave word for the next."""
        earlier = self._storage.facts.get("instance")
        if earlier is not None:
            await self._premises.trees.kill(earlier)
        for record in self._storage.records:
            if record.live:
                record.status = Status.ERROR
                record.error_type = "PLATFORM_RESTARTED"
                record.error_message = "The local platform died, and the sandbox with it"
                record.updated_at = record.terminated_at = self.clock.date()
                self._storage.save(record)
        objects = self._storage.objects
        await self.checkpoints.take_over(objects.get(CHECKPOINT, {}).values())
        self.rentals.take_over(objects)
        self.account.take_over(objects)
        self.slurm.take_over(objects.get(SLURM, {}).values())
        self.volumes.take_over(objects.get(VOLUME, {}).values())
        await self.images.take_over(
            objects.get(IMAGES, {}).values(), objects.get(BUILDS, {}).values()
        )
        await self.s3.take_over(objects)
        self.training_volumes.take_over(objects)
        self.recording.take_over(objects)
        self._storage.save_facts(
            api_key=self.api_key, user_id=self.user_id, instance=self._premises.instance
        )
        await self._storage.written()

    @property
    def isolation(self) -> ModeName:
        """How sandboxes are isolated."""
        return self._premises.isolation.name

    @cached_property
    def messages(self) -> CommandMessages:
        """The gateway's messages, first made for the first command: protobuf loads slowly."""
        from prime_local.contract.protobuf import CommandMessages

        return CommandMessages(self.contract)

    def _begin(self, stored: Iterable[Sandbox] = ()) -> None:
        settings = self.settings
        account = self.contract.operations["create_sandbox"].spec["x-account-limits"]
        self.ledger = Ledger()
        self.catalogue = Catalogue(
            settings.seed or 0, steps_from_zero=settings.assumptions.step_anchor == "zero"
        )
        self.rates = RateLimits(
            self.clock, self.refusals, documented=settings.limits, older=settings.strict_limits
        )
        self.limits = CreationLimits(self.clock, self.refusals, account, enabled=settings.limits)
        self.rentals = Rentals(
            self.clock,
            self.identifiers,
            self._storage,
            self.ledger,
            self.catalogue,
            settings.rentals,
        )
        self.account = Account(
            self.clock,
            self.identifiers,
            self._storage,
            user_id=self.user_id,
            api_key=self.api_key,
            role=settings.assumptions.team_role,
        )
        self.s3 = S3Service(
            self._s3_folder, self.clock, self.identifiers, self._storage, self.tasks
        )
        self.training_volumes = TrainingVolumes(
            self.clock,
            self.identifiers,
            self._storage,
            self.account,
            self.rentals.wallets,
            self.s3,
            settings.volume_time,
            self.ledger.training_volumes,
        )
        self.slurm = SlurmRegistry(
            self.clock,
            self.identifiers,
            self._storage,
            self.account.people,
            self.rentals.pace,
        )
        self.inference = InferenceService(
            self.refusals, self.rentals.wallets, self.ledger.inference, self._upstream
        )
        workshop = self._workshop()
        self.checkpoints = CheckpointRegistry(workshop, self._live)
        self.volumes = VolumeRegistry(workshop, self.checkpoints, self.isolation_mode, self._live)
        self.images = ImageRegistry(self._depot())
        self.recording = Recording(
            self.clock,
            self.identifiers,
            self._storage,
            self.user_id,
            self.account.people.lab.id,
            self.rentals,
            self.training_volumes,
            settings.rollout_time,
            settings.training,
            self.ledger.runs,
        )
        self.sandboxes = SandboxRegistry(
            self._host,
            self.limits,
            self.ledger,
            settings.assumptions,
            self.volumes.attach,
            self.checkpoints.to_restore,
            stored,
        )

    def _workshop(self) -> Workshop:
        settings = self.settings
        return Workshop(
            clock=self.clock,
            identifiers=self.identifiers,
            tasks=self.tasks,
            storage=self._storage,
            archive=self._archive,
            making_time=settings.checkpoint_time,
            removal_time=settings.removal_time,
            unfinished=settings.assumptions.unfinished_checkpoint,
            layout=self.isolation,
        )

    def _live(self) -> Iterable[Sandbox]:
        return self.sandboxes.live()

    def _depot(self) -> Depot:
        settings, premises = self.settings, self._premises
        return Depot(
            clock=self.clock,
            identifiers=self.identifiers,
            tasks=self.tasks,
            storage=self._storage,
            archive=self._image_archive,
            kitchen=Kitchen(self.isolation_mode, self._image_archive, premises.instance),
            folder=premises.root / _BUILDS_NAME,
            build_time=settings.image_build_time,
            assumptions=settings.assumptions,
            user_id=self.user_id,
            limited=settings.limits,
        )

    def _content(self, sandbox: Sandbox) -> Content | None:
        content = self.images.content(sandbox.docker_image)
        # The files of a restore come from its checkpoint, whether the image is still there or not.
        return content or (None if sandbox.checkpoint_id is None else Content())

    def _box(self, sandbox: Sandbox, content: Content) -> Box:
        folder = self._archive.folder
        files, image = None, None
        if content.folder is not None:
            image = files = self._image_archive.folder(content.folder)
        if sandbox.checkpoint_id is not None:
            files = folder(sandbox.checkpoint_id)
        tops = [top_mount(top, image / top) for top in content.tops if image is not None]
        return Box(
            sandbox.id,
            sandbox.resources,
            files=files,
            mounts=(
                *tops,
                *(
                    Mount(
                        attached.name,
                        attached.path,
                        attached.read_only,
                        files=None if attached.base is None else folder(attached.base) / PART,
                    )
                    for attached in sandbox.attachments
                ),
            ),
        )

    async def reset(self) -> None:
        """End every sandbox and forget all but the API key and the time."""
        ended = self.sandboxes.clear()
        self.volumes.clear()
        checkpoints, images, recording = self.checkpoints, self.images, self.recording
        self.faults.clear()
        self._host.builds.clear()
        self.lans.clear()
        self.rentals.clear()
        recording.clear()
        self.slurm.clear()
        self.training_volumes.clear()
        self.s3.store.clear()
        self._storage.clear()
        self._begin()
        await recording.close()
        await asyncio.gather(
            checkpoints.clear(), images.clear(), self.traces.clear(), self._gone(ended)
        )

    def name_sandboxes(self, ids: Sequence[str]) -> None:
        """Give the sandboxes that are created next these ids, in this order.

        Raises:
            ValueError: an id that is taken, given twice, or unfit to name a folder.
        """
        self.sandboxes.name_next(ids)

    def pause(self, sandbox_id: str) -> None:
        """Move a sandbox from RUNNING to PAUSED.

        Raises:
            ValueError: it is not RUNNING, or unknown.
        """
        life = self.sandboxes.find(sandbox_id)
        if life is None or not life.pause():
            raise ValueError(f"{sandbox_id} is not RUNNING")

    def resume(self, sandbox_id: str) -> None:
        """Move a sandbox from PAUSED to RUNNING.

        Raises:
            ValueError: it is not PAUSED, or unknown.
        """
        life = self.sandboxes.find(sandbox_id)
        if life is None or not life.resume():
            raise ValueError(f"{sandbox_id} is not PAUSED")

    async def advance(self, seconds: float) -> None:
        """Move the clock forward; what that ends is gone when this returns."""
        self.clock.advance(seconds)
        self._storage.save_facts(clock_ahead=str(self._ahead + self.clock.advanced))
        await self.sandboxes.settle()
        await self.fabric.settle()
        await self.recording.runs.settle()

    async def close(self) -> None:
        """End every sandbox, kill what is left of them and delete its files.

        Takes at most about 5 s.
        """
        self.fabric.close()
        ended = self.sandboxes.clear("platform_stopped")
        self.clock.close()
        async with contextlib.AsyncExitStack() as rest:
            rest.push_async_callback(self._premises.close)
            rest.push_async_callback(self._storage.close)
            rest.push_async_callback(self.traces.store.close)
            rest.push_async_callback(self.tasks.close, 1.0)
            rest.push_async_callback(self.recording.close)
            if self._upstream is not None:
                rest.push_async_callback(self._upstream.close)
            with contextlib.suppress(asyncio.TimeoutError):
                ends = asyncio.gather(self._gone(ended), self.images.stop())
                await asyncio.wait_for(ends, _CLOSE_SECONDS)

    async def saved(self) -> None:
        """Wait until everything that happened so far would survive a crash."""
        await self._storage.written()

    async def _gone(self, lives: Iterable[SandboxLife]) -> None:
        await asyncio.gather(*(life.gone() for life in lives))

    def _on_end(self, sandbox: Sandbox, deleted: bool) -> None:
        self.ledger.sandboxes.ended(deleted=deleted)
        self.limits.release(sandbox.resources)
        self.tokens.revoke(sandbox.id)
        self.fabric.forget(sandbox.id)
        self.ssh_sessions.end_all_of(sandbox.id)
        self.checkpoints.source_ended(sandbox)
