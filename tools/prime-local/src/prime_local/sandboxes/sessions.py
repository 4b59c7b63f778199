"""The command sessions of a sandbox: those that run, and for a while those that have ended."""

from __future__ import annotations

from prime_local.clock import PlatformClock
from prime_local.sandboxes.commands import Command, CommandFault
from prime_local.sandboxes.session import CommandSession


class Sessions:
    """Sessions by uuid.

    Args:
        clock: the platform clock.
        seconds: how long an ended session can still be attached to; None for ever.
        count: how many ended sessions can be, the latest ones.
    """

    def __init__(self, clock: PlatformClock, seconds: float | None, count: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._count = count
        self._sessions: dict[str, CommandSession] = {}
        self._ended: dict[str, float] = {}

    @property
    def running(self) -> list[tuple[str, CommandSession]]:
        """The sessions that still run, in the order of their start."""
        return [item for item in self._sessions.items() if not item[1].over]

    def find(self, session_uuid: str | None, command: Command) -> CommandSession | None:
        """Return the session of a uuid, if there is one.

        Raises:
            CommandFault: `failed_precondition` when it is one of another command.
        """
        self._forget_old()
        session = self._sessions.get(session_uuid) if session_uuid else None
        if session is not None and session.command != command:
            raise CommandFault("failed_precondition", "session_uuid runs another command")
        return session

    def select(self, *, pid: int, session_uuid: str, ended: bool = False) -> CommandSession:
        """Return a session by its pid or its uuid, whichever is given.

        Args:
            pid: process id of its command; the latest of that id counts.
            session_uuid: its uuid.
            ended: whether it may have ended already.

        Raises:
            CommandFault: `not_found` when there is none.
        """
        self._forget_old()
        for uuid, session in reversed(self._sessions.items()):
            if (uuid == session_uuid or (pid and session.pid == pid)) and (
                ended or not session.over
            ):
                return session
        raise CommandFault("not_found", "session not found")

    def add(self, session_uuid: str, session: CommandSession) -> None:
        self._sessions[session_uuid] = session

    def has_ended(self, session_uuid: str) -> None:
        """Note that a session has just ended."""
        self._ended[session_uuid] = self._clock.now()
        self._forget_old()

    def _forget_old(self) -> None:
        oldest = float("-inf") if self._seconds is None else self._clock.now() - self._seconds
        surplus = len(self._ended) - self._count
        for number, (uuid, when) in enumerate(list(self._ended.items())):
            if number < surplus or when < oldest:
                del self._ended[uuid]
                self._sessions.pop(uuid, None)
