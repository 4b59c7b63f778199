"""SSH sessions on volumes."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core._async.scopes import AsyncScope
from prime_core.arguments import check_id, check_seconds
from prime_core.creation import create_unkeyed
from prime_core.errors import NotFoundError
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_core.reaper import Obligation
from prime_train.configs.sizes import check_volume_name
from prime_train.hosted_waiting import is_transient
from prime_train.models.volume_sessions import (
    CreateVolumeSessionBody,
    VolumeSession,
    VolumeSessionList,
)
from prime_train.operations import (
    CREATE_VOLUME_SESSION,
    GET_VOLUME_SESSION,
    LIST_VOLUME_SESSIONS,
    STOP_VOLUME_SESSION,
)
from prime_train.volume_refusals import typed_refusals
from prime_train.volume_waiting import Key, wait_until_session_ready

__all__ = ["AsyncOpenVolumeSession", "AsyncVolumeSessions"]

# Seconds: when a create took all the time there was, the session is looked at once.
LEAST_WAIT = 0.001


class AsyncVolumeSessions(AsyncResource):
    """Opens, reads and stops sessions on volumes. Made by `AsyncTrainClient.volumes`.

    A session is a shell on a machine that has a copy of the volume at ``/volume``. A read-write
    one is the volume's only writer until it has stopped and saved its changes; read-only ones see
    what was saved when they began. They need the account's primary SSH key, and a cluster of the
    team's or of the account's.

    Follows the documented page "hosted-training/volumes".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules: PerLoop[PollSchedule[Key, VolumeSession]] = PerLoop(
            lambda: PollSchedule(self._look, transient=is_transient, batch=1)
        )

    async def create(
        self,
        volume: str,
        *,
        read_only: bool = True,
        allow_writable: bool = False,
        team_id: str | None = None,
    ) -> VolumeSession:
        """Starts a session, which copies the volume before it can be used; `open` stops it, too.

        It stops by itself after 30 minutes without a connection, and after 24 hours. When the
        caller is cancelled meanwhile, or the program ends, it is stopped, unless its answer is
        lost: then the log says that it may be there.

        Args:
            volume: name of the volume.
            read_only: whether nothing of it is saved.
            allow_writable: take the caller's own read-write session for a read-only one, too, if
                there is one.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
            VolumeSessionUnavailableError: there can be no session: no SSH key, no cluster, or 20.
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        return await self._create(volume, read_only, allow_writable, team_id)

    async def _create(
        self,
        volume: str,
        read_only: bool,
        allow_writable: bool,
        team_id: str | None,
        obligation: Obligation | None = None,
    ) -> VolumeSession:
        path = {"name": check_volume_name(volume)}
        body = CreateVolumeSessionBody(read_only=bool(read_only))
        if allow_writable:
            body.allow_writable = True
        before = {session.id for session in await self.list(volume, team_id=team_id)}

        async def find() -> Sequence[VolumeSession]:
            found = await self.list(volume, team_id=team_id)
            fitting = [each for each in found if each.read_only == read_only]
            return [each for each in fitting if each.id not in before]

        async def discard(session: VolumeSession) -> None:
            if session.id not in before and session.read_only == read_only:
                await self._discard(volume, session.id, team_id)

        with typed_refusals():
            return await create_unkeyed(
                self._transport,
                CREATE_VOLUME_SESSION,
                VolumeSession,
                path=path,
                body=encode_request(body),
                team=team_id,
                description=f"Session on volume {volume!r}",
                discard=discard,
                # What is found may be another program's, which no block may end.
                find=find if obligation is None else None,
                marked=False,
                obligation=obligation,
            )

    async def _discard(self, volume: str, session_id: str, team_id: str | None) -> None:
        try:
            await self.stop(volume, session_id, team_id=team_id)
        except NotFoundError:
            return  # it is over

    def open(
        self,
        volume: str,
        *,
        read_only: bool = True,
        timeout: float = 3600,
        team_id: str | None = None,
    ) -> AsyncOpenVolumeSession:
        """Has a session for a block of code, and stops it at the block's end, however it ends.

        ``async with client.volumes.sessions.open("research") as session:`` waits until it can be
        connected to, as ``session.ssh_connection`` says.
        When the answer to its create is lost, the error says that it may be there, as `list`
        shows; no session of another program is taken for it.

        Args:
            volume: name of the volume.
            read_only: whether nothing of it is saved; else its changes are, after the block.
            timeout: seconds until it can be used, above 0; the whole volume is copied first.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            ValueError: a wrong argument; nothing was sent.
        """
        check_volume_name(volume)
        seconds = check_seconds("timeout", timeout)
        return AsyncOpenVolumeSession(self, volume, bool(read_only), seconds, team_id)

    async def list(
        self, volume: str, *, team_id: str | None = None
    ) -> builtins.list[VolumeSession]:
        """Lists the caller's sessions that keep a volume from being deleted, newest first.

        Args:
            volume: name of the volume.
            team_id: its team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        path = {"name": check_volume_name(volume)}
        found = await self._transport.request(
            LIST_VOLUME_SESSIONS, VolumeSessionList, path=path, team=team_id
        )
        return found.sessions

    async def get(
        self, volume: str, session_id: str, *, team_id: str | None = None
    ) -> VolumeSession:
        """Reads a session.

        Args:
            volume: name of the volume.
            session_id: the session.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume or session.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_VOLUME_SESSION, VolumeSession, path=_path(volume, session_id), team=team_id
        )

    async def wait_until_ready(
        self,
        volume: str,
        session_id: str,
        *,
        timeout: float = 3600,
        team_id: str | None = None,
    ) -> VolumeSession:
        """Waits until a session can be connected to.

        Args:
            volume: name of the volume.
            session_id: the session.
            timeout: seconds, above 0; the whole volume is copied first.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeSessionError: it ended before that.
            VolumeSessionTimeoutError: a ``TimeoutError``; it goes on.
            NotFoundError: there is no such volume or session.
            APIError: its state could not be read.
        """
        _path(volume, session_id)
        check_seconds("timeout", timeout)
        key = (team_id, volume, session_id)
        return await wait_until_session_ready(self._schedules.get(), key, timeout)

    async def stop(self, volume: str, session_id: str, *, team_id: str | None = None) -> None:
        """Stops a session; one that stops already goes on to do so.

        A read-write one then saves its changes, deletions included, and holds the volume until
        that is done: `list` leaves it out from then on.

        Args:
            volume: name of the volume.
            session_id: the session.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume or session.
            APIError: any other failure.
        """
        await self._transport.request(
            STOP_VOLUME_SESSION, path=_path(volume, session_id), team=team_id
        )

    async def _look(self, keys: builtins.list[Key]) -> Mapping[Key, VolumeSession]:
        """States for the poll schedule, which asks for one session at a time."""
        return {key: await self.get(key[1], key[2], team_id=key[0]) for key in keys}

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)


class AsyncOpenVolumeSession(AsyncScope):
    """A session that is stopped at the end of a block. Made by `AsyncVolumeSessions.open`.

    Args:
        sessions: those of the client.
        volume: name of the volume.
        read_only: whether nothing of it is saved.
        timeout: seconds until it can be used.
        team_id: the volume's team.
    """

    def __init__(
        self,
        sessions: AsyncVolumeSessions,
        volume: str,
        read_only: bool,
        timeout: float,
        team_id: str | None,
    ) -> None:
        super().__init__(sessions._transport, f"Session on volume {volume!r}")
        self._sessions = sessions
        self._volume = volume
        self._read_only = read_only
        self._timeout = timeout
        self._team_id = team_id
        self._session: VolumeSession | None = None

    @property
    def session(self) -> VolumeSession:
        """The session as it was when it could be used.

        Raises:
            RuntimeError: the block is not entered.
        """
        if self._session is None:
            raise RuntimeError("enter the session with `with` or `async with` first")
        return self._session

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def ssh_connection(self) -> str:
        """Where to connect to: ``user@host``, maybe with `` -p PORT``."""
        found = self.session.ssh_connection
        assert found is not None
        return found

    async def _open(self, obligation: Obligation) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        made = await self._sessions._create(
            self._volume, self._read_only, False, self._team_id, obligation
        )
        self._made = True
        left = max(deadline - loop.time(), LEAST_WAIT)
        self._session = await self._sessions.wait_until_ready(
            self._volume, made.id, timeout=left, team_id=self._team_id
        )

    def __repr__(self) -> str:
        return f"AsyncOpenVolumeSession(volume={self._volume!r})"


def _path(volume: str, session_id: str) -> dict[str, str]:
    return {"name": check_volume_name(volume), "session_id": check_id("session_id", session_id)}
