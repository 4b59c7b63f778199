"""Pods and disks that live as long as a block of code."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prime_compute.models import (
    Disk,
    DiskRequest,
    Pod,
    PodRequest,
    PodStatusSnapshot,
)
from prime_compute.ssh import SSHConnection
from prime_core._async.scopes import AsyncScope
from prime_core.reaper import Obligation

if TYPE_CHECKING:
    from prime_compute._async.disks import AsyncDisks
    from prime_compute._async.pods import AsyncPods

__all__ = ["AsyncDiskSession", "AsyncPodSession"]


class AsyncPodSession(AsyncScope):
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


class AsyncDiskSession(AsyncScope):
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
