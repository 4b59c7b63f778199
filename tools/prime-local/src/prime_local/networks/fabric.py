"""From what is saved to what is in force: addresses, cables, names and the filter."""

from __future__ import annotations

import asyncio
import logging
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from prime_local.clock import PlatformClock
from prime_local.networks import addresses, ruleset
from prime_local.networks.addresses import AddressPool
from prime_local.networks.entries import Entry, read_entries
from prime_local.networks.lans import LanMember, LanNetwork, LanNetworks
from prime_local.sandboxes.isolation.base import Isolation, IsolationError, Links
from prime_local.sandboxes.life import SandboxLife
from prime_local.tasks import TaskSet

logger = logging.getLogger("prime_local")

_RETRY_SECONDS = 5.0
_CONNECTED_AT_ONCE = 4
_SETTLE_SECONDS = 10.0


@dataclass(frozen=True)
class _Policy:
    """The outbound rules of a sandbox at one moment.

    Args:
        life: the sandbox.
        generation: the number of the rules.
        outside: whether they let anything out; without lists a sandbox stays by itself.
        allows: whether the entries are allowed, or refused.
        entries: what they name.
    """

    life: SandboxLife
    generation: int
    outside: bool
    allows: bool
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, life: SandboxLife) -> _Policy:
        record = life.record
        allowed, refused = record.network_allowlist, record.network_denylist
        return cls(
            life,
            record.egress_generation,
            outside=bool(allowed) or refused is not None,
            allows=allowed is not None,
            entries=read_entries(allowed or refused or ()),
        )

    @property
    def sandbox_id(self) -> str:
        return self.life.record.id


@dataclass(frozen=True)
class _Snapshot:
    """What was saved at one moment."""

    policies: list[_Policy]
    rules: list[tuple[LanNetwork, int]]
    members: list[tuple[LanNetwork, LanMember, int]]


