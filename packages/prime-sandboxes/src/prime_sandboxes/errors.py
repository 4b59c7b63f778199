"""What can go wrong with a sandbox, beyond the errors of every call."""

from __future__ import annotations

from typing import Literal

from prime_core.errors import APIError, NotFoundError, PrimeError

__all__ = [
    "BackgroundJobLostError",
    "BatchStatusUnsupportedError",
    "CheckpointFailedError",
    "CheckpointTimeoutError",
    "CommandTimeoutError",
    "DownloadTimeoutError",
    "FleetCleanupError",
    "ImageBuildError",
    "ImageBuildTimeoutError",
    "ImageUpdateError",
    "LanMembershipError",
    "NetworkSyncTimeoutError",
    "SandboxFileNotFoundError",
    "SandboxFileTooLargeError",
    "SandboxImagePullError",
    "SandboxNotRunningError",
    "SandboxOOMError",
    "SandboxTimeoutError",
    "UploadTimeoutError",
    "not_running",
]


class SandboxNotRunningError(PrimeError, RuntimeError):
    """The sandbox does not run, or no longer, or was never seen running in time.

    Attributes:
        sandbox_id: the sandbox.
        status: its state, where that is known.
        error_type: kind of failure, such as ``OOM_KILLED``, or one of this client's:
            ``SANDBOX_NOT_FOUND``, ``GATEWAY_REACHABILITY_TIMEOUT``.
        command: the command that was to run, if any.
    """

    def __init__(
        self,
        sandbox_id: str,
        status: str | None = None,
        error_type: str | None = None,
        command: str | None = None,
        message: str | None = None,
    ) -> None:
        text = f"Sandbox {sandbox_id} is not running"
        known = [word for word in (status, error_type) if word]
        if known:
            text += f" ({', '.join(known)})"
        if message:
            text += f": {message}"
        super().__init__(text)
        self.sandbox_id = sandbox_id
        self.status = status
        self.error_type = error_type
        self.command = command


class SandboxOOMError(SandboxNotRunningError):
    """The sandbox ran out of memory and was killed: create it with more ``memory_gb``."""


class SandboxTimeoutError(SandboxNotRunningError):
    """The sandbox reached the end of its lifetime: create it with more ``timeout_minutes``."""


class SandboxImagePullError(SandboxNotRunningError):
    """The image can't be pulled: check its name, its tag and that you may use it."""


_BY_ERROR_TYPE = {
    "OOM_KILLED": SandboxOOMError,
    "TIMEOUT": SandboxTimeoutError,
    "IMAGE_PULL_FAILED": SandboxImagePullError,
}


def not_running(
    sandbox_id: str,
    status: str | None,
    error_type: str | None,
    message: str | None = None,
    command: str | None = None,
) -> SandboxNotRunningError:
    """The error of the documented class for a sandbox that does not run."""
    kind = error_type or ("TIMEOUT" if status == "TIMEOUT" else "")
    cls = _BY_ERROR_TYPE.get(kind, SandboxNotRunningError)
    return cls(sandbox_id, status, error_type, command, message)


class CommandTimeoutError(PrimeError, RuntimeError):
    """A command ran into its ``timeout``; the platform is told to kill it.

    Attributes:
        sandbox_id: the sandbox.
        command: the command.
        timeout: its limit in seconds.
        stdout: what it had written to standard output.
        stderr: what it had written to standard error.
    """

    def __init__(
        self, sandbox_id: str, command: str, timeout: float, stdout: str = "", stderr: str = ""
    ) -> None:
        super().__init__(
            f"The command in sandbox {sandbox_id} did not end within {timeout:g} s; "
            f"pass a larger timeout. Command: {command[:200]}"
        )
        self.sandbox_id = sandbox_id
        self.command = command
        self.timeout = timeout
        self.stdout = stdout
        self.stderr = stderr


class _TransferTimeoutError(PrimeError, RuntimeError):
    """A transfer that ran into a limit."""

    _kind = "transfer"

    def __init__(
        self,
        sandbox_id: str,
        file_path: str,
        timeout: float,
        phase: Literal["idle", "total"] = "total",
    ) -> None:
        if phase == "idle":
            happened = f"stood still for {timeout:g} s; check the network and try again"
        else:
            happened = f"did not end within {timeout:g} s; pass a larger timeout, or none"
        super().__init__(f"The {self._kind} of {file_path!r} in sandbox {sandbox_id} {happened}.")
        self.sandbox_id = sandbox_id
        self.file_path = file_path
        self.timeout = timeout
        self.phase = phase


class UploadTimeoutError(_TransferTimeoutError):
    """An upload stood still for too long, or ran into its ``timeout``.

    Attributes:
        sandbox_id: the sandbox.
        file_path: the path in the sandbox.
        timeout: the limit that was reached, in seconds.
        phase: which limit that was: ``idle`` (nothing moved) or ``total`` (all of it).
    """

    _kind = "upload"


