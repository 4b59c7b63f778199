"""Keys for a transfer, and the hold on the volume that those of a put come with."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from functools import partial

from prime_core.creation import create_unkeyed, owe_later
from prime_core.errors import APIError, APIResponseError
from prime_core.models import encode_request
from prime_core.reaper import Obligation
from prime_core.sync import across, in_thread
from prime_core.transport import AsyncTransport
from prime_train.errors import VolumeBusyError, VolumeTransferError
from prime_train.models.volume_transfers import (
    ReleaseTransferBody,
    RouteTransferBody,
    VolumeTransferRoute,
)
from prime_train.operations import RELEASE_VOLUME_TRANSFER, ROUTE_VOLUME_TRANSFER
from prime_train.transfers.journals import Journal
from prime_train.transfers.keys import KeyRing, TemporaryKeys, keys_of
from prime_train.volume_refusals import typed_refusals

__all__ = ["TransferRoutes"]

# Asking again for a get's keys, or for those of a put that has its lease, changes nothing.
_REPEATABLE = dataclasses.replace(ROUTE_VOLUME_TRANSFER, safety="safe")
# How long the end of a put waits for its release, which goes on without it.
RELEASE_PATIENCE = 15.0


class TransferRoutes:
    """Asks for the keys of a volume's transfers.

    Args:
        transport: the client's.
        volume: the volume's name.
        team: the caller's team for it.
    """

    def __init__(self, transport: AsyncTransport, volume: str, team: str | None) -> None:
        self._transport = transport
        self._volume = volume
        self._team = team

    async def to_read(self, path: str = "") -> KeyRing:
        """Keys that read what is under a path; by default the whole volume.

        Raises:
            VolumeBusyError: the caller's own session has the files.
        """

        async def ask() -> TemporaryKeys:
            body = RouteTransferBody(mode="get", path=path)
            return keys_of(self._stored(await self.ask(body)))

        return KeyRing(await ask(), ask)

    @contextlib.asynccontextmanager
    async def to_write(
        self, path: str, entries: Sequence[str] | None, journal: Journal
    ) -> AsyncIterator[KeyRing]:
        """Keys that write to a path, and the volume's hold until they are left.

        It is released on every road: by its own task, which no cancellation reaches; at the
        program's end; and, after a kill, by the platform, within 15 minutes. Until then the same
        call takes it over.

        Args:
            path: where to.
            entries: of the root, the names in it that are written.
            journal: knows the hold of an earlier call that was killed.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
        """
        body = RouteTransferBody(
            mode="put", path=path, entries=None if entries is None else list(entries)
        )
        held = owe_later(self._transport, f"The upload to volume {self._volume!r}")
        try:
            route = await self._take_over(body, journal, held) or await self.take(body, held)
            keys = keys_of(self._stored(route))
            if keys.lease_id is None:
                raise APIResponseError("The platform's route for a put names no hold.")
            await in_thread(journal.add)({"lease": keys.lease_id})

            async def renew() -> TemporaryKeys:
                return await self._renew(body, ring, held)

            ring = KeyRing(keys, renew)
            yield ring
        finally:
            await _let_go(held)

    async def take(
        self, body: RouteTransferBody, held: Obligation | None = None
    ) -> VolumeTransferRoute:
        """Asks for the keys of a put, and with them for the volume.

        Args:
            body: what is put where.
            held: releases it once it is undone; without one, only a caller who does not get the
                keys has them released.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
        """
        with typed_refusals():
            return await create_unkeyed(
                self._transport,
                ROUTE_VOLUME_TRANSFER,
                VolumeTransferRoute,
                path={"name": self._volume},
                body=encode_request(body),
                team=self._team,
                description=f"A hold of 15 minutes on volume {self._volume!r}",
                discard=self._discard,
                obligation=held,
            )

    async def _take_over(
        self, body: RouteTransferBody, journal: Journal, held: Obligation
    ) -> VolumeTransferRoute | None:
        """Goes on with the hold of a call that was killed, if it has not lapsed."""
        lease = next((line["lease"] for line in reversed(journal.lines) if line.get("lease")), None)
        if not isinstance(lease, str):
            return None
        held.undo = partial(self.release, lease)
        try:
            return await self.ask(body.model_copy(update={"lease_id": lease}))
        except APIError as error:
            if error.status_code is None or error.status_code >= 500:
                raise
            # It has lapsed, or was for other paths. Nobody uses it: the journal is ours.
            await self.release(lease)
            return None

    async def _renew(
        self, body: RouteTransferBody, ring: KeyRing, held: Obligation
    ) -> TemporaryKeys:
        lease = ring.lease_id
        route = await self.ask(body.model_copy(update={"lease_id": lease}))
        if route.via != "r2":
            raise VolumeTransferError("A session took the volume over: stop it and put again")
        keys = keys_of(route)
        if keys.lease_id is None:
            keys = dataclasses.replace(keys, lease_id=lease)
        elif keys.lease_id != lease:
            held.undo = partial(self.release, keys.lease_id)
        return keys

    async def ask(self, body: RouteTransferBody) -> VolumeTransferRoute:
        """Asks for the keys of a get, or again for those of a put that has the volume.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
        """
        with typed_refusals():
            return await self._transport.request(
                _REPEATABLE,
                VolumeTransferRoute,
                path={"name": self._volume},
                body=encode_request(body),
                team=self._team,
            )

    def _stored(self, route: VolumeTransferRoute) -> VolumeTransferRoute:
        """A route to the object store; sessions are copied from with a shell."""
        if route.via not in ("r2", "session"):
            raise APIResponseError("The platform names a kind of transfer that is not known here.")
        if route.via == "session":
            raise VolumeBusyError(
                f"Your open session has volume {self._volume!r}: stop it, wait for its last sync, "
                "and try again"
            )
        return route

    async def _discard(self, route: VolumeTransferRoute) -> None:
        if route.lease_id is not None:
            await self.release(route.lease_id)

    async def release(self, lease: str) -> None:
        """Ends a put's hold on the volume; harmless when it has ended."""
        await self._transport.request(
            RELEASE_VOLUME_TRANSFER,
            path={"name": self._volume},
            body=encode_request(ReleaseTransferBody(lease_id=lease)),
            team=self._team,
        )


async def _let_go(held: Obligation) -> None:
    """Releases a hold, and waits for that as long as it makes sense."""
    released = asyncio.ensure_future(across(held.call_in()))
    try:
        await asyncio.wait([released], timeout=RELEASE_PATIENCE)
    finally:
        if released.done() and not released.cancelled():
            released.exception()  # the reaper has said what went wrong
        released.cancel()
