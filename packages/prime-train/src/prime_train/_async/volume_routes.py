"""Where transfers of files go, for programs that bring a store's client of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_texts
from prime_train.configs.sizes import check_volume_name
from prime_train.errors import VolumePathError
from prime_train.models.volume_transfers import RouteTransferBody, VolumeTransferRoute
from prime_train.transfers.leases import TransferRoutes
from prime_train.transfers.paths import MOST_ENTRIES, check_name, check_writable, volume_path

__all__ = ["AsyncVolumeRoutes"]


class AsyncVolumeRoutes(AsyncResource):
    """The part of `AsyncVolumes` that asks where transfers go. `put` and `get` do all of it."""

    async def route_transfer(
        self,
        volume: str,
        mode: Literal["get", "put"],
        path: str = "",
        *,
        entries: Sequence[str] | None = None,
        lease_id: str | None = None,
        team_id: str | None = None,
    ) -> VolumeTransferRoute:
        """Asks where a transfer goes, and for temporary keys to it.

        The keys of a put hold the volume for 15 minutes: ask again with its ``lease_id`` before
        that is over, and release it with `release_transfer` at the end. When the caller is
        cancelled meanwhile, or the program ends, it is released.

        Args:
            volume: name of the volume.
            mode: ``get`` to read, ``put`` to write.
            path: what to transfer, from the volume's root on; a trailing slash means what is in
                a folder.
            entries: of a put to the root, the names in it that are written, at most 256.
            lease_id: the put that goes on.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeBusyError: somebody else writes to the volume.
            VolumePathError: a path that can't be, or can't be written to; nothing was sent.
            NotFoundError: there is no such volume.
            ValueError: another wrong argument; nothing was sent.
            APIError: any other failure.
        """
        if mode not in ("get", "put"):
            raise ValueError(f"mode is 'get' or 'put', not {mode!r}")
        if mode == "get" and not (entries is None and lease_id is None):
            raise ValueError("entries and lease_id belong to a put")
        place = str(volume_path(path))
        body = RouteTransferBody(mode=mode, path=place)
        if mode == "put":
            body.entries = _entries(place, entries)
        if lease_id is not None:
            body.lease_id = check_id("lease_id", lease_id)
        routes = self._routes(volume, team_id)
        if mode == "get" or lease_id is not None:
            return await routes.ask(body)
        return await routes.take(body)

    async def release_transfer(
        self, volume: str, lease_id: str, *, team_id: str | None = None
    ) -> None:
        """Ends a put, so that others may write to the volume; harmless when it has ended.

        Args:
            volume: name of the volume.
            lease_id: the put.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        await self._routes(volume, team_id).release(check_id("lease_id", lease_id))

    def _routes(self, volume: str, team_id: str | None) -> TransferRoutes:
        return TransferRoutes(self._transport, check_volume_name(volume), team_id)


def _entries(path: str, entries: Sequence[str] | None) -> list[str] | None:
    """What a put writes to the root.

    Raises:
        VolumePathError: it can't be written.
    """
    if path:
        check_writable(path)
        if entries is not None:
            raise ValueError("entries belong to a put to the root")
        return None
    names = [check_writable(check_name(each)) for each in check_texts("entries", entries or ())]
    if not 1 <= len(names) <= MOST_ENTRIES:
        raise VolumePathError(f"a put to the root names 1 to {MOST_ENTRIES} entries")
    return names
