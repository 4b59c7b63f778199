"""The errors that this package adds to those of every package."""

from __future__ import annotations

from prime_core.errors import PrimeError, ServerError

__all__ = [
    "DiskNotActiveError",
    "DiskWaitTimeoutError",
    "NoOfferError",
    "PodGoneError",
    "PodInstallationError",
    "PodNotActiveError",
    "PodWaitTimeoutError",
    "SlurmNotRunningError",
    "SlurmResizeUnverifiedError",
    "SlurmUnavailableError",
    "SlurmWaitTimeoutError",
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


class SlurmResizeUnverifiedError(ServerError):
    """502: nodes were claimed or released, but what came of it could not be verified.

    See `AsyncSlurm.list` before you try again.
    """


class SlurmUnavailableError(ServerError):
    """503: the state of Slurm could not be read, so nothing was changed: try again."""


class SlurmNotRunningError(PrimeError, RuntimeError):
    """A Slurm deployment does not run, or runs no more.

    Attributes:
        job_id: the deployment.
        status: its state when it was last seen, or None.
    """

    def __init__(self, job_id: str, message: str, *, status: str | None = None) -> None:
        super().__init__(f"Slurm deployment {job_id} {message}")
        self.job_id = job_id
        self.status = status


class SlurmWaitTimeoutError(SlurmNotRunningError, TimeoutError):
    """A Slurm deployment was not resized in time: wait again with a longer timeout."""
