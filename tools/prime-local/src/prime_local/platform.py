"""A platform inside the running event loop."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from prime_local.assumptions import Assumptions
from prime_local.billing.amounts import read_usd
from prime_local.contract.document import JsonObject
from prime_local.core import PlatformCore
from prime_local.errors import ContractViolation
from prime_local.faults import FaultRule
from prime_local.ledger import LedgerSnapshot
from prime_local.networks.public import PublicPorts
from prime_local.rentals import RentalSettings
from prime_local.sandboxes.isolation.base import ModeName, WantedMode
from prime_local.server import INFERENCE_PREFIX, TRACES_PREFIX, PlatformServer
from prime_local.settings import Settings
from prime_local.training.controls import TrainingControls
from prime_local.training.runs.record import LOG_LINES
from prime_local.training.runs.registry import RunPace


class LocalPlatform(TrainingControls):
    """A local platform as an async context manager: real HTTP on a loopback port.

    Args:
        limits: enforce the documented creation burst, account limits and rate limits.
        strict_limits: enforce the rate limits of older descriptions as well.
        start_delay: seconds on the platform clock between a create and RUNNING.
        gateway_delay: seconds on the platform clock between RUNNING and a gateway that answers.
        image_build_time: seconds on the platform clock that the first use of an image waits,
            PENDING with a `pendingImageBuildId`.
        network_delay: seconds on the platform clock between a change of network rules or members
            and its effect.
        checkpoint_time: seconds on the platform clock that a checkpoint takes to be DURABLE once
            its files are copied.
        removal_time: seconds on the platform clock that a deleted checkpoint is DELETING.
        rollout_time: seconds on the platform clock that the start of a hosted evaluation takes,
            and each of its rollouts.
        volume_time: seconds on the platform clock that the deletion of a training volume takes,
            each phase of its sessions, and each state of a copy from or to a bucket.
        training_step_time: seconds on the platform clock for each step of a hosted run, above 0.
        training_setup_time: likewise for each of its states before RUNNING, and for its stop.
        training_log_lines: how many lines each of its components logs in a step.
        trace_index_delay: seconds on the platform clock between an upload of traces and their
            index.
        provisioning_time: seconds on the platform clock that each step of a pod or a disk takes.
        provisioning_reads: how often it must be read for each step instead; without either, a
            pod is ACTIVE right after its create.
        detach_time: seconds on the platform clock between the end of a pod and the release of
            its disks.
        balance: USD that each wallet begins with, as a Decimal or text.
        seed: makes ids and the API key repeatable.
        data_dir: folder that remembers the API key, the sandboxes' records, checkpoints,
            volumes and traces for the next platform with it, and holds the sandboxes' files
            while they live; None to forget everything at the end.
        isolation: how sandboxes are kept from this machine: `full`, `bwrap`, `process` (not at
            all), or `auto` for the strongest that works here.
        token_lifetime: seconds that a gateway token is good for.
        inference_upstream: address of a server that speaks OpenAI's chat completions, up to what
            comes before `/models`: it makes the text of completions, with the key in the variable
            INFERENCE_UPSTREAM_API_KEY.
        latency: real seconds that each request waits before it is processed.
        clock_skew: seconds that the platform's dates are ahead of this machine's, or negative.
        noise: add unknown fields and enum values to every answer, as a newer server might.
        faults: rules in force from the start.
        assumptions: what to do where no source settles it.
        validate_responses: check each answer against the contract and raise
            `ContractViolation` on leaving if one breaks it.
        host: address to listen on.
        port: port to listen on; 0 picks a free one.

    Raises:
        ValueError: `strict_limits` without `limits`, or a time of training that is none; on
            entering, an upstream server that is no http address, or a fault rule that names no
            operation.
        IsolationError: on entering, when the mode does not work here.
        OSError: on entering, when the address cannot be bound or the data directory not used.
        ContractViolation: on leaving without another exception.
    """

    def __init__(
        self,
        *,
        limits: bool = True,
        strict_limits: bool = False,
        start_delay: float = 0.0,
        gateway_delay: float = 0.0,
        image_build_time: float = 0.0,
        network_delay: float = 0.0,
        checkpoint_time: float = 0.0,
        removal_time: float = 0.0,
        rollout_time: float = 0.0,
        volume_time: float = 0.0,
        training_step_time: float = 1.0,
        training_setup_time: float = 0.0,
        training_log_lines: int = LOG_LINES,
        trace_index_delay: float = 0.0,
        provisioning_time: float = 0.0,
        provisioning_reads: int = 0,
        detach_time: float = 0.0,
        balance: Decimal | str | int = 1000,
        seed: int | None = None,
        data_dir: str | PathLike[str] | None = None,
        isolation: WantedMode = "process",
        token_lifetime: float = 1800.0,
        inference_upstream: str | None = None,
        latency: float = 0.0,
        clock_skew: float = 0.0,
        noise: bool = False,
        faults: Iterable[FaultRule] = (),
        assumptions: Assumptions | None = None,
        validate_responses: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._settings = Settings(
            limits=limits,
            strict_limits=strict_limits,
            start_delay=start_delay,
            gateway_delay=gateway_delay,
            image_build_time=image_build_time,
            network_delay=network_delay,
            checkpoint_time=checkpoint_time,
            removal_time=removal_time,
            rollout_time=rollout_time,
            volume_time=volume_time,
            training=RunPace(training_step_time, training_setup_time, training_log_lines),
            trace_index_delay=trace_index_delay,
            rentals=RentalSettings(
                provisioning_time, provisioning_reads, detach_time, read_usd("balance", balance)
            ),
            seed=seed,
            data_dir=None if data_dir is None else Path(data_dir).absolute(),
            isolation=isolation,
            token_lifetime=token_lifetime,
            inference_upstream=inference_upstream,
            latency=latency,
            clock_skew=clock_skew,
            noise=noise,
            assumptions=assumptions or Assumptions(),
            validate_responses=validate_responses,
        )
        self._faults = tuple(faults)
        self._address = (host, port)
        self._running: tuple[PlatformCore, PlatformServer, PublicPorts] | None = None

    async def __aenter__(self) -> LocalPlatform:
        core = await PlatformCore.open(self._settings, self._faults)
        server = PlatformServer(core, *self._address)
        public = PublicPorts(core.fabric, self._address[0])
        try:
            await server.start()
            await public.start()
        except BaseException:
            await public.close()
            await server.close()
            await core.close()
            raise
        self._running = core, server, public
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        core, server, public = self._parts
        self._running = None
        server.stop()
        try:
            # Sandboxes first: their ends close the streams that the server would wait for.
            await core.close()
        finally:
            await public.close()
            await server.close()
        if core.violations and error is None:
            raise ContractViolation(core.violations)

    @property
    def url(self) -> str:
        """Base address, without a trailing slash."""
        return self._server.url

    @property
    def api_key(self) -> str:
        return self._core.api_key

    @property
    def public_url(self) -> str:
        """Where ports that an `internet` rule exposes are served, as a template.

        Fill in `port` and `sandbox_id` with `str.format`.
        """
        return f"http://{{port}}-{{sandbox_id}}.localhost:{self._parts[2].port}"

    @property
    def isolation(self) -> ModeName:
        """How sandboxes are isolated: what `auto` came to."""
        return self._core.isolation

    @property
    def env(self) -> dict[str, str]:
        """Environment variables that point an SDK at this platform."""
        return {
            "PRIME_BASE_URL": self.url,
            "PRIME_API_KEY": self.api_key,
            "PRIME_TRACES_URL": self.url + TRACES_PREFIX,
            "PRIME_INFERENCE_URL": self.url + INFERENCE_PREFIX + "/api/v1",
        }

    def ledger(self) -> LedgerSnapshot:
        """Return what happened since the start or the last reset."""
        return self._core.ledger.snapshot()

    def add_faults(self, *rules: FaultRule) -> None:
        """Put fault rules in force, after those that are.

        Raises:
            ValueError: a rule that names no operation of the contract.
        """
        self._core.faults.add(rules)

    def clear_faults(self) -> None:
        self._core.faults.clear()

    async def advance(self, seconds: float) -> None:
        """Move the platform clock forward; sandboxes that this ends are gone when it returns.

        Args:
            seconds: how far, at least 0.
        """
        await self._core.advance(seconds)

    def name_sandboxes(self, *ids: str) -> None:
        """Give the sandboxes that are created next these ids, as examples in a text name them.

        Args:
            ids: in the order of the creations, each at most 64 characters, without a slash.

        Raises:
            ValueError: an id that is taken, given twice, or unfit.
        """
        self._core.name_sandboxes(ids)

    def pause(self, sandbox_id: str) -> None:
        """Move a RUNNING sandbox to PAUSED: its gateway is closed, its clocks and commands go on.

        Raises:
            ValueError: it is not RUNNING, or unknown.
        """
        self._core.pause(sandbox_id)

    def resume(self, sandbox_id: str) -> None:
        """Move a PAUSED sandbox back to RUNNING.

        Raises:
            ValueError: it is not PAUSED, or unknown.
        """
        self._core.resume(sandbox_id)

    async def set_traces(self, **switches: Any) -> None:
        """Turn switches of the traces service; those that are not named stay.

        Args:
            switches: `enabled`, `scopes`, `storage_limit` and `hold_index`, as in
                `prime_local.traces.service.TracesSwitches`.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        await self._core.traces.change(switches)

    def set_inference(self, **switches: Any) -> None:
        """Turn switches of the inference service; those that are not named stay.

        Args:
            switches: `token_time` and `concurrency`, as in
                `prime_local.inference.service.InferenceSwitches`.

        Raises:
            ValueError: there is no such switch, or it has no such value.
        """
        self._core.inference.change(switches)

    def set_balance(self, usd: Decimal | float | str, team_id: str | None = None) -> None:
        """Say what a wallet has left.

        Args:
            usd: the amount; who has 0 or less gets 402 for what costs money.
            team_id: the team's wallet; None for the personal one.

        Raises:
            ValueError: that is no amount.
        """
        self._core.rentals.wallets.set_balance(team_id, read_usd("balance", usd))

    def inference_calls(self) -> list[JsonObject]:
        """Return the last 10,000 calls of models that were paid for, the oldest first.

        Each names its `inference_id`, `operation`, `model`, `team_id`, tokens, `cost_usd`,
        whether it was `streamed`, and its `outcome`, `completed` or `abandoned`.
        """
        return self._core.ledger.inference.calls()

    def sell_out(
        self, cloud_id: str, data_center_id: str | None = None, *, sold_out: bool = True
    ) -> None:
        """Make offers of GPUs or disks unavailable, or available again.

        Args:
            cloud_id: of the offers.
            data_center_id: only those of this data centre.
            sold_out: False undoes it.

        Raises:
            ValueError: there is no such offer.
        """
        if not self._core.catalogue.sell_out(cloud_id, data_center_id, sold_out=sold_out):
            raise ValueError(f"no offer of {cloud_id!r} there")

    def fail_pod(self, pod_id: str, reason: str) -> None:
        """Let a pod's installation fail; a fault rule's `fails` does it from the create on.

        Args:
            pod_id: a live pod.
            reason: what the platform says of it.

        Raises:
            ValueError: no such pod lives.
        """
        self._core.rentals.pods.fail(pod_id, reason)

    def vanish_pod(self, pod_id: str) -> None:
        """Let a provider take a pod away.

        Raises:
            ValueError: no such pod lives.
        """
        self._core.rentals.pods.vanish(pod_id)

    def add_bucket(self, name: str) -> dict[str, str]:
        """Make a bucket of one's own beside that of the volumes, for imports and exports.

        Returns its `endpoint`, an `access_key_id` and a `secret_access_key`. One that is there
        stays, and gets another key.

        Raises:
            ValueError: the name is that of the platform's own bucket.
        """
        return self._core.s3.add_bucket(name, self.url)

    def approve_login(self, code: str) -> None:
        """Approve a login that waits, as its user does in the dashboard.

        Args:
            code: the challenge that the login shows.

        Raises:
            ValueError: no such login waits.
        """
        self._core.account.challenges.approve(code)

    def add_key(
        self,
        name: str,
        *,
        scopes: dict[str, dict[str, bool]] | None = None,
        limits: dict[str, int] | None = None,
        lifetime: float | None = None,
    ) -> str:
        """Make an API key and return its value, as the dashboard does.

        Args:
            name: for people.
            scopes: `read` and `write` by area, such as `{"factory": {"read": True}}`; None is
                everything.
            limits: such as `{"maxConcurrentTunnels": 2}`, which whoami tells.
            lifetime: seconds on the platform clock.

        Raises:
            ValueError: a limit that there is not.
        """
        return self._core.account.keys.make(name, scopes=scopes, limits=limits, lifetime=lifetime)

    async def reset(self) -> None:
        """End every sandbox and forget all but the API key and the time."""
        await self._core.reset()

    async def outage(self, seconds: float) -> None:
        """Break every connection and refuse new ones for some time; sandboxes live on.

        Args:
            seconds: how long, in real time; this call lasts as long.
        """
        await self._server.outage(seconds)

    @property
    def _core(self) -> PlatformCore:
        return self._parts[0]

    @property
    def _server(self) -> PlatformServer:
        return self._parts[1]

    @property
    def _parts(self) -> tuple[PlatformCore, PlatformServer, PublicPorts]:
        if self._running is None:
            raise RuntimeError("the platform is not running; enter it with `async with` first")
        return self._running
