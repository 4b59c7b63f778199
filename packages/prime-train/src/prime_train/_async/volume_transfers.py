"""Files of volumes: put, got and listed."""

from __future__ import annotations

import builtins
import os
from collections.abc import Awaitable, Callable, Sequence

from prime_core._async.resource import AsyncResource
from prime_core.progress import transfer_progress
from prime_core.sync import in_thread
from prime_core.uploads import Progress
from prime_train.configs.sizes import GIB, check_volume_name, check_volume_size
from prime_train.errors import VolumeFileNotFoundError
from prime_train.models.volume_transfers import (
    VolumeDiskUsage,
    VolumeEntry,
    VolumeGet,
    VolumePut,
)
from prime_train.models.volumes import VolumeList
from prime_train.operations import LIST_VOLUMES
from prime_train.transfers.downloads import Downloads
from prime_train.transfers.journals import Journal, open_journal
from prime_train.transfers.landing import places
from prime_train.transfers.leases import TransferRoutes
from prime_train.transfers.meters import Meter
from prime_train.transfers.paths import (
    is_ignored,
    source_path,
    volume_path,
)
from prime_train.transfers.planning import (
    Source,
    plan_download,
    plan_upload,
    scan,
)
from prime_train.transfers.store import VolumeStore, open_store
from prime_train.transfers.surveys import lone_object, plan_put, readable_root, stored_under
from prime_train.transfers.uploads import Uploads

__all__ = ["AsyncVolumeTransfers"]

FILES_AT_ONCE = 8