class Fabric:
    """Brings the rules of a platform's sandboxes and networks into force, one change at a time.

    Args:
        clock: the platform's.
        tasks: for work in the background.
        isolation: how sandboxes are made.
        lans: the private networks.
        delay: seconds on the clock between a change and its effect.
        pretend: say that rules are in force where nothing enforces them.
    """

    def __init__(
        self,
        clock: PlatformClock,
        tasks: TaskSet,
        isolation: Isolation,
        lans: LanNetworks,
        delay: float,
        pretend: bool,
    ) -> None:
        self._clock = clock
        self._tasks = tasks
        self._isolation = isolation
        self._lans = lans
        self._delay = delay
        self._pretend = pretend
        self._pool = AddressPool()
        self._lives: dict[str, SandboxLife] = {}
        self._connected: dict[str, IPv4Address] = {}
        self._names: dict[str, list[IPv4Address]] = {}
        self._hosts: dict[str, str] = {}
        self._exposed: dict[str, set[int]] = {}
        self._wanted = self._done = 0
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    def begin(self, life: SandboxLife) -> Awaitable[None] | None:
        """Bring the rules that a sandbox was created with into force, before it runs.

        Returns what to wait for, None for nothing.
        """
        self._lives[life.record.id] = life
        policy = _Policy.of(life)
        if policy.outside and self._isolation.links is not None:
            return self.apply()
        self._confirm(_Snapshot([policy], [], []))
        return None

    def changed(self) -> None:
        """Note that something was saved; it is in force some time later."""
        self._clock.call_later(self._delay, self._start)

    def forget(self, sandbox_id: str) -> None:
        """Let go of a sandbox that has ended."""
        self._lives.pop(sandbox_id, None)
        self._lans.forget(sandbox_id)
        self._hosts.pop(sandbox_id, None)
        self._exposed.pop(sandbox_id, None)
        if (address := self._connected.pop(sandbox_id, None)) is not None:
            self._pool.give_back(address)
            self._start()

    def exposes(self, sandbox_id: str, port: int) -> bool:
        """Say whether a rule that is in force exposes a port to the internet."""
        return port in self._exposed.get(sandbox_id, ())

    async def dial(self, sandbox_id: str, port: int) -> tuple[StreamReader, StreamWriter]:
        """Connect to a port of a sandbox that is exposed.

        Raises:
            IsolationError: nothing accepts connections there.
        """
        links, address = self._isolation.links, self._connected.get(sandbox_id)
        if links is None or address is None:
            raise IsolationError(f"{sandbox_id} has no network")
        return await links.dial(address, port)

    async def apply(self) -> None:
        """Bring everything that is saved by now into force, as far as that can be done."""
        self._start()
        if self._task is not None and not self._task.done():
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append((self._wanted, waiter))
            await waiter

    async def settle(self) -> None:
        """Wait until nothing is under way, at most 10 s."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_SETTLE_SECONDS)

    def close(self) -> None:
        """Change nothing any more: the sandboxes are about to end."""
        self._closed = True

    def _start(self) -> None:
        if self._closed:
            return
        self._wanted += 1
        if self._task is None or self._task.done():
            self._task = self._tasks.start(self._run())

    async def _run(self) -> None:
        try:
            while self._done < self._wanted:
                goal = self._wanted
                try:
                    complete = await self._bring_into_force()
                except (IsolationError, OSError) as error:
                    if not self._closed:
                        logger.error("network rules are not in force: %s", error)
                    complete = False
                self._done = goal
                self._wake(goal)
                if not complete and not self._closed:
                    self._clock.call_later(_RETRY_SECONDS, self._start)
        finally:
            self._wake(self._wanted)

    def _wake(self, goal: int) -> None:
        waiting, self._waiters = self._waiters, []
        for wanted, waiter in waiting:
            if wanted > goal:
                self._waiters.append((wanted, waiter))
            elif not waiter.done():
                waiter.set_result(None)

    async def _bring_into_force(self) -> bool:
        """Do it once; returns whether all of it was done."""
        snapshot = self._snapshot()
        links = self._isolation.links
        if links is None:
            self._confirm(snapshot)
            return True
        wanted = {policy.sandbox_id for policy in snapshot.policies if policy.outside}
        wanted.update(member.sandbox_id for _, member, _ in snapshot.members)
        await self._connect(links, wanted - self._connected.keys())
        missing = wanted - self._connected.keys()
        hosts = {entry.host for policy in snapshot.policies for entry in policy.entries}
        await self._look_up(host for host in hosts if isinstance(host, str))
        told = await self._tell_names(links, snapshot)
        if self._connected:
            outbounds, lans = self._outbounds(snapshot), self._lan_rules(snapshot)
            exposed = self._exposures()
            await links.enforce(ruleset.write_ruleset(outbounds, lans, self._names))
            self._exposed = exposed
        self._confirm(snapshot, missing)
        return told and not any(self._is_live(sandbox_id) for sandbox_id in missing)

    def _snapshot(self) -> _Snapshot:
        lives, lans = list(self._lives.values()), list(self._lans)
        return _Snapshot(
            [_Policy.of(life) for life in lives],
            [(lan, lan.version) for lan in lans],
            [(lan, member, member.revision) for lan in lans for member in lan.members.values()],
        )

    def _is_live(self, sandbox_id: str) -> bool:
        return sandbox_id in self._lives

    async def _connect(self, links: Links, sandbox_ids: Iterable[str]) -> None:
        slots = asyncio.Semaphore(_CONNECTED_AT_ONCE)

        async def connect(sandbox_id: str) -> None:
            async with slots:
                address = self._pool.take()
                try:
                    await links.connect(sandbox_id, address)
                except BaseException:
                    self._pool.give_back(address)
                    raise
                if self._is_live(sandbox_id):
                    self._connected[sandbox_id] = address
                else:
                    self._pool.give_back(address)

        ids = list(sandbox_ids)
        results = await asyncio.gather(*map(connect, ids), return_exceptions=True)
        for sandbox_id, result in zip(ids, results, strict=True):
            if isinstance(result, BaseException) and self._is_live(sandbox_id):
                if not isinstance(result, (IsolationError, OSError)):
                    raise result
                logger.error("%s gets no network: %s", sandbox_id, result)

    async def _look_up(self, names: Iterable[str]) -> None:
        unknown = [name for name in names if name not in self._names]
        if unknown:
            self._names.update(await addresses.look_up(unknown))

    async def _tell_names(self, links: Links, snapshot: _Snapshot) -> bool:
        """Write each sandbox's /etc/hosts; returns whether all of them could be."""
        peers: dict[str, set[str]] = {}
        for lan, _, _ in snapshot.members:
            for sandbox_id in lan.members:
                peers.setdefault(sandbox_id, set()).update(lan.members)
        complete = True
        for policy in snapshot.policies:
            sandbox_id = policy.sandbox_id
            if sandbox_id not in self._connected:
                continue
            hosts = self._write_hosts(policy, peers.get(sandbox_id, ()))
            if self._hosts.get(sandbox_id) == hosts:
                continue
            try:
                await links.tell_names(sandbox_id, hosts)
            except OSError as error:
                if self._is_live(sandbox_id):
                    logger.error("%s gets no names: %s", sandbox_id, error)
                    complete = False
            else:
                self._hosts[sandbox_id] = hosts
        return complete

    def _write_hosts(self, policy: _Policy, peers: Iterable[str]) -> str:
        lines = [f"127.0.0.1 localhost {policy.sandbox_id}"]
        for peer in sorted(peers):
            if (address := self._connected.get(peer)) is not None:
                lines.append(f"{address} {peer}.{addresses.MEMBER_DOMAIN}")
        if policy.outside:
            lines.append(f"{addresses.MACHINE} {addresses.MACHINE_NAME}")
        if policy.allows:
            for entry in policy.entries:
                lines += self._host_lines(entry)
        return "\n".join([*dict.fromkeys(lines), ""])

    def _host_lines(self, entry: Entry) -> list[str]:
        """Return the name of an allowed host: a sandbox cannot ask a name server for it."""
        name = entry.host
        if not isinstance(name, str) or name.startswith("*.") or name == "localhost":
            return []
        return [f"{address} {name}" for address in self._names.get(name, ())]

    def _outbounds(self, snapshot: _Snapshot) -> list[ruleset.Outbound]:
        return [
            ruleset.Outbound(self._connected[policy.sandbox_id], policy.allows, policy.entries)
            for policy in snapshot.policies
            if policy.outside and policy.sandbox_id in self._connected
        ]

    def _lan_rules(self, snapshot: _Snapshot) -> list[ruleset.Lan]:
        return [
            ruleset.Lan(
                {
                    self._connected[member.sandbox_id]: member.tags
                    for member in lan.members.values()
                    if member.sandbox_id in self._connected
                },
                lan.rules,
            )
            for lan, _ in snapshot.rules
        ]

    def _exposures(self) -> dict[str, set[int]]:
        exposed: dict[str, set[int]] = {}
        for lan in self._lans:
            for rule in lan.rules:
                if rule.source == "internet":
                    for member in lan.members.values():
                        if rule.selects(member.tags):
                            exposed.setdefault(member.sandbox_id, set()).update(rule.ports or ())
        return exposed

    def _confirm(self, snapshot: _Snapshot, missing: Iterable[str] = ()) -> None:
        """Note what is in force by now: all of a snapshot but what needs a cable and has none."""
        lacking = set(missing)
        enforced = self._pretend or self._isolation.links is not None
        for policy in snapshot.policies:
            if policy.sandbox_id not in lacking and (enforced or self._holds_anyway(policy)):
                policy.life.egress_in_force(policy.generation)
        if enforced:
            for lan, version in snapshot.rules:
                lan.applied = max(lan.applied, version)
            for _, member, revision in snapshot.members:
                if member.sandbox_id not in lacking:
                    member.applied = max(member.applied, revision)

    def _holds_anyway(self, policy: _Policy) -> bool:
        """Say whether rules hold without a filter: there are none, or there is no network."""
        record = policy.life.record
        if record.network_allowlist is None and record.network_denylist is None:
            return True
        return self._isolation.name != "process" and not policy.outside
