"""Volumes as they are made, listed, grown and deleted."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Mapping, Sequence

from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_seconds
from prime_core.creation import create_unkeyed
from prime_core.decoding import read_object
from prime_core.errors import (
    APIConnectionError,
    APIResponseError,
    ConflictError,
    NotFoundError,
    PrimeError,
    ServerError,
)
from prime_core.models import encode_request
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_core.reaper import Obligation, reaper
from prime_train._async.volume_sessions import AsyncVolumeSessions
from prime_train.configs.sizes import check_volume_name, check_volume_size
from prime_train.errors import VolumeExistsError
from prime_train.hosted_waiting import is_transient
from prime_train.models.volume_sessions import VolumeSession
from prime_train.models.volumes import (
    CreateVolumeBody,
    ExpandVolumeBody,
    Volume,
    VolumeList,
    VolumeUsage,
)
from prime_train.operations import (
    CREATE_VOLUME,
    DELETE_VOLUME,
    EXPAND_VOLUME,
    GET_VOLUME_USAGE,
    LIST_VOLUMES,
)
from prime_train.volume_refusals import typed_refusals
from prime_train.volume_waiting import Key, wait_until_volume_ready

__all__ = ["AsyncVolumeLife"]

# Before a new volume that is not wanted is tried to be deleted again.
UNUSED_PAUSE = 1.0
# How long after its volume a warm session begins at most.
WARM_SECONDS = 10.0


class AsyncVolumeLife(AsyncResource):
    """The part of `AsyncVolumes` that makes, lists, grows and deletes them.

    Follows the documented page "hosted-training/volumes".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._volume_schedules: PerLoop[PollSchedule[Key, Volume]] = PerLoop(
            lambda: PollSchedule(self._look_at_volumes, transient=is_transient, batch=1)
        )

    async def create(
        self, name: str, size: str, *, warm: bool = False, team_id: str | None = None
    ) -> Volume:
        """Makes a volume; it costs money by its size, empty or not, until it is deleted.

        `prime_train.volume_price` tells how much. It can be used at once, and it can grow but
        not shrink. The create is sent once. When its answer is lost, the volume is looked for by
        its name, which was free before; an error says that it may be there. When the caller is
        cancelled meanwhile, or the program ends, it is deleted again, if its answer comes and
        nobody uses it by then; else the log says that it may be there.

        Args:
            name: 1 to 40 of a-z, 0-9 and inner hyphens; no other volume of the team has it.
            size: such as ``500Gi`` or ``2Ti``, at most ``20Ti``.
            warm: also start a read-only session, if the team has a cluster and the caller an SSH
                key; it keeps the volume from being deleted until it stops.
            team_id: the owning team; None takes the client's, "" is the personal account.

        Raises:
            VolumeExistsError: the name is taken.
            PaymentRequiredError: the wallet can't pay for it.
            ValueError: a wrong name or size; nothing was sent.
            APIError: any other failure.
        """
        return await self._create(name, size, warm=warm, team_id=team_id)

    async def _create(
        self,
        name: str,
        size: str,
        *,
        warm: bool = False,
        team_id: str | None = None,
        obligation: Obligation | None = None,
    ) -> Volume:
        """Makes a volume for a caller, or for an obligation that answers for it after this."""
        gib = check_volume_size(size)
        body = CreateVolumeBody(name=check_volume_name(name), size=size, warm=bool(warm))
        await self._undone(name)
        before = await self.list(team_id=team_id)
        if any(volume.name == name for volume in before):
            raise VolumeExistsError(f"There is a volume called {name!r}", operation="create_volume")

        async def find() -> Sequence[Volume]:
            # By now a teammate, or another program, may have taken the name.
            found = await self.list(team_id=team_id)
            return [each for each in found if each.name == name and _has_size(each, gib)]

        with typed_refusals():
            return await create_unkeyed(
                self._transport,
                CREATE_VOLUME,
                Volume,
                body=encode_request(body),
                team=team_id,
                description=f"Volume {name!r}",
                discard=lambda volume: self._discard(volume, team_id, warm=warm),
                find=find,
                marked=False,
                obligation=obligation,
            )

    async def _undone(self, name: str) -> None:
        """Waits while an earlier create of the name, which was cancelled, is being undone."""
        await reaper.drain(self._transport, about=f"Volume {name!r}")

    async def _discard(self, made: Volume, team_id: str | None, *, warm: bool) -> None:
        """Deletes a new volume, unless it is gone or in use; the reaper bounds that in time.

        Another of the name is left alone: each deletion is sent once, right after a look.

        Raises:
            VolumeBusyError: it is in use by now, and not by its warm session alone.
            PrimeError: it can't be told from another of its name.
        """
        path = {"name": made.name}
        warmed: str | None = None  # the warm session that was stopped
        while True:
            found = [each for each in await self.list(team_id=team_id) if each.name == made.name]
            if not found or not _is_same(found[0], made):
                return
            call = self._transport.prepare(DELETE_VOLUME, read_object, path, team=team_id)
            call.max_attempts = 1
            try:
                with typed_refusals():
                    await self._transport.perform(call)
                return
            except NotFoundError:
                return
            except ConflictError:
                if not warm:
                    raise
                warmed = await self._stop_warm_session(made, team_id, warmed)
                if warmed is None:
                    raise
            await asyncio.sleep(UNUSED_PAUSE)

    async def _stop_warm_session(
        self, made: Volume, team_id: str | None, stopped: str | None
    ) -> str | None:
        """Stops the session that a volume was made with, and returns its id.

        None when there are others, or none at all that could be it.
        """
        sessions = AsyncVolumeSessions(self._client)
        listed = await sessions.list(made.name, team_id=team_id)
        found = [each for each in listed if each.id != stopped]
        if stopped is not None:
            return None if found else stopped
        if len(found) != 1 or not _began_with(found[0], made):
            return None
        await sessions._discard(made.name, found[0].id, team_id)
        return found[0].id

    async def list(self, *, team_id: str | None = None) -> builtins.list[Volume]:
        """Lists the volumes of a team or of the caller.

        Args:
            team_id: the team; None takes the client's, "" is the personal account.

        Raises:
            APIError: the call failed.
        """
        found = await self._transport.request(LIST_VOLUMES, VolumeList, team=team_id)
        return found.volumes

    async def get_volume(self, name: str, *, team_id: str | None = None) -> Volume:
        """Reads a volume, out of the list: the platform has no route for one.

        Args:
            name: the volume.
            team_id: its team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        check_volume_name(name)
        for volume in await self.list(team_id=team_id):
            if volume.name == name:
                return volume
        raise NotFoundError(f"There is no volume called {name!r}", operation="list_volumes")

    async def wait_until_ready(
        self, name: str, *, timeout: float = 180, team_id: str | None = None
    ) -> Volume:
        """Waits until a volume is RUNNING, as new ones are at once.

        Args:
            name: the volume.
            timeout: seconds, above 0.
            team_id: its team; None takes the client's, "" is the personal account.

        Raises:
            VolumeNotReadyError: it failed, or is being deleted.
            VolumeWaitTimeoutError: a ``TimeoutError``; it costs money all the same.
            NotFoundError: there is no such volume.
            APIError: its state could not be read.
        """
        key = (team_id, check_volume_name(name), "")
        check_seconds("timeout", timeout)
        return await wait_until_volume_ready(self._volume_schedules.get(), key, timeout)

    async def expand(self, name: str, size: str, *, team_id: str | None = None) -> Volume:
        """Lets a volume grow; the new size is paid for from then on, and can't be undone.

        Runs and sessions under way keep the old size.

        Args:
            name: the volume.
            size: larger than its present one, such as ``2Ti``; at most ``20Ti``.
            team_id: its team; None takes the client's, "" is the personal account.

        Raises:
            BadRequestError: it is as large already, or larger.
            PaymentRequiredError: the wallet can't pay for it.
            NotFoundError: there is no such volume.
            ValueError: a wrong size; nothing was sent.
            APIError: any other failure.
        """
        wanted = check_volume_size(size)
        path = {"name": check_volume_name(name)}
        body = encode_request(ExpandVolumeBody(size=size))
        try:
            with typed_refusals():
                return await self._transport.request(
                    EXPAND_VOLUME, Volume, path=path, body=body, team=team_id
                )
        except (APIConnectionError, APIResponseError, ServerError):
            # It may have been done: sent again, it would be refused for that.
            found = await self.get_volume(name, team_id=team_id)
            if not _has_size(found, wanted):
                raise
            return found

    async def delete(self, name: str, *, team_id: str | None = None) -> None:
        """Deletes a volume with all that is on it, and ends its cost.

        The deletion may go on for a while; one that failed (TOMBSTONED) is asked for again.

        Args:
            name: the volume.
            team_id: its team, of which the caller must be an admin; None takes the client's, ""
                is the personal account.

        Raises:
            VolumeBusyError: a run, a session or an upload uses it.
            ForbiddenError: the caller is no admin of the team.
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        path = {"name": check_volume_name(name)}
        with typed_refusals():
            await self._transport.request(DELETE_VOLUME, path=path, team=team_id)

    async def usage(self, *, team_id: str | None = None) -> VolumeUsage:
        """Reads totals over the volumes of a team or of the caller.

        Args:
            team_id: the team; None takes the client's, "" is the personal account.

        Raises:
            APIError: the call failed.
        """
        return await self._transport.request(GET_VOLUME_USAGE, VolumeUsage, team=team_id)

    async def _look_at_volumes(self, keys: builtins.list[Key]) -> Mapping[Key, Volume]:
        """States for the poll schedule, which asks for one volume at a time."""
        return {key: await self.get_volume(key[1], team_id=key[0]) for key in keys}

    def _close_schedules(self) -> None:
        close_schedules(self._volume_schedules)


def _is_same(found: Volume, made: Volume) -> bool:
    """Whether a volume of the name is the one that was made.

    Raises:
        PrimeError: that can't be told.
    """
    if found.created_at == made.created_at and made.created_at is not None:
        return True
    times = [each.created_at and each.created_at.replace(microsecond=0) for each in (found, made)]
    if None in times or times[0] == times[1]:
        raise PrimeError("The platform does not tell when it was made: it may be another by now")
    return False


def _began_with(session: VolumeSession, made: Volume) -> bool:
    """Whether a session can be the warm one of a volume."""
    if not session.read_only or session.created_at is None or made.created_at is None:
        return False
    return abs((session.created_at - made.created_at).total_seconds()) < WARM_SECONDS


def _has_size(volume: Volume, gib: int) -> bool:
    """Whether a volume has this size, in either unit."""
    try:
        return volume.size is not None and check_volume_size(volume.size) == gib
    except ValueError:  # as no platform of today writes it
        return False
