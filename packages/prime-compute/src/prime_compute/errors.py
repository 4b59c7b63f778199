"""The errors that this package adds to those of every package."""

from __future__ import annotations

from prime_core.errors import PrimeError

__all__ = [
    "DiskNotActiveError",
    "DiskWaitTimeoutError",
    "NoOfferError",
    "PodGoneError",
    "PodInstallationError",
    "PodNotActiveError",
    "PodWaitTimeoutError",
]


class PodNotActiveError(PrimeError):
    """A pod can't be used. Whatever the subclass, the pod may still cost money: delete it.

    Attributes:
        pod_id: the pod.
        status: its state when it was last seen, or None.
        failure: why its installation failed, or None.
    """

    def __init__(
        self, pod_id: str, message: str, *, status: str | None = None, failure: str | None = None
    ) -> None:
        super().__init__(f"Pod {pod_id} {message}")
        self.pod_id = pod_id
        self.status = status
        self.failure = failure


class PodInstallationError(PodNotActiveError):
    """The installation of the pod's image failed: try another image, or another offer.

    The platform tries again by itself; whoever wants to wait for that waits again.
    """


class PodGoneError(PodNotActiveError):
    """The pod has been terminated, or the platform knows of none of this id."""


class PodWaitTimeoutError(PodNotActiveError, TimeoutError):
    """The pod could not be used in time: wait again with a longer timeout, or delete it."""


class DiskNotActiveError(PrimeError):
    """A disk can't be used, or is gone.

    Attributes:
        disk_id: the disk.
        status: its state when it was last seen, or None.
    """

    def __init__(self, disk_id: str, message: str, *, status: str | None = None) -> None:
        super().__init__(f"Disk {disk_id} {message}")
        self.disk_id = disk_id
        self.status = status


class DiskWaitTimeoutError(DiskNotActiveError, TimeoutError):
    """The disk was not active, or not detached, in time: wait again with a longer timeout."""


class NoOfferError(PrimeError):
    """No offer fits what was asked for; the message says why not.

    Args:
        message: how many offers failed which wish.
    """
