"""The packet filter of a platform's network, written out for nft.

It is one transaction that replaces all before. It runs where no sandbox can get at it: in the
namespace that they all hang on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, collapse_addresses

from prime_local.networks.addresses import MACHINE
from prime_local.networks.entries import Entry

# The hub's end of its link to this machine.
UPLINK = "up"
_TABLE = "ip prime"
Names = Mapping[str, Sequence[IPv4Address]]


@dataclass(frozen=True)
class Outbound:
    """What a sandbox may reach outside: the entries only, or all but them."""

    address: IPv4Address
    allows: bool
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Rule:
    """Who may connect to whom: `*` or `tag:NAME`, and on which ports; None for every port."""

    source: str
    target: str
    ports: tuple[int, ...] | None

    def selects(self, tags: Iterable[str]) -> bool:
        """Say whether a member with these tags is a target."""
        return self.target == "*" or self.target.removeprefix("tag:") in tags


@dataclass(frozen=True)
class Lan:
    """A private network: its members' addresses with their tags, and its rules."""

    members: Mapping[IPv4Address, Iterable[str]]
    rules: tuple[Rule, ...]


def write_ruleset(outbounds: Iterable[Outbound], lans: Iterable[Lan], names: Names) -> str:
    """Write the filter.

    Args:
        outbounds: of the sandboxes that may reach anything outside; no other one may.
        lans: the private networks.
        names: addresses of the host names in the entries.
    """
    parts = [_FRAME]
    jumps = []
    for number, outbound in enumerate(outbounds):
        parts.append(f"chain out{number} {{\n{_outbound_rules(outbound, names)}}}\n")
        jumps.append(f"{outbound.address} : jump out{number}")
    dispatch = f"ip saddr vmap {{ {', '.join(jumps)} }}\n" if jumps else ""
    # Flows that are open stay open when the rules of their sandbox change.
    # Of all that is outside, there is nothing but this machine.
    parts.append(
        f"chain out {{\nip daddr != {MACHINE} goto refuse\n"
        f"ct state established,related accept\n{dispatch}goto refuse\n}}\n"
    )
    dispatch = ""
    for number, lan in enumerate(lans):
        parts.append(_lan(f"lan{number}", lan))
        dispatch += f"ip saddr @lan{number} ip daddr @lan{number} jump lan{number}\n"
    parts.append(f"chain lans {{\n{dispatch}}}\n")
    table = "".join(parts) + _FORWARD
    # A table must be there to be deleted.
    return f"add table {_TABLE}\ndelete table {_TABLE}\ntable {_TABLE} {{\n{table}}}\n"


_FRAME = f"""chain refuse {{
meta l4proto tcp reject with tcp reset
reject
}}
chain input {{
type filter hook input priority 0; policy drop;
ct state established accept
goto refuse
}}
chain leave {{
type nat hook postrouting priority 100;
oifname "{UPLINK}" masquerade
}}
"""
# Only replies of an open connection pass by its state. Whoever opened it is judged packet by
# packet, so that a member that is removed is cut off at once.
_FORWARD = f"""chain forward {{
type filter hook forward priority 0; policy drop;
oifname "{UPLINK}" goto out
iifname "{UPLINK}" ct state established,related accept
iifname "{UPLINK}" drop
ct state related accept
ct direction reply ct state established accept
jump lans
goto refuse
}}
"""


def _outbound_rules(outbound: Outbound, names: Names) -> str:
    verdict = "accept" if outbound.allows else "goto refuse"
    networks: dict[tuple[int, int] | None, list[IPv4Network]] = defaultdict(list)
    for entry in outbound.entries:
        if isinstance(entry.host, str):
            networks[entry.ports] += map(IPv4Network, names.get(entry.host, ()))
        else:
            networks[entry.ports].append(entry.host)
    lines = ""
    for ports, found in networks.items():
        if found:
            match = (
                "" if ports is None else f"meta l4proto {{ tcp, udp }} th dport {_range(ports)} "
            )
            lines += f"ip daddr {_set(collapse_addresses(found))} {match}{verdict}\n"
    return lines if outbound.allows else lines + "accept\n"


def _lan(name: str, lan: Lan) -> str:
    tagged: dict[str, list[IPv4Address]] = defaultdict(list)
    for address, tags in lan.members.items():
        for tag in tags:
            tagged[f"tag:{tag}"].append(address)
    sets = {"*": name}
    text = _named_set(name, lan.members)
    lines = ""
    for rule in lan.rules:
        if rule.source == "internet" or rule.ports == ():
            continue
        for selector in (rule.source, rule.target):
            if selector not in sets:
                sets[selector] = f"{name}_{len(sets)}"
                text += _named_set(sets[selector], tagged[selector])
        match = "meta l4proto tcp"
        if rule.ports is not None:
            match = f"tcp dport {_set(sorted(set(rule.ports)))}"
        source, target = sets[rule.source], sets[rule.target]
        lines += f"ip saddr @{source} ip daddr @{target} {match} accept\n"
    return f"{text}chain {name} {{\n{lines}}}\n"


def _named_set(name: str, addresses: Iterable[IPv4Address]) -> str:
    elements = ", ".join(map(str, addresses))
    kept = f"elements = {{ {elements} }}\n" if elements else ""
    return f"set {name} {{\ntype ipv4_addr\n{kept}}}\n"


def _set(members: Iterable[object]) -> str:
    return f"{{ {', '.join(map(str, members))} }}"


def _range(ports: tuple[int, int]) -> str:
    low, high = ports
    return str(low) if low == high else f"{low}-{high}"
