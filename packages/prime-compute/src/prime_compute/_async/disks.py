"""Disks: storage that outlives pods."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Mapping, Sequence

from prime_compute._async.sessions import AsyncDiskSession
from prime_compute.errors import DiskWaitTimeoutError
from prime_compute.models import Disk, DiskList, DiskRequest, RenamedDisk, UpdateDiskRequest
from prime_compute.models.disk_requests import disk_body
from prime_compute.operations import CREATE_DISK, DELETE_DISK, GET_DISK, LIST_DISKS, UPDATE_DISK
from prime_compute.waiting import is_transient, wait_until_detached, wait_until_disk_active
from prime_core._async.api_client import AsyncAPIClient
from prime_core._async.resource import AsyncResource
from prime_core.arguments import check_id, check_seconds
from prime_core.creation import create_unkeyed
from prime_core.errors import ConflictError, NotFoundError
from prime_core.marks import carries, described, new_mark
from prime_core.models import encode_request
from prime_core.offsets import check_window, iterate_offsets
from prime_core.per_loop import PerLoop
from prime_core.polling import PollSchedule, close_schedules
from prime_core.reaper import Obligation

__all__ = ["AsyncDisks"]

# The most disks of one request.
PAGE = 200
# Before a disk that is in use is tried to be deleted again.
DETACH_PAUSE = 1.0


class AsyncDisks(AsyncResource):
    """Creates, reads, renames and deletes disks. Made by `AsyncComputeClient.disks`.

    A disk is attached when a pod is created, and costs money until it is deleted.

    Follows the documented page "api-reference/managing-disks".

    Args:
        client: the connections.
    """

    def __init__(self, client: AsyncAPIClient) -> None:
        super().__init__(client)
        self._schedules = PerLoop(lambda: PollSchedule(self._look, transient=is_transient, batch=1))

    async def create(self, request: DiskRequest) -> Disk:
        """Creates a disk; it costs money until it is deleted. `session` does both.

        It is sent once, under a name with a mark; what is said of a lost answer, a cancellation
        and the program's end at `AsyncPods.create` holds here too.

        Args:
            request: what to create, from `DiskRequest.from_offer`.

        Returns:
            The disk, usually PROVISIONING; see `wait_until_active`.

        Raises:
            PaymentRequiredError: the wallet is empty.
            ConflictError: the offer is sold out; `BadRequestError` may say so too.
            ValidationError: the platform found the request invalid.
            APIError: any other failure.
        """
        return await self._create(request)

    async def _create(self, request: DiskRequest, obligation: Obligation | None = None) -> Disk:
        """Creates a disk; an obligation that is given is kept, and deletes it later."""
        if not isinstance(request, DiskRequest):
            raise TypeError(f"pass a DiskRequest, not {type(request).__name__}")
        mark = new_mark()

        async def find() -> builtins.list[Disk]:
            found = [disk async for disk in self.iter() if carries(disk.name, mark)]
            return sorted(found, key=lambda disk: disk.created_at)

        return await create_unkeyed(
            self._transport,
            CREATE_DISK,
            Disk,
            body=disk_body(request, mark),
            team=request.team_id,
            description=described(request.name, mark, "disk"),
            discard=lambda disk: self._discard(disk.id),
            find=find,
            obligation=obligation,
        )

    async def _discard(self, disk_id: str) -> None:
        """Deletes a disk as soon as no pod has it; the reaper bounds that in time."""
        while True:
            try:
                await self.delete(disk_id)
                return
            except NotFoundError:
                return
            except ConflictError:
                await asyncio.sleep(DETACH_PAUSE)

    def session(self, request: DiskRequest, *, timeout: float = 600) -> AsyncDiskSession:
        """Creates a disk for a block of code, as `AsyncPods.session` does with a pod.

        Enter it before the session of a pod that uses it: then the pod is deleted first, and
        the disk once it is detached, which may take two minutes at most.

        Args:
            request: what to create.
            timeout: seconds from entering the block until it is ACTIVE, above 0; else it is
                deleted again.

        Raises:
            ValueError: a wrong argument; nothing was sent.
        """
        if not isinstance(request, DiskRequest):
            raise TypeError(f"pass a DiskRequest, not {type(request).__name__}")
        return AsyncDiskSession(self, request, check_seconds("timeout", timeout))

    async def get(self, disk_id: str) -> Disk:
        """Reads a disk.

        Args:
            disk_id: the disk.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            APIError: any other failure.
        """
        return await self._transport.request(
            GET_DISK, Disk, path={"disk_id": check_id("disk_id", disk_id)}
        )

    async def list(self, *, offset: int = 0, limit: int = 50) -> DiskList:
        """Reads a part of the list of disks; `iter` reads all of them.

        Args:
            offset: disks to skip, at least 0.
            limit: most disks to return, 1 to 200.

        Raises:
            ValueError: a number out of its range; nothing was sent.
            APIError: any other failure.
        """
        check_window(offset, limit, most=PAGE)
        query = {"offset": offset, "limit": limit}
        return await self._transport.request(LIST_DISKS, DiskList, query=query)

    async def iter(self) -> AsyncIterator[Disk]:
        """Reads all disks of the key's owner, part after part."""

        async def fetch(offset: int) -> tuple[Sequence[Disk], int]:
            page = await self.list(offset=offset, limit=PAGE)
            return page.data, page.total_count

        async for disk in iterate_offsets(fetch, PAGE, lambda disk: disk.id):
            yield disk

    async def rename(self, disk_id: str, name: str) -> RenamedDisk:
        """Gives a disk another name; nothing else of it can change.

        Args:
            disk_id: the disk.
            name: 1 to 255 characters.

        Raises:
            NotFoundError: there is none of this id that the caller can see.
            ValueError: an impossible name; nothing was sent.
            APIError: any other failure.
        """
        path = {"disk_id": check_id("disk_id", disk_id)}
        body = encode_request(UpdateDiskRequest(name=name))
        return await self._transport.request(UPDATE_DISK, RenamedDisk, path=path, body=body)

    async def delete(self, disk_id: str, *, wait_for_detachment: float | None = None) -> None:
        """Deletes a disk and all that is on it, for ever.

        After a pod has ended, its disks are detached with a delay.

        Args:
            disk_id: the disk.
            wait_for_detachment: seconds to wait until nothing has it, above 0; None doesn't
                wait.

        Raises:
            ConflictError: it is attached, or its state forbids it.
            DiskWaitTimeoutError: a ``TimeoutError``; it is still attached after that time.
            NotFoundError: there is none of this id that the caller can see.
            ValueError: a wrong argument; nothing was sent.
            APIError: any other failure.
        """
        path = {"disk_id": check_id("disk_id", disk_id)}
        if wait_for_detachment is None:
            await self._transport.request(DELETE_DISK, path=path)
            return
        loop = asyncio.get_running_loop()
        deadline = loop.time() + check_seconds("wait_for_detachment", wait_for_detachment)
        while True:
            await wait_until_detached(self._schedules.get(), disk_id, deadline)
            try:
                await self._transport.request(DELETE_DISK, path=path)
                return
            except ConflictError as error:  # it may lag behind what it shows
                if loop.time() + DETACH_PAUSE >= deadline:
                    raise DiskWaitTimeoutError(disk_id, "could not be deleted in time") from error
            await asyncio.sleep(DETACH_PAUSE)

    async def wait_until_active(self, disk_id: str, *, timeout: float = 600) -> Disk:
        """Waits until a disk can be attached.

        Args:
            disk_id: the disk.
            timeout: seconds, above 0.

        Raises:
            DiskWaitTimeoutError: a ``TimeoutError``; not in time.
            DiskNotActiveError: it was terminated.
            NotFoundError: there is none of this id that the caller can see.
            ValueError: a wrong argument; nothing was sent.
            APIError: its state could not be read.
        """
        check_id("disk_id", disk_id)
        deadline = asyncio.get_running_loop().time() + check_seconds("timeout", timeout)
        return await self._wait_until_active(disk_id, deadline, timeout)

    async def _wait_until_active(self, disk_id: str, deadline: float, timeout: float) -> Disk:
        """Waits until a loop time, which the error calls ``timeout`` seconds."""
        return await wait_until_disk_active(self._schedules.get(), disk_id, deadline, timeout)

    async def _look(self, disk_ids: builtins.list[str]) -> Mapping[str, Disk | Exception]:
        """States for the poll schedule, which asks for one disk at a time."""
        return {disk_id: await self.get(disk_id) for disk_id in disk_ids}

    def _close_schedules(self) -> None:
        close_schedules(self._schedules)
