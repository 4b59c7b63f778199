"""The platform without its network side: everything it remembers and runs."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from prime_local.clock import PlatformClock
from prime_local.contract import ContractChecks, load_contract
from prime_local.faults import FaultRule, FaultRules
from prime_local.identifiers import Identifiers
from prime_local.ledger import Ledger
from prime_local.limits import CreationLimits
from prime_local.sandboxes.life import Host, SandboxLife
from prime_local.sandboxes.processes import ProcessMode
from prime_local.sandboxes.record import Sandbox
from prime_local.sandboxes.registry import SandboxRegistry
from prime_local.sandboxes.trees import TreeKiller
from prime_local.tasks import TaskSet
from prime_local.tokens import GatewayTokens

if TYPE_CHECKING:
    from prime_local.contract.protobuf import CommandMessages

_CLOSE_SECONDS = 3.0


@dataclass(frozen=True)
class Settings:
    """How a platform behaves.

    Args:
        limits: enforce the documented creation burst and account limits.
        start_delay: seconds on the platform clock between a create and RUNNING.
        seed: makes ids and the API key repeatable.
        data_dir: folder to keep the sandboxes' files in while they live; None for the system's
            temporary one.
        token_lifetime: seconds that a gateway token is good for.
        validate_responses: check each answer against the contract.
    """

    limits: bool = True
    start_delay: float = 0.0
    seed: int | None = None
    data_dir: Path | None = None
    token_lifetime: float = 1800.0
    validate_responses: bool = False


class PlatformCore:
    """State and machinery of one platform. Must be made on the event loop that runs it."""

    def __init__(self, settings: Settings, faults: Iterable[FaultRule] = ()) -> None:
        self.settings = settings
        self.contract = load_contract()
        self.checks = ContractChecks(self.contract)
        self.clock = PlatformClock()
        self.identifiers = Identifiers(settings.seed)
        self.api_key = self.identifiers.make("pit_", 40)
        self.user_id = self.identifiers.make("usr_")
        self.faults = FaultRules(faults)
        self.tokens = GatewayTokens(self.clock, self.identifiers, settings.token_lifetime)
        self.violations: list[str] = []
        # The names of a seeded platform repeat; the mark on its processes must not.
        self._instance = secrets.token_hex(8)
        self.tasks = TaskSet()
        self._executor = ThreadPoolExecutor(4, thread_name_prefix="prime-local")
        self._trees = TreeKiller(self._executor, self.tasks)
        if settings.data_dir is not None:
            settings.data_dir.mkdir(parents=True, exist_ok=True)
        # A folder of its own each time: a seeded platform's sandboxes have the names of the last.
        root = tempfile.mkdtemp(prefix="prime-local-", dir=settings.data_dir)
        self._root = Path(root).absolute()
        processes = ProcessMode(self._root, self._executor)
        self._host = Host(
            clock=self.clock,
            identifiers=self.identifiers,
            processes=processes,
            trees=self._trees,
            tasks=self.tasks,
            instance=self._instance,
            start_delay=settings.start_delay,
            on_end=self._on_end,
        )
        self._begin()

    @cached_property
    def messages(self) -> CommandMessages:
        """The gateway's messages, first made for the first command: protobuf loads slowly."""
        from prime_local.contract.protobuf import CommandMessages

        return CommandMessages(self.contract)

    def _begin(self) -> None:
        account = self.contract.operations["create_sandbox"].spec["x-account-limits"]
        self.ledger = Ledger()
        self.limits = CreationLimits(self.clock, account, enabled=self.settings.limits)
        self.sandboxes = SandboxRegistry(self._host, self.limits, self.ledger)

    async def reset(self) -> None:
        """End every sandbox and forget all but the API key and the time."""
        ended = self.sandboxes.clear()
        self.faults.clear()
        self._begin()
        await self._gone(ended)

    async def advance(self, seconds: float) -> None:
        """Move the clock forward; what that ends is gone when this returns."""
        self.clock.advance(seconds)
        await self.sandboxes.settle()

    async def close(self) -> None:
        """End every sandbox, kill what is left of them and delete its files.

        Takes at most about 4 s.
        """
        ended = self.sandboxes.clear()
        self.clock.close()
        try:
            await asyncio.wait_for(self._gone(ended), _CLOSE_SECONDS)
        except asyncio.TimeoutError:
            pass
        finally:
            await self.tasks.close(1.0)
            self._executor.shutdown(wait=False, cancel_futures=True)
            await asyncio.to_thread(shutil.rmtree, self._root, ignore_errors=True)

    async def _gone(self, lives: Iterable[SandboxLife]) -> None:
        await asyncio.gather(*(life.gone() for life in lives))

    def _on_end(self, sandbox: Sandbox, deleted: bool) -> None:
        self.ledger.ended(deleted=deleted)
        self.limits.release(sandbox.resources)
        self.tokens.revoke(sandbox.id)
