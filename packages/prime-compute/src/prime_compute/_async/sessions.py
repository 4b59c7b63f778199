"""Pods and disks that live as long as a block of code."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from typing_extensions import Self

from prime_compute.models import (
    Disk,
    DiskRequest,
    Pod,
    PodRequest,
    PodStatusSnapshot,
)
from prime_compute.ssh import SSHConnection
from prime_core.creation import owe_later
from prime_core.reaper import Obligation
from prime_core.sync import across, when_received
from prime_core.termination import CancelOnTermination, ExitOnTermination
from prime_core.transport import AsyncTransport

if TYPE_CHECKING:
    from prime_compute._async.disks import AsyncDisks
    from prime_compute._async.pods import AsyncPods

__all__ = ["AsyncComputeSession", "AsyncDiskSession", "AsyncPodSession"]


class AsyncComputeSession:
    """Something rented for a block of code; what it is, a subclass says.

    Args:
        transport: the client's.
        description: what is rented, for the log.
    """

    def __init__(self, transport: AsyncTransport, description: str) -> None:
        self._transport = transport
        self._description = description
        self._owed: Obligation | None = None
        self._made = False  # whether there is something to delete, as far as is known
        self._kept = False
        self._guard = CancelOnTermination()
        self._main_thread_guard = ExitOnTermination()  # for the sync twin, see `prime_core.sync`

    def keep(self) -> None:
        """Leaves it alive when the block ends: from now on the caller answers for it."""
        self._kept = True
        if self._owed is not None:
            self._owed.settle()

    async def _open(self, obligation: Obligation) -> None:
        """Creates it and waits until it can be used; notes when it is made."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a session can't be pickled: two would delete the same thing")

    async def __aenter__(self) -> Self:
        if self._owed is not None:
            raise RuntimeError("a session is entered once; make another one")
        self._guard.enter()
        try:
            self._owed = owe_later(self._transport, self._description)
            await self._open(self._owed)
        except BaseException as error:
            await self._leave(error)
            raise
        when_received(_nothing, self._owed.call_in)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave(error)

    async def _leave(self, error: BaseException | None) -> None:
        """Deletes it on the reaper's loop, unless it is kept; waits while it may.

        What may have been made by a create without an answer is not waited for.
        """
        owed = self._owed
        try:
            if owed is not None and not self._kept:
                deleting = owed.call_in()
                if self._made:
                    await across(deleting)
        except Exception:  # logged by the reaper
            self._guard.leave()
            if error is None:
                raise
        except BaseException:
            self._guard.leave(finished=False)
            raise
        else:
            self._guard.leave(finished=owed is None or not owed.owed)


class AsyncPodSession(AsyncComputeSession):
    """A pod that is deleted at the end of a block. Made by `AsyncPods.session`.

    Args:
        pods: the pods of the client.
        request: the pod.
        timeout: seconds until it can be used.
    """

    def __init__(self, pods: AsyncPods, request: PodRequest, timeout: float) -> None:
        super().__init__(pods._transport, f"Pod {request.name or ''!r}")
        self._pods = pods
        self._request = request
        self._timeout = timeout
        self._pod: Pod | None = None
        self._status: PodStatusSnapshot | None = None

    @property
    def id(self) -> str:
        """The pod's id."""
        return self.pod.id

    @property
    def pod(self) -> Pod:
        """The pod as it was created.

        Raises:
            RuntimeError: the session is not entered.
        """
        if self._pod is None:
            raise RuntimeError("enter the session with `with` or `async with` first")
        return self._pod

    @property
    def status(self) -> PodStatusSnapshot:
        """The pod's state when it could be used.

        Raises:
            RuntimeError: the session is not entered.
        """
        if self._status is None:
            raise RuntimeError("enter the session with `with` or `async with` first")
        return self._status

    @property
    def ssh(self) -> tuple[SSHConnection, ...]:
        """How to reach the pod, one connection a node."""
        return self.status.ssh

    async def _open(self, obligation: Obligation) -> None:
        deadline = asyncio.get_running_loop().time() + self._timeout
        self._pod = await self._pods._create(self._request, obligation)
        self._made = True
        self._status = await self._pods._wait_until_active(self._pod.id, deadline, self._timeout)

    def __repr__(self) -> str:
        return f"AsyncPodSession(id={None if self._pod is None else self._pod.id!r})"


class AsyncDiskSession(AsyncComputeSession):
    """A disk that is deleted at the end of a block. Made by `AsyncDisks.session`.

    Args:
        disks: the disks of the client.
        request: the disk.
        timeout: seconds until it can be used.
    """

    def __init__(self, disks: AsyncDisks, request: DiskRequest, timeout: float) -> None:
        super().__init__(disks._transport, f"Disk {request.name or ''!r}")
        self._disks = disks
        self._request = request
        self._timeout = timeout
        self._disk: Disk | None = None

    @property
    def id(self) -> str:
        """The disk's id."""
        return self.disk.id

    @property
    def disk(self) -> Disk:
        """The disk once it was active.

        Raises:
            RuntimeError: the session is not entered.
        """
        if self._disk is None:
            raise RuntimeError("enter the session with `with` or `async with` first")
        return self._disk

    async def _open(self, obligation: Obligation) -> None:
        deadline = asyncio.get_running_loop().time() + self._timeout
        disk = await self._disks._create(self._request, obligation)
        self._made = True
        self._disk = await self._disks._wait_until_active(disk.id, deadline, self._timeout)

    def __repr__(self) -> str:
        return f"AsyncDiskSession(id={None if self._disk is None else self._disk.id!r})"


def _nothing() -> None:
    """The session's end answers for what it made."""
