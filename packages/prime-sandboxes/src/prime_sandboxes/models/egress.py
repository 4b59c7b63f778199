"""Outbound network rules, of a new sandbox and of a running one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address
from typing import ClassVar

from pydantic import model_validator

from prime_core.models import RequestModel, ResponseModel

MAX_EGRESS_POLICY_ENTRIES = 1024
DOMAIN_RULE_PORTS = (80, 443)

_MAX_HOSTNAME = 253
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
# Letters of any script: the platform turns international names into their ASCII form.
_LABEL = re.compile(r"\w(?:[\w-]{0,61}\w)?")
_PREFIX_LENGTH = re.compile(r"\d{1,2}", re.ASCII)


class SandboxEgressPolicy(ResponseModel):
    """The outbound rules of a sandbox, in the platform's spelling. One list at most is set.

    Attributes:
        allowlist: the only destinations that it may reach; `[]` is no network, DNS included.
        denylist: the destinations that it may not reach; `[]` refuses none.
    """

    allowlist: list[str] | None = None
    denylist: list[str] | None = None


class EgressPolicyStatus(ResponseModel):
    """The outbound rules as saved, and how far they are in force.

    Attributes:
        policy: the rules that were saved last.
        generation: their number; it grows with each change.
        applied_generation: number of the rules in force; -1 before the first.
        applied: whether the saved rules are in force.
    """

    policy: SandboxEgressPolicy
    generation: int
    applied_generation: int
    applied: bool


class SetEgressPolicyRequest(RequestModel):
    """The outbound rules that a running sandbox shall have.

    Attributes:
        allowlist: see `validate_egress_lists`; exactly one list is given.
        denylist: likewise.
    """

    always_sent: ClassVar[frozenset[str]] = frozenset({"allowlist", "denylist"})

    allowlist: list[str] | None = None
    denylist: list[str] | None = None

    @model_validator(mode="after")
    def _check_lists(self) -> SetEgressPolicyRequest:
        if self.allowlist is None and self.denylist is None:
            raise ValueError("give an allowlist or a denylist")
        validate_egress_lists(self.allowlist, self.denylist)
        return self


def validate_egress_lists(allowlist: Sequence[str] | None, denylist: Sequence[str] | None) -> None:
    """Check the outbound rules of a sandbox before they are sent.

    An entry is a host name (`example.com`, `*.example.com`), an IPv4 address or an IPv4 network
    (`10.0.0.0/8`), with an optional `:port` or `:low-high`; a name takes only port 80 or 443. The
    platform may still refuse an entry. Follows the page "sandboxes/network-isolation".

    Args:
        allowlist: the only destinations to allow, at most 1,024; empty cuts the network off, DNS
            included; `None` sets no allowlist.
        denylist: the destinations to refuse, at most 1,024; `None` sets no denylist.

    Raises:
        ValueError: both lists are given, a list is too long, or an entry is malformed. The
            message names the entry by position and does not quote it.
    """
    if allowlist is not None and denylist is not None:
        raise ValueError("give an allowlist or a denylist, not both")
    _check_entries("allowlist", allowlist or ())
    _check_entries("denylist", denylist or ())


def _check_entries(list_name: str, entries: Sequence[str]) -> None:
    if len(entries) > MAX_EGRESS_POLICY_ENTRIES:
        raise ValueError(
            f"{list_name} has {len(entries)} entries; at most {MAX_EGRESS_POLICY_ENTRIES} fit"
        )
    for position, entry in enumerate(entries):
        problem = _problem_of(entry)
        if problem:
            raise ValueError(f"{list_name}[{position}]: {problem}")


def _problem_of(entry: str) -> str | None:
    if "://" in entry or "@" in entry or "?" in entry:
        return "give a host name or an address, not a URL"
    if entry.count(":") > 1:
        return "IPv6 is not supported"
    host, colon, ports = entry.partition(":")
    if host == "*":
        return "a bare '*' is not a rule; use an empty allowlist to refuse all traffic"
    is_network = _is_ipv4_network(host)
    if not is_network and not _is_hostname(host):
        return "not a host name, IPv4 address or IPv4 network"
    return _problem_of_ports(ports, is_network) if colon else None


def _is_ipv4_network(host: str) -> bool:
    address, slash, length = host.partition("/")
    try:
        IPv4Address(address)
    except ValueError:
        return False
    return not slash or (_PREFIX_LENGTH.fullmatch(length) is not None and int(length) <= 32)


def _is_hostname(host: str) -> bool:
    labels = host.removeprefix("*.").split(".")
    return (
        len(host) <= _MAX_HOSTNAME
        and all(_LABEL.fullmatch(label) for label in labels)
        # A numeric last label makes it a mistyped address.
        and not labels[-1].isdigit()
    )


def _problem_of_ports(ports: str, is_network: bool) -> str | None:
    match = _PORTS.fullmatch(ports)
    if match is None:
        return "the part after ':' must be a port or a range such as 8000-8010"
    low = int(match[1])
    high = int(match[2] or low)
    if not 1 <= low <= high <= 65_535:
        return "ports go from 1 to 65535, the lower one first"
    if not is_network and (low != high or low not in DOMAIN_RULE_PORTS):
        return "a rule for a name takes port 80 or 443 only"
    return None
