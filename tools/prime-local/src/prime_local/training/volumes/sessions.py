"""SSH sessions on volumes. They follow the clock alone: nothing listens at their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.identifiers import Identifiers
from prime_local.rows import from_row, to_row
from prime_local.sandboxes.record import wire_date
from prime_local.storage import Storage
from prime_local.training.volumes.record import TrainingVolume

KIND = "training_volume_session"
_IDLE = timedelta(minutes=30)
_MOST = 20
_STATUSES = {
    "creating": "PENDING",
    "staging": "PENDING",
    "ready": "RUNNING",
    "syncing": "TERMINATING",
    "finalizing": "TERMINATING",
    "stopped": "STOPPED",
}
_HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHByaW1lLWxvY2FsIGhhcyBubyBzdWNoIGhvc3Qh"


@dataclass
class VolumeSession:
    """A session.

    Args:
        stop_at: when its owner stopped it.
    """

    id: str
    volume_id: str
    volume_name: str
    team_id: str | None
    read_only: bool
    created_at: datetime
    stop_at: datetime | None = None

    def phase(self, now: datetime, step: timedelta) -> str:
        """Return how far it is.

        Args:
            now: the date.
            step: what each phase takes but `ready`.
        """
        ready = self.created_at + 2 * step
        # Nobody ever connects, so it is idle from the first moment on.
        end = min(filter(None, (self.stop_at, ready + _IDLE)))
        phases = ["finalizing"] if self.read_only else ["syncing", "finalizing"]
        if now >= end:
            passed = len(phases) if not step else int((now - end) / step)
            return [*phases, "stopped"][min(passed, len(phases))]
        if now >= ready:
            return "ready"
        return "staging" if now >= self.created_at + step else "creating"


class VolumeSessions:
    """Every session.

    Args:
        clock: moves them.
        identifiers: makes their ids.
        storage: keeps them.
        step: seconds that each of their phases takes but `ready`.
    """

    def __init__(
        self, clock: PlatformClock, identifiers: Identifiers, storage: Storage, step: float
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._step = timedelta(seconds=step)
        self._sessions: dict[str, VolumeSession] = {}

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the sessions of an earlier platform."""
        self._sessions = {row["id"]: from_row(VolumeSession, row) for row in rows}

    def live(self, volume_id: str) -> list[VolumeSession]:
        """Return the sessions of a volume that are not over, newest first."""
        return [
            each
            for each in reversed(self._sessions.values())
            if each.volume_id == volume_id and not self._is_over(each)
        ]

    def writable(self, volume_id: str) -> VolumeSession | None:
        """Return the session that holds a volume's writer lock, if there is one."""
        return next((each for each in self.live(volume_id) if not each.read_only), None)

    def is_ready(self, session: VolumeSession) -> bool:
        return session.phase(self._clock.date(), self._step) == "ready"

    def create(self, volume: TrainingVolume, *, read_only: bool) -> JsonObject:
        """Start a session and return its wire form.

        Raises:
            PlatformError: 409 when the team has too many.
        """
        live = [
            each
            for each in self._sessions.values()
            if each.team_id == volume.team_id and not self._is_over(each)
        ]
        if len(live) >= _MOST:
            raise PlatformError(409, f"Volume SSH session limit ({_MOST}) reached")
        session = VolumeSession(
            self._identifiers.make("cmj", 22),
            volume.id,
            volume.name,
            volume.team_id,
            read_only,
            self._clock.date(),
        )
        self._sessions[session.id] = session
        self._save(session)
        return self.wire(session, "creating")

    def get(self, session_id: str, volume_id: str) -> VolumeSession:
        """Return a session of a volume.

        Raises:
            PlatformError: 404.
        """
        session = self._sessions.get(session_id)
        if session is None or session.volume_id != volume_id:
            raise PlatformError(404, "Volume session not found")
        return session

    def stop(self, session: VolumeSession) -> None:
        """Let a session end; harmless when it does already."""
        if session.stop_at is None and not self._is_over(session):
            session.stop_at = self._clock.date()
            self._save(session)

    def wire(self, session: VolumeSession, phase: str | None = None) -> JsonObject:
        """Return the `VolumeSession` object of the contract, by default as it is now."""
        phase = phase or session.phase(self._clock.date(), self._step)
        usable = phase == "ready"
        host = f"volume-{session.id[-6:]}.prime-local.invalid"
        return {
            "id": session.id,
            "volumeName": session.volume_name,
            "status": _STATUSES[phase],
            "readOnly": session.read_only,
            "sshConnection": f"root@{host} -p 2222" if usable else None,
            "gateway": None,
            "hostPublicKey": _HOST_KEY if usable else None,
            "errorMessage": None,
            "createdAt": wire_date(session.created_at),
            "phase": phase,
            "progress": "0 B copied" if phase == "staging" else None,
        }

    def forget(self, volume_id: str) -> None:
        """Forget the sessions of a volume that is gone."""
        for session in list(self._sessions.values()):
            if session.volume_id == volume_id:
                del self._sessions[session.id]
                self._storage.save_object(KIND, session.id, None)

    def _is_over(self, session: VolumeSession) -> bool:
        return session.phase(self._clock.date(), self._step) == "stopped"

    def _save(self, session: VolumeSession) -> None:
        self._storage.save_object(KIND, session.id, to_row(session))
