"""SSH sessions: a key that opens a sandbox for some time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from prime_local.clock import PlatformClock, Timer
from prime_local.contract.document import JsonObject
from prime_local.identifiers import Identifiers
from prime_local.sandboxes.record import wire_date


@dataclass
class SshSession:
    """An open session.

    Args:
        id: also the SSH user's name.
        sandbox_id: what it opens.
        key: the data of the public key that may use it, in the wire form of SSH.
        expires_at: when it ends at the latest.
        ttl_seconds: how long it lives.
        timer: ends it then.
        hang_up: what ends its connections.
    """

    id: str
    sandbox_id: str
    key: bytes
    expires_at: datetime
    ttl_seconds: int
    timer: Timer
    hang_up: set[Callable[[], None]] = field(default_factory=set)

    def to_wire(self, host: str, port: int) -> JsonObject:
        """Return the `SSHSession` object of the contract."""
        return {
            "session_id": self.id,
            "sandbox_id": self.sandbox_id,
            "host": host,
            "port": port,
            "expires_at": wire_date(self.expires_at),
            "ttl_seconds": self.ttl_seconds,
        }


class SshSessions:
    """The open sessions of a platform.

    Args:
        clock: ends them.
        identifiers: names them.
    """

    def __init__(self, clock: PlatformClock, identifiers: Identifiers) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._open: dict[str, SshSession] = {}

    def create(self, sandbox_id: str, key: bytes, ttl_seconds: int) -> SshSession:
        session_id = self._identifiers.make("ssh_")
        session = SshSession(
            id=session_id,
            sandbox_id=sandbox_id,
            key=key,
            expires_at=self._clock.date(ttl_seconds),
            ttl_seconds=ttl_seconds,
            timer=self._clock.call_later(ttl_seconds, lambda: self.end(session_id)),
        )
        self._open[session_id] = session
        return session

    def find(self, session_id: str) -> SshSession | None:
        """Return a session that is open."""
        return self._open.get(session_id)

    def end(self, session_id: str) -> None:
        """End a session, if it is open, and its connections."""
        session = self._open.pop(session_id, None)
        if session is not None:
            session.timer.cancel()
            for hang_up in list(session.hang_up):
                hang_up()

    def end_all_of(self, sandbox_id: str) -> None:
        """End every session of a sandbox."""
        for session in list(self._open.values()):
            if session.sandbox_id == sandbox_id:
                self.end(session.id)
