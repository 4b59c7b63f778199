"""Private networks: their records, rules and members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.networks.ruleset import Rule
from prime_local.sandboxes.record import Owner, Sandbox, Status, wire_date
from prime_local.storage import Storage

_KIND = "lan_network"
_MOST_PER_SANDBOX = 32
_OPEN = (Rule("*", "*", None),)
_NEVER = -1


@dataclass
class LanMember:
    """A sandbox in a network; `revision` grows with each change, up to `applied` is in force."""

    sandbox_id: str
    tags: tuple[str, ...]
    revision: int = 0
    applied: int = _NEVER

    def to_wire(self) -> JsonObject:
        """Return the `LanMember` object of the contract."""
        synced = self.applied == self.revision
        return {"sandbox_id": self.sandbox_id, "tags": list(self.tags), "synced": synced}


@dataclass
class LanNetwork:
    """A private network; rules up to version `applied` are in force."""

    id: str
    name: str
    owner: Owner
    rules: tuple[Rule, ...]
    created_at: datetime
    version: int = 1
    applied: int = _NEVER
    members: dict[str, LanMember] = field(default_factory=dict)

    def to_wire(self) -> JsonObject:
        """Return the `LanNetwork` object of the contract, without members."""
        return {
            "id": self.id,
            "name": self.name,
            "team_id": self.owner.team_id,
            "rules": [_rule_wire(rule) for rule in self.rules],
            "version": self.version,
            "synced": self.applied == self.version,
            "created_at": wire_date(self.created_at),
        }

    def to_row(self) -> dict[str, Any]:
        """Return what is kept: not the members, since no sandbox outlives its platform."""
        return {
            "name": self.name,
            "owner": vars(self.owner),
            "rules": [_rule_wire(rule) for rule in self.rules],
            "created_at": self.created_at.isoformat(),
            "version": self.version,
        }

    @classmethod
    def from_row(cls, network_id: str, row: Mapping[str, Any]) -> LanNetwork:
        return cls(
            id=network_id,
            name=row["name"],
            owner=Owner(**row["owner"]),
            rules=read_rules(row["rules"]),
            created_at=datetime.fromisoformat(row["created_at"]),
            version=row["version"],
        )


def read_rules(rules: Iterable[JsonObject]) -> tuple[Rule, ...]:
    """Read rules that the contract's schema has let through."""
    return tuple(
        Rule(rule["from"], rule["to"], None if (ports := rule.get("ports")) is None else (*ports,))
        for rule in rules
    )


def _rule_wire(rule: Rule) -> JsonObject:
    wire: JsonObject = {"from": rule.source, "to": rule.target}
    return wire if rule.ports is None else {**wire, "ports": list(rule.ports)}


class LanNetworks:
    """Every private network, by its id.

    Args:
        clock: the platform's.
        identifiers: makes their ids.
        storage: keeps the networks.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        stored = storage.objects.get(_KIND, {})
        self._networks = {key: LanNetwork.from_row(key, row) for key, row in stored.items()}

    def __iter__(self) -> Iterator[LanNetwork]:
        return iter(self._networks.values())

    def create(self, name: str, owner: Owner, rules: Iterable[JsonObject] | None) -> LanNetwork:
        """Make a network; without rules, every member may reach every other."""
        while (network_id := self._identifiers.make("net_")) in self._networks:
            pass
        network = LanNetwork(
            id=network_id,
            name=name,
            owner=owner,
            rules=_OPEN if rules is None else read_rules(rules),
            created_at=self._clock.date(),
        )
        self._networks[network_id] = network
        self._save(network)
        return network

    def of(self, owner: Owner) -> list[LanNetwork]:
        """Return an owner's networks, newest first."""
        return [each for each in reversed(self._networks.values()) if each.owner == owner]

    def get(self, network_id: str) -> LanNetwork:
        """Return a network.

        Raises:
            PlatformError: 404.
        """
        network = self._networks.get(network_id)
        if network is None:
            raise PlatformError(404, "Network not found")
        return network

    def delete(self, network_id: str) -> None:
        """Forget a network.

        Raises:
            PlatformError: 404.
        """
        self.get(network_id)
        del self._networks[network_id]
        self._storage.save_object(_KIND, network_id, None)

    def set_rules(self, network: LanNetwork, rules: Iterable[JsonObject]) -> None:
        """Replace all rules."""
        network.rules = read_rules(rules)
        network.version += 1
        self._save(network)

    def put_member(self, network: LanNetwork, sandbox: Sandbox, tags: Iterable[str]) -> LanMember:
        """Add a sandbox or replace its tags.

        Raises:
            PlatformError: 409 with a documented text.
        """
        if sandbox.owner != network.owner:
            text = "The sandbox and the network must belong to the same team or user"
            raise PlatformError(409, text)
        if not sandbox.vm:
            raise PlatformError(409, "Only VM sandboxes can join a network")
        if sandbox.status is not Status.RUNNING:
            raise PlatformError(409, "Only running sandboxes can join a network")
        wanted = tuple(dict.fromkeys(tags))
        member = network.members.get(sandbox.id)
        if member is None:
            if len(self._of_member(sandbox.id)) >= _MOST_PER_SANDBOX:
                text = f"A sandbox can be in at most {_MOST_PER_SANDBOX} networks"
                raise PlatformError(409, text)
            member = network.members[sandbox.id] = LanMember(sandbox.id, wanted)
        elif member.tags != wanted:
            member.tags = wanted
            member.revision += 1
        return member

    def remove_member(self, network: LanNetwork, sandbox_id: str) -> None:
        """Take a sandbox out.

        Raises:
            PlatformError: 404.
        """
        if network.members.pop(sandbox_id, None) is None:
            raise PlatformError(404, "The sandbox is not a member of the network")

    def forget(self, sandbox_id: str) -> None:
        """Take a sandbox that has ended out of every network."""
        for network in self._of_member(sandbox_id):
            del network.members[sandbox_id]

    def clear(self) -> None:
        self._networks.clear()

    def _save(self, network: LanNetwork) -> None:
        self._storage.save_object(_KIND, network.id, network.to_row())

    def _of_member(self, sandbox_id: str) -> list[LanNetwork]:
        return [each for each in self._networks.values() if sandbox_id in each.members]
