"""Waiting for pods and disks: what their states on the way mean."""

from __future__ import annotations

from prime_compute.errors import (
    DiskNotActiveError,
    DiskWaitTimeoutError,
    PodGoneError,
    PodInstallationError,
    PodNotActiveError,
    PodWaitTimeoutError,
)
from prime_compute.models.disks import Disk, DiskStatus
from prime_compute.models.pods import InstallationStatus, PodStatus, PodStatusSnapshot
from prime_core.errors import APIConnectionError, RateLimitError, ServerError
from prime_core.polling import PollSchedule, PollTimeout

__all__ = [
    "DiskSchedule",
    "Missing",
    "PodSchedule",
    "is_transient",
    "wait_until_detached",
    "wait_until_disk_active",
    "wait_until_pod_active",
]

# A pod may not be listed yet in the moment after its create: it is gone when it is missed so often.
LOOKS_UNTIL_GONE = 2

_OVER = frozenset({PodStatus.DELETING, PodStatus.TERMINATED})
_FAILED = frozenset({InstallationStatus.ERROR, InstallationStatus.TERMINATED})
_DISK_OVER = frozenset({DiskStatus.DELETING, DiskStatus.TERMINATED})


class Missing:
    """A pod that the platform does not know."""


PodSchedule = PollSchedule[str, PodStatusSnapshot | Missing]
DiskSchedule = PollSchedule[str, Disk]


def is_transient(error: Exception) -> bool:
    """Whether a failure to read states may pass by itself while somebody waits."""
    return isinstance(error, (APIConnectionError, ServerError, RateLimitError))


class _PodLook:
    """Judges what one wait sees of its pod."""

    def __init__(self, pod_id: str) -> None:
        self._pod_id = pod_id
        self._missed = 0
        self.last: PodStatusSnapshot | None = None

    def usable(self, seen: PodStatusSnapshot | Missing) -> bool:
        """Whether the pod is active and can be reached.

        Raises:
            PodNotActiveError: it will not be, unless somebody does something.
        """
        if isinstance(seen, Missing):
            self._missed += 1
            if self._missed >= LOOKS_UNTIL_GONE:
                raise PodGoneError(
                    self._pod_id,
                    "is not known to the platform any more, or never was; `history` tells its end",
                    status=self.status,
                )
            return False
        self._missed, self.last = 0, seen
        if seen.status in _OVER:
            raise PodGoneError(
                self._pod_id, f"has been terminated ({seen.status})", status=seen.status
            )
        if seen.installation_failure or seen.installation_status in _FAILED:
            reason = seen.installation_failure or f"installation {seen.installation_status}"
            raise PodInstallationError(
                self._pod_id, f"was not installed: {reason}", status=seen.status, failure=reason
            )
        try:
            return seen.status == PodStatus.ACTIVE and bool(seen.ssh)
        except ValueError as error:
            raise PodNotActiveError(
                self._pod_id, f"can't be reached safely: {error}", status=seen.status
            ) from None

    @property
    def status(self) -> str | None:
        return None if self.last is None else str(self.last.status)


async def wait_until_pod_active(
    schedule: PodSchedule, pod_id: str, deadline: float, timeout: float
) -> PodStatusSnapshot:
    """Waits until a pod is ACTIVE and says how to reach it.

    Args:
        schedule: reads pods.
        pod_id: the pod.
        deadline: loop time.
        timeout: seconds, what the caller calls the deadline.

    Raises:
        PodNotActiveError: one of its subclasses says why not.
    """
    look = _PodLook(pod_id)
    try:
        seen = await schedule.wait(pod_id, look.usable, deadline)
    except PollTimeout as late:
        raise PodWaitTimeoutError(
            pod_id,
            f"could not be used within {timeout:g} s (last seen: {look.status or 'nothing'})",
            status=look.status,
        ) from late.last_error
    assert isinstance(seen, PodStatusSnapshot)
    return seen


async def wait_until_disk_active(
    schedule: DiskSchedule, disk_id: str, deadline: float, timeout: float
) -> Disk:
    """Waits until a disk is ACTIVE; arguments as for `wait_until_pod_active`.

    Raises:
        DiskNotActiveError: it is gone, or the subclass says that the time is over.
    """

    def active(disk: Disk) -> bool:
        if disk.status in _DISK_OVER:
            raise DiskNotActiveError(
                disk_id, f"has been terminated ({disk.status})", status=disk.status
            )
        return disk.status == DiskStatus.ACTIVE

    try:
        return await schedule.wait(disk_id, active, deadline)
    except PollTimeout as late:
        raise DiskWaitTimeoutError(
            disk_id, f"was not active within {timeout:g} s"
        ) from late.last_error


async def wait_until_detached(schedule: DiskSchedule, disk_id: str, deadline: float) -> None:
    """Waits until no pod and no cluster has a disk.

    Args:
        schedule: reads disks.
        disk_id: the disk.
        deadline: loop time.

    Raises:
        DiskWaitTimeoutError: the deadline came first.
    """
    users: list[str] = []

    def detached(disk: Disk) -> bool:
        users[:] = [*disk.pods, *disk.clusters]
        return not users

    try:
        await schedule.wait(disk_id, detached, deadline)
    except PollTimeout as late:
        held = f"is still attached to {', '.join(users)}" if users else "could not be read in time"
        raise DiskWaitTimeoutError(disk_id, held) from late.last_error