class DownloadTimeoutError(_TransferTimeoutError):
    """A download stood still for too long, or ran into its ``timeout``.

    Attributes:
        sandbox_id: the sandbox.
        file_path: the path in the sandbox.
        timeout: the limit that was reached, in seconds.
        phase: which limit that was: ``idle`` (nothing moved) or ``total`` (all of it).
    """

    _kind = "download"


class SandboxFileNotFoundError(NotFoundError):
    """There is no such file in the sandbox: check the path."""


class SandboxFileTooLargeError(APIError):
    """The file is above the 10 MiB of a direct read: use ``download_file``."""


class CheckpointFailedError(PrimeError, RuntimeError):
    """The checkpoint failed or is being deleted: it will never be durable.

    Attributes:
        checkpoint_id: the checkpoint.
        state: ``FAILED`` or ``DELETING``.
    """

    def __init__(self, checkpoint_id: str, state: str, message: str | None = None) -> None:
        text = f"Checkpoint {checkpoint_id} will not be durable ({state})"
        super().__init__(f"{text}: {message}" if message else text)
        self.checkpoint_id = checkpoint_id
        self.state = state


class CheckpointTimeoutError(PrimeError, TimeoutError):
    """The checkpoint was not durable in time. It is still being made, and may well succeed.

    Attributes:
        checkpoint_id: the checkpoint; `get_checkpoint` tells what becomes of it.
        timeout: how many seconds it was waited for.
    """

    def __init__(self, checkpoint_id: str, timeout: float) -> None:
        super().__init__(
            f"Checkpoint {checkpoint_id} was not durable within {timeout:g} s, but has not "
            "failed: wait again before its sandbox is deleted."
        )
        self.checkpoint_id = checkpoint_id
        self.timeout = timeout


class BatchStatusUnsupportedError(APIError):
    """The platform has no route to read many states at once."""


class BackgroundJobLostError(APIError):
    """A background job is gone without having left an exit code, or was never there.

    Something killed it from outside, or removed its files from ``/tmp``. Its logs may still be
    read there.

    Attributes:
        sandbox_id: the sandbox.
        job_id: the job.
    """

    def __init__(self, sandbox_id: str, job_id: str) -> None:
        super().__init__(
            f"Background job {job_id} in sandbox {sandbox_id} is lost: it does not run and left "
            "no exit code. Start it again if it may run twice."
        )
        self.sandbox_id = sandbox_id
        self.job_id = job_id


class NetworkSyncTimeoutError(PrimeError, TimeoutError):
    """Network rules or a membership were saved, but are not in force in time.

    The platform goes on trying; wait again, or read the state.
    """


class LanMembershipError(PrimeError, RuntimeError):
    """A sandbox left its private network while somebody waited for it to be in force there.

    Attributes:
        sandbox_id: the sandbox; one that stops leaves its networks.
        network_id: the network.
    """

    def __init__(self, sandbox_id: str, network_id: str) -> None:
        super().__init__(
            f"Sandbox {sandbox_id} is no member of the network {network_id} any more; "
            "see whether it still runs"
        )
        self.sandbox_id = sandbox_id
        self.network_id = network_id


class FleetCleanupError(PrimeError):
    """A fleet could not delete all of its sandboxes; they may go on costing money.

    Attributes:
        sandbox_ids: the sandboxes whose deletion was not confirmed.
        label: the fleet's label; ``sweep(label)`` deletes what carries it.
    """

    def __init__(self, sandbox_ids: list[str], label: str) -> None:
        super().__init__(
            f"{len(sandbox_ids)} sandboxes could not be deleted; "
            f"call sweep({label!r}) once the platform answers again."
        )
        self.sandbox_ids = sandbox_ids
        self.label = label


class ImageBuildError(PrimeError):
    """An image was not built: see the end of the build's log in the message.

    Attributes:
        build_id: the build.
        image: the image that was to be built.
        status: the build's last known state, such as ``FAILED``.
        error_message: what the platform says of it: the end of the build's log.
    """

    def __init__(
        self,
        build_id: str,
        image: str | None = None,
        status: str | None = None,
        error_message: str | None = None,
        message: str | None = None,
    ) -> None:
        text = message or f"Image {image or 'of the build'} was not built ({status})"
        if error_message:
            text += f":\n{error_message}"
        super().__init__(f"{text} (build {build_id})")
        self.build_id = build_id
        self.image = image
        self.status = status
        self.error_message = error_message


class ImageBuildTimeoutError(ImageBuildError, TimeoutError):
    """A build did not end in time; it goes on: wait again with ``wait_for_build``."""


class ImageUpdateError(PrimeError):
    """An image was not changed.

    Attributes:
        reference: the image.
        code: why, such as ``image_not_found``.
    """

    def __init__(self, reference: str, code: str, message: str) -> None:
        super().__init__(f"Image {reference} was not changed: {message} ({code})")
        self.reference = reference
        self.code = code
