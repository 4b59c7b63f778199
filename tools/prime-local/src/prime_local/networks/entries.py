"""Entries of outbound rules: reading them, and the one spelling that the platform answers with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

_NAME_PORTS = (80, 443)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_LONGEST_NAME = 253


@dataclass(frozen=True)
class Entry:
    """A destination: a host name or a network, and a range of ports; None for every port."""

    host: str | IPv4Network
    ports: tuple[int, int] | None = None

    def __str__(self) -> str:
        if self.ports is None:
            return str(self.host)
        low, high = self.ports
        return f"{self.host}:{low}" if low == high else f"{self.host}:{low}-{high}"


def read_entries(texts: Sequence[str]) -> tuple[Entry, ...]:
    """Read a list; what is said twice counts once.

    Raises:
        ValueError: the first entry that is none, named by its position.
    """
    entries: dict[Entry, None] = {}
    for position, text in enumerate(texts):
        try:
            entries[read_entry(text)] = None
        except ValueError as error:
            raise ValueError(f"entry {position}: {error}") from error
    return tuple(entries)


def canonical(texts: Sequence[str] | None) -> list[str] | None:
    """Return a list in the platform's own spelling.

    Raises:
        ValueError: the first entry that is none, named by its position.
    """
    return None if texts is None else [str(entry) for entry in read_entries(texts)]


def read_entry(text: str) -> Entry:
    """Read one entry.

    Raises:
        ValueError: it is none.
    """
    host, colon, ports = text.partition(":")
    if ":" in ports:
        raise ValueError("IPv6 is not supported")
    target = _read_host(host)
    return Entry(target, _read_ports(ports, isinstance(target, str)) if colon else None)


def _read_host(text: str) -> str | IPv4Network:
    if re.fullmatch(r"[\d./]+", text, re.ASCII):
        try:
            # Bits beyond the prefix are dropped, and an address is a network of one.
            return IPv4Network(text, strict=False)
        except ValueError:
            raise ValueError("not an IPv4 address or network") from None
    star = "*." if text.startswith("*.") else ""
    try:
        name = text[len(star) :].encode("idna").decode().lower()
    except UnicodeError:
        name = ""
    labels = name.split(".")
    # IDNA makes plain digits of others, such as superscripts, but a number is no name.
    numeric = labels[-1].isdecimal()
    if numeric or len(star + name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError("not a host name")
    return star + name


def _read_ports(text: str, named: bool) -> tuple[int, int]:
    match = _PORTS.fullmatch(text)
    if match is None:
        raise ValueError("not a port or a range of ports")
    low = int(match[1])
    high = int(match[2] or low)
    if not 1 <= low <= high <= 65535:
        raise ValueError("ports go from 1 to 65535, the lower one first")
    if named and (low != high or low not in _NAME_PORTS):
        raise ValueError("a host name takes port 80 or 443 only")
    return low, high
