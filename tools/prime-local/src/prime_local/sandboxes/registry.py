"""All sandboxes of a platform: creating, finding, listing and ending them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prime_local.assumptions import Assumptions
from prime_local.checkpoints.record import Checkpoint
from prime_local.contract import Problem
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError, invalid
from prime_local.ledger import Ledger
from prime_local.limits import CreationLimits, Resources
from prime_local.networks.entries import canonical
from prime_local.sandboxes.images import names_other_registry
from prime_local.sandboxes.life import Host, SandboxLife
from prime_local.sandboxes.record import Attachment, Owner, Sandbox, StartCommand, Status


@dataclass(frozen=True)
class _KeyUse:
    """What an idempotency key made, and a digest of the body it came with, where that matters."""

    life: SandboxLife
    digest: str | None


class SandboxRegistry:
    """Every sandbox since the last reset, the ended ones included.

    Args:
        host: what the sandboxes share.
        limits: admits creations.
        ledger: is told of creations; `Host.on_end` tells it of ends.
        assumptions: what an idempotency key and a delete mean.
        attach: makes attachments of the `volumes` of a create.
        restored: finds the checkpoint that a create starts from.
        stored: sandboxes of an earlier run, oldest first; all of them have ended.
    """

    def __init__(
        self,
        host: Host,
        limits: CreationLimits,
        ledger: Ledger,
        assumptions: Assumptions,
        attach: Callable[[Sequence[JsonObject], Owner], tuple[Attachment, ...]],
        restored: Callable[[str], Checkpoint],
        stored: Iterable[Sandbox] = (),
    ) -> None:
        self._host = host
        self._limits = limits
        self._ledger = ledger
        self._assumptions = assumptions
        self._attach = attach
        self._restored = restored
        self._lives: dict[str, SandboxLife] = {}
        self._by_job: dict[str, SandboxLife] = {}
        self._by_key: dict[tuple[Owner, str], _KeyUse] = {}
        self._given_ids: deque[str] = deque()
        for record in stored:
            self._add(SandboxLife(record, host), None)

    def create(self, body: JsonObject, owner: Owner) -> tuple[SandboxLife, bool]:
        """Create a sandbox from a valid request body, or find the one its key made before.

        It runs in one step of the event loop, so that no two requests with one key both create.

        Returns the sandbox and whether it is new.

        Raises:
            PlatformError: 404, 409, 422, 429 or 501.
        """
        digest = _digest(body) if self._assumptions.reused_key == "conflict" else None
        earlier = self._earlier(owner, body.get("idempotency_key"), digest)
        if earlier is not None:
            return earlier, False
        _refuse_impossible(body)
        record = self._record(body, owner)
        self._limits.admit(record.resources)
        self._ledger.created(record.idempotency_key)
        life = SandboxLife(record, self._host)
        self._add(life, digest)
        life.begin()
        return life, True

    def get(self, sandbox_id: str) -> SandboxLife:
        """Return a sandbox, an ended one too.

        Raises:
            PlatformError: 404.
        """
        life = self.find(sandbox_id)
        if life is None:
            raise PlatformError(404, "Sandbox not found")
        return life

    def running(self, sandbox_id: str) -> SandboxLife:
        """Return a sandbox that runs.

        Raises:
            PlatformError: 404, or 409 for any other state.
        """
        life = self.get(sandbox_id)
        if life.record.status is not Status.RUNNING:
            raise PlatformError(409, f"Sandbox is not running ({life.record.status.value})")
        return life

    def live(self) -> Iterator[Sandbox]:
        """Yield the records of the sandboxes that have not ended."""
        for life in self._lives.values():
            if life.record.live:
                yield life.record

    def find(self, sandbox_id: str) -> SandboxLife | None:
        life = self._lives.get(sandbox_id)
        return life if life is not None and self._shown(life) else None

    def find_job(self, job_id: str) -> SandboxLife | None:
        return self._by_job.get(job_id)

    def select(self, owner: Owner, wanted: Callable[[Sandbox], bool]) -> list[SandboxLife]:
        """Return an owner's sandboxes that are wanted, newest first."""
        return [
            life
            for life in reversed(self._lives.values())
            if life.record.owner == owner and self._shown(life) and wanted(life.record)
        ]

    async def delete(self, lives: Iterable[SandboxLife]) -> None:
        """End sandboxes at once and wait until their processes are gone."""
        ended = list(lives)
        for life in ended:
            life.end(Status.TERMINATED, deleted=True)
        await asyncio.gather(*(life.gone() for life in ended))

    async def settle(self) -> None:
        """Wait until no ended sandbox has processes left."""
        await asyncio.gather(*(life.gone() for life in self._lives.values()))

    def name_next(self, ids: Sequence[str]) -> None:
        """Give the sandboxes that are created next these ids, in this order.

        Raises:
            ValueError: an id that is taken, given twice, or unfit to name a folder.
        """
        taken = {*self._lives, *self._given_ids}
        for sandbox_id in ids:
            if (
                not 0 < len(sandbox_id) <= 64
                or sandbox_id in (".", "..")
                or set(sandbox_id) & {*"/\0"}
            ):
                raise ValueError(f"{sandbox_id!r} cannot be a sandbox's id")
            if sandbox_id in taken:
                raise ValueError(f"{sandbox_id} is a sandbox's id already")
            taken.add(sandbox_id)
        self._given_ids += ids

    def clear(self, reason: str | None = None) -> list[SandboxLife]:
        """End and forget every sandbox; the caller waits until they are `gone`.

        Args:
            reason: the `terminationReason` of those that were alive.
        """
        lives = list(self._lives.values())
        self._lives.clear()
        self._by_job.clear()
        self._by_key.clear()
        for life in lives:
            life.end(Status.TERMINATED, reason=reason)
        return lives

    def _add(self, life: SandboxLife, digest: str | None) -> None:
        record = life.record
        self._lives[record.id] = self._by_job[record.job_id] = life
        if record.idempotency_key is not None:
            self._by_key[record.owner, record.idempotency_key] = _KeyUse(life, digest)

    def _earlier(self, owner: Owner, key: str | None, digest: str | None) -> SandboxLife | None:
        use = self._by_key.get((owner, key)) if key is not None else None
        if use is None:
            return None
        age = self._host.clock.date() - use.life.record.created_at
        window = self._assumptions.idempotency_window
        if window is not None and age.total_seconds() >= window:
            return None
        if digest is not None and use.digest not in (None, digest):
            raise PlatformError(409, "The idempotency key was used with another body")
        return use.life

    def _shown(self, life: SandboxLife) -> bool:
        return not (life.record.deleted and self._assumptions.deleted_sandbox == "missing")

    def _new_id(self) -> str:
        if self._given_ids:
            return self._given_ids.popleft()
        # A seeded platform with a data directory draws the names of its earlier runs again.
        while (sandbox_id := self._host.identifiers.make("sbx_")) in self._lives:
            pass
        return sandbox_id

    def _record(self, body: JsonObject, owner: Owner) -> Sandbox:
        checkpoint_id, image, disk = self._source(body)
        attachments = self._attach(body.get("volumes", ()), owner)
        sandbox_id, now = self._new_id(), self._host.clock.date()
        start = body.get("start_command")
        return Sandbox(
            id=sandbox_id,
            job_id="job-" + sandbox_id.removeprefix("sbx_"),
            owner=owner,
            name=body["name"],
            docker_image=image,
            resources=Resources(
                # Fractions are cut off, and there is no less than one vCPU.
                cpu=max(1, int(body.get("cpu_cores", 1))),
                memory=body.get("memory_gb", 1),
                disk=disk,
            ),
            workspace=self._host.isolation.workspace(sandbox_id),
            created_at=now,
            updated_at=now,
            timeout_minutes=body.get("timeout_minutes", 60),
            idle_timeout_minutes=body.get("idle_timeout_minutes"),
            start_command=start and StartCommand(start["executable"], tuple(start.get("args", ()))),
            environment_vars=body.get("environment_vars"),
            secrets=body.get("secrets", {}),
            labels=tuple(body.get("labels", ())),
            network_allowlist=canonical(body.get("network_allowlist")),
            network_denylist=canonical(body.get("network_denylist")),
            advanced_configs=body.get("advanced_configs"),
            region=body.get("region"),
            vm=body.get("vm", True),
            idempotency_key=body.get("idempotency_key"),
            checkpoint_id=checkpoint_id,
            attachments=attachments,
        )

    def _source(self, body: JsonObject) -> tuple[str | None, str, float]:
        """Return the checkpoint that a sandbox starts from, if any, its image, and its GiB."""
        if "checkpoint_id" not in body:
            return None, body["docker_image"], body.get("disk_size_gb", 5)
        checkpoint = self._restored(body["checkpoint_id"])
        return checkpoint.id, checkpoint.docker_image, checkpoint.disk_size_gb


