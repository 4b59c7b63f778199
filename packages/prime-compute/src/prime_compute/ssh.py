"""How to reach a machine by SSH, as the platform writes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address

__all__ = ["SSHConnection", "parse_ssh_connections"]

# An account or a host that begins with a hyphen would be an option of the ssh program.
_TEXT = re.compile(
    r"\s*(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})"
    r"@(?P<host>\[?[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?\]?|\[?::[0-9A-Fa-f:.]*\]?)"
    r"(?:\s+-p\s*(?P<port>[0-9]{1,5}))?\s*",
    re.ASCII,
)
DEFAULT_PORT = 22


@dataclass(frozen=True)
class SSHConnection:
    """Where an SSH server listens, checked: no part of it is an option or a command.

    Attributes:
        user: the account.
        host: name or address; an IPv6 address without brackets.
        port: 1 to 65,535.
    """

    user: str
    host: str
    port: int = DEFAULT_PORT

    @property
    def command(self) -> list[str]:
        """The words that start an ``ssh`` process, without a shell."""
        return ["ssh", "-p", str(self.port), "--", f"{self.user}@{self.host}"]

    def __str__(self) -> str:
        return f"{self.user}@{self.host} -p {self.port}"


def parse_ssh_connections(
    value: str | Sequence[str | None] | None,
) -> tuple[SSHConnection, ...]:
    """Reads the connections of a pod, one a node.

    Follows the documented page "api-reference/managing-pods".

    Args:
        value: ``user@host -p port``, a list of such texts, or None; without a port it is 22.

    Returns:
        None of them while one node of several is not reachable yet.

    Raises:
        ValueError: a text that is no connection; it may not be handed to a program.
    """
    if value is None or isinstance(value, str):
        value = [value]
    if not all(value):
        return ()
    return tuple(_parse(text) for text in value if text)


def _parse(text: str) -> SSHConnection:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"no SSH connection such as 'root@203.0.113.24 -p 22': {text[:200]!r}")
    port = int(match["port"] or DEFAULT_PORT)
    if not 1 <= port <= 65_535:
        raise ValueError(f"an SSH port is 1 to 65535, not {port}")
    return SSHConnection(match["user"], _host(match["host"]), port)


def _host(text: str) -> str:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in text or text != bare:
        try:
            IPv6Address(bare)
        except ValueError:
            raise ValueError(f"no host name or address: {text!r}") from None
    elif "]" in text or "[" in text or ".." in text:
        raise ValueError(f"no host name or address: {text!r}")
    return bare