class AsyncVolumeTransfers(AsyncResource):
    """The part of `AsyncVolumes` that moves files. It needs ``prime-train[volumes]``.

    Follows the documented page "hosted-training/volumes".
    """

    async def put(
        self,
        source: str | os.PathLike[str],
        volume: str,
        path: str,
        *,
        progress: bool | Progress = False,
        team_id: str | None = None,
    ) -> VolumePut:
        """Uploads a file or a folder to a volume.

        ``put("my-data", "research", "datasets/")`` makes ``datasets/my-data``; so does
        ``put("my-data/", "research", "datasets/my-data")``, which copies what is in the folder.
        Symbolic links in a folder are left out, and counted. Files go straight to the volume's
        object store, 8 at once, large ones in 4 parts at once; each part's checksum is compared.

        The upload holds the volume until it ends, however it ends. A call that broke off, or was
        killed, is gone on with by the same call: what is stored and has not changed since is not
        sent again. What it has done stands in ``~/.prime/transfers``, without any key.

        Args:
            source: a file, or a folder; with a trailing slash, which a `pathlib.Path` drops, what
                is in it.
            volume: name of the volume.
            path: where to, from the volume's root on. A folder goes into it; a file goes into it
                when it is the root, ends in a slash or is a folder, and else gets its name.
            progress: draws a bar where rich is installed, or is told of bytes done and in all.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumePathError: a name can't be on a volume, is under ``runs/``, or takes another's
                place; the source is a link. Nothing was moved.
            VolumeBusyError: a run, a session or another upload writes to the volume.
            SourceChangedError: a file changed while it was sent.
            VolumeChecksumError: a file did not arrive as it was sent.
            FileNotFoundError: there is no such source.
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        target = volume_path(path)
        found = await in_thread(_scan)(source)
        routes = TransferRoutes(self._transport, check_volume_name(volume), team_id)
        plan_upload(found, target, target_is_folder=False)  # refuses what it can without asking
        reading = await open_store(self._transport, await routes.to_read())
        plan = await plan_put(reading, found, target)
        identity = ("put", volume, plan.route, found.path, str(found.contents))
        with transfer_progress(progress, f"put {found.name}") as tell:
            meter = Meter(tell, plan.size)
            meter.begin()

            async def put(journal: Journal) -> None:
                async with routes.to_write(plan.route, plan.entries, journal) as keys:
                    store = await open_store(self._transport, keys)
                    uploads = Uploads(store, reading, journal, meter)
                    await keys.work(uploads.send, plan.uploads, limit=FILES_AT_ONCE)

            if plan.uploads:
                await self._journalled((*identity, *self._scope(team_id)), put)
        files = sum(upload.file is not None for upload in plan.uploads)
        return VolumePut(
            files=files,
            directories=len(plan.uploads) - files,
            bytes=plan.size,
            skipped_links=plan.links,
            resumed_bytes=meter.resumed,
        )

    async def get(
        self,
        volume: str,
        path: str,
        destination: str | os.PathLike[str] = ".",
        *,
        progress: bool | Progress = False,
        team_id: str | None = None,
    ) -> VolumeGet:
        """Downloads a file or a folder of a volume, as it was last saved.

        ``get("research", "datasets/my-data", "here")`` makes ``here/my-data``; so does
        ``get("research", "datasets/my-data/", "here/my-data")``, which fetches what is in it. A
        file goes into a destination that is a folder or ends in a slash, and else takes its name.
        Each is written beside its place, compared with its checksum, and then put there with its
        time. A link is never written through.

        A call that broke off, or was killed, is gone on with by the same call: what is here is
        not fetched again.

        Args:
            volume: name of the volume.
            path: what to fetch, from the volume's root on; ``/`` is all of it.
            destination: where to; the current folder by default.
            progress: draws a bar where rich is installed, or is told of bytes done and in all.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeFileNotFoundError: there is nothing of that path.
            VolumePathError: a link, a file or a folder here is in the way. Nothing was moved.
            VolumeChecksumError: a file did not arrive as it was stored; it was thrown away.
            VolumeTransferError: a file changed on the volume meanwhile.
            VolumeBusyError: an open session of the caller's has the files.
            NotFoundError: there is no such volume.
            APIError: any other failure.
        """
        source = volume_path(path)
        routes = TransferRoutes(self._transport, check_volume_name(volume), team_id)
        keys = await routes.to_read(readable_root(source))
        store = await open_store(self._transport, keys)
        stored = await stored_under(store, source)
        plan = plan_download(source, stored)
        if not stored and source.parts:
            raise VolumeFileNotFoundError(f"There is no {path!r} on volume {volume!r}")
        root, found = await in_thread(places)(plan, destination)
        identity = ("get", volume, str(source), root)
        with transfer_progress(progress, f"get {path}") as tell:
            meter = Meter(tell, plan.size)
            meter.begin()

            async def get(journal: Journal) -> None:
                downloads = Downloads(store, journal, meter)
                await keys.work(downloads.fetch, found, limit=FILES_AT_ONCE)

            await self._journalled((*identity, *self._scope(team_id)), get)
        folders = sum(place.download.is_folder for place in found)
        return VolumeGet(
            files=len(found) - folders,
            directories=folders,
            bytes=plan.size,
            ignored=plan.ignored,
            resumed_bytes=meter.resumed,
        )

    async def ls(
        self, volume: str, path: str = "/", *, team_id: str | None = None
    ) -> builtins.list[VolumeEntry]:
        """Lists what is in a folder of a volume, or a file, as it was last saved.

        Args:
            volume: name of the volume.
            path: from the volume's root on.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeFileNotFoundError: there is nothing of that path.
            VolumeBusyError: an open session of the caller's has the files.
            APIError: any other failure.
        """
        source = volume_path(path)
        store = await self._readable(volume, team_id, readable_root(source))
        text = "/".join(source.parts)
        objects, folders = await store.list_folder(f"{text}/" if text else "")
        entries = [VolumeEntry(folder, "directory") for folder in folders if not is_ignored(folder)]
        entries += [
            VolumeEntry(found.key, "file", found.size, found.modified)
            for found in objects
            if not is_ignored(found.key) and not found.key.endswith("/")
        ]
        if not objects and not folders and text:
            lone = await lone_object(store, source)
            if lone is None:
                raise VolumeFileNotFoundError(f"There is no {path!r} on volume {volume!r}")
            entries = [VolumeEntry(lone.key, "file", lone.size, lone.modified)]
        return sorted(entries, key=lambda entry: entry.path)

    async def du(
        self, volume: str, path: str = "/", *, team_id: str | None = None
    ) -> VolumeDiskUsage:
        """Counts what fills a volume, as it was last saved.

        A run or session that is still going is not counted. All of the volume is listed, a
        thousand objects a request.

        Follows the documented page "hosted-training/volume-capacity".

        Args:
            volume: name of the volume.
            path: what to count besides the whole; the whole by default.
            team_id: the volume's team; None takes the client's, "" is the personal account.

        Raises:
            VolumeFileNotFoundError: there is nothing of that path.
            VolumeBusyError: an open session of the caller's has the files.
            APIError: any other failure.
        """
        source = volume_path(path)
        store = await self._readable(volume, team_id)
        text = "/".join(source.parts)
        here = [0, 0]
        whole = [0, 0]
        async for found in store.list(""):
            inside = not text or found.key.startswith(f"{text}/")
            if inside or (found.key == text and not source.inside):
                here = [here[0] + found.size, here[1] + 1]
            whole = [whole[0] + found.size, whole[1] + 1]
        if not here[1] and text:
            raise VolumeFileNotFoundError(f"There is no {path!r} on volume {volume!r}")
        size = await self._capacity(volume, team_id)
        capacity = _capacity_bytes(size)
        return VolumeDiskUsage(
            bytes=here[0],
            objects=here[1],
            volume_bytes=whole[0],
            volume_objects=whole[1],
            capacity=size,
            capacity_bytes=capacity,
            used_percent=None if capacity is None else 100 * whole[0] / capacity,
        )

    async def _capacity(self, volume: str, team_id: str | None) -> str | None:
        """The size that a volume's record names."""
        listed = await self._transport.request(LIST_VOLUMES, VolumeList, team=team_id)
        return next((each.size for each in listed.volumes if each.name == volume), None)

    async def _readable(self, volume: str, team_id: str | None, root: str = "") -> VolumeStore:
        routes = TransferRoutes(self._transport, check_volume_name(volume), team_id)
        return await open_store(self._transport, await routes.to_read(root))

    def _scope(self, team_id: str | None) -> tuple[str, str]:
        """What a volume's name is unique in."""
        config = self._transport.config
        return config.base_url, (config.team_id if team_id is None else team_id) or ""

    async def _journalled(
        self, identity: Sequence[str], work: Callable[[Journal], Awaitable[None]]
    ) -> None:
        journal = await in_thread(open_journal)(*identity)
        done = journal.close
        try:
            await work(journal)
            done = journal.finish
        finally:
            await in_thread(done)()


def _capacity_bytes(size: str | None) -> int | None:
    """A size in bytes; one that is written in another way than is documented is not known."""
    try:
        return None if size is None else check_volume_size(size) * GIB
    except ValueError:
        return None


def _scan(source: str | os.PathLike[str]) -> Source:
    return scan(source_path(source))