def _refuse_impossible(body: JsonObject) -> None:
    """Refuse what the contract's schema lets through but the platform documents as refused."""
    problems = []
    if body.get("gpu_count", 0) > 0:
        problems.append(("gpu_count", "This account has no grant for GPU sandboxes"))
    if body.get("gpu_type") is not None and not body.get("gpu_count"):
        problems.append(("gpu_type", "gpu_type needs gpu_count above 0"))
    if names_other_registry(body.get("docker_image", "")):
        text = "Only Docker Hub and Prime images can be used; transfer this image first"
        problems.append(("docker_image", text))
    idle, lifetime = body.get("idle_timeout_minutes"), body.get("timeout_minutes", 60)
    if idle is not None and 0 < lifetime < idle:
        problems.append(("idle_timeout_minutes", "Must not exceed timeout_minutes"))
    for name in ("network_allowlist", "network_denylist"):
        try:
            canonical(body.get(name))
        except ValueError as error:
            problems.append((name, str(error)))
    if any("\0" in word for word in _start_words(body)):
        problems.append(("start_command", "Must not hold NUL"))
    if problems:
        raise invalid([Problem(("body", name), text, "value_error") for name, text in problems])


def _start_words(body: JsonObject) -> list[str]:
    start = body.get("start_command")
    return [start["executable"], *start.get("args", ())] if start else []


def _digest(body: JsonObject) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
