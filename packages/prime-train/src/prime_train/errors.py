"""Errors that only training raises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from prime_core.errors import ConflictError, ForbiddenError, PrimeError
from prime_train.models.evaluations import FailedSamples
from prime_train.models.runs import FailureAnalysis

__all__ = [
    "BucketTransferError",
    "BucketTransferTimeoutError",
    "ConfigIssue",
    "HostedEvaluationError",
    "HostedEvaluationTimeoutError",
    "InvalidConfigError",
    "InvalidSampleError",
    "OnDemandAccessError",
    "PublishError",
    "PushSamplesError",
    "RunEndedError",
    "RunError",
    "RunFailedError",
    "RunTimeoutError",
    "SourceChangedError",
    "VolumeBusyError",
    "VolumeChecksumError",
    "VolumeExistsError",
    "VolumeFileNotFoundError",
    "VolumeNotReadyError",
    "VolumePathError",
    "VolumeSessionError",
    "VolumeSessionTimeoutError",
    "VolumeSessionUnavailableError",
    "VolumeTransferError",
    "VolumeWaitTimeoutError",
]


@dataclass(frozen=True)
class ConfigIssue:
    """Something to say about a config. It never quotes a value, which may be a secret.

    Attributes:
        message: what is wrong, and what to do instead.
        key: dotted key that it concerns; empty for the config as a whole.
        file: file that sets the key, or ``override``; `None` when no file does.
        line: line in that file, from 1; `None` when there is none to point at.
        severity: an ``error`` stops a dispatch, a ``warning`` does not.
    """

    message: str
    key: str = ""
    file: str | None = None
    line: int | None = None
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, self.message) if part)


class InvalidConfigError(PrimeError, ValueError):
    """A config, its secrets or what goes with it can't be dispatched; nothing was sent.

    Attributes:
        issues: all that is wrong, each with file, line and key where they are known.
    """

    issues: tuple[ConfigIssue, ...]

    def __init__(self, issues: Iterable[ConfigIssue]) -> None:
        self.issues = tuple(issues)
        super().__init__("\n".join(map(str, self.issues)))


class InvalidSampleError(PrimeError, ValueError):
    """A sample can't be sent as it is.

    Attributes:
        index: its place among the samples, from 0.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(f"Sample {index} {message}")
        self.index = index


class PushSamplesError(PrimeError):
    """A push of samples broke off when some of them were stored, or may be.

    Samples before ``next_index`` that are neither in ``failed`` nor in ``skipped`` are stored.
    Push those of ``failed`` whose ``stored`` is ``no``, and all from ``next_index`` on, again.
    ``__cause__`` is the first failure.

    Args:
        reason: the first failure.

    Attributes:
        samples_pushed: how many are stored.
        skipped: places of those that were too large.
        failed: the requests that failed.
        next_index: place of the first sample that was in no request.
    """

    def __init__(
        self,
        reason: Exception,
        *,
        samples_pushed: int,
        skipped: list[int],
        failed: list[FailedSamples],
        next_index: int,
    ) -> None:
        unknown = sum(len(each.indexes) for each in failed if each.stored == "unknown")
        doubt = f"; of {unknown} it is not known" if unknown else ""
        super().__init__(f"{samples_pushed} samples are stored{doubt}, then: {reason}")
        self.samples_pushed = samples_pushed
        self.skipped = skipped
        self.failed = failed
        self.next_index = next_index


class HostedEvaluationError(PrimeError, RuntimeError):
    """A hosted evaluation ended otherwise than complete.

    Attributes:
        evaluation_id: the evaluation.
        status: its state.
    """

    def __init__(self, evaluation_id: str, status: str | None, message: str | None = None) -> None:
        super().__init__(
            f"Evaluation {evaluation_id} is {status}" + (f": {message}" if message else "")
        )
        self.evaluation_id = evaluation_id
        self.status = status


class HostedEvaluationTimeoutError(HostedEvaluationError, TimeoutError):
    """A hosted evaluation did not end in time; it goes on, and costs money, until it is over."""


class PublishError(PrimeError):
    """The platform did not publish a version of an environment; the text says why."""


class VolumeBusyError(ConflictError):
    """Somebody else writes to the volume: a run, a session or an upload. Nothing was moved.

    Attributes:
        until: when an upload's hold on it ends unless it is renewed; `None` if that is not said.
    """

    until: datetime | None = None


class VolumePathError(PrimeError, ValueError):
    """A path can't be transferred, or would take another's place; nothing was moved."""


class VolumeExistsError(ConflictError):
    """There is a volume of this name; use that one, or choose another name."""


class VolumeNotReadyError(PrimeError, RuntimeError):
    """A volume can't be used: it failed, or is being deleted.

    Args:
        name: the volume.
        reason: what is the matter.
        status: its state, or None when it was not seen.
    """

    def __init__(self, name: str, reason: str, status: str | None = None) -> None:
        super().__init__(f"Volume {name!r} {reason}")
        self.name = name
        self.status = status


class VolumeWaitTimeoutError(VolumeNotReadyError, TimeoutError):
    """A volume could not be used in time; it is there, and costs money, until it is deleted."""


class VolumeSessionUnavailableError(ConflictError):
    """There can be no such session: the account has no SSH key, the scope no cluster, or 20."""


class VolumeSessionError(PrimeError, RuntimeError):
    """A session ended before it could be used.

    Args:
        session_id: the session.
        reason: what is the matter.
        phase: how far it was, or its status.
    """

    def __init__(self, session_id: str, reason: str, phase: str | None = None) -> None:
        super().__init__(f"Session {session_id} {reason}")
        self.session_id = session_id
        self.phase = phase


class VolumeSessionTimeoutError(VolumeSessionError, TimeoutError):
    """A session could not be used in time; it goes on, and holds its volume, until it stops."""


class BucketTransferError(PrimeError, RuntimeError):
    """A copy between a volume and a bucket ended otherwise than it should.

    Args:
        transfer_id: the copy.
        reason: what is the matter.
        status: its state, or None when it was not seen.
    """

    def __init__(self, transfer_id: str, reason: str, status: str | None = None) -> None:
        super().__init__(f"Copy {transfer_id} {reason}")
        self.transfer_id = transfer_id
        self.status = status


class BucketTransferTimeoutError(BucketTransferError, TimeoutError):
    """A copy did not end in time; it goes on."""


class OnDemandAccessError(ForbiddenError):
    """On-demand training is in beta, and this account or team has no access: ask for it."""


class RunError(PrimeError, RuntimeError):
    """A run is not in the state that was waited for.

    Attributes:
        run_id: the run.
        status: its state when it was last seen, or None.
    """

    def __init__(self, run_id: str, status: str | None, message: str) -> None:
        state = f"is {status}" if status else "has not been seen yet"
        super().__init__(f"Run {run_id} {state}: {message}")
        self.run_id = run_id
        self.status = status


class RunFailedError(RunError):
    """A run has failed.

    Attributes:
        error_message: the platform's words.
        failure_analysis: its diagnosis, or None.
    """

    def __init__(
        self,
        run_id: str,
        error_message: str | None = None,
        failure_analysis: FailureAnalysis | None = None,
    ) -> None:
        cause = failure_analysis.root_cause if failure_analysis is not None else None
        words = dict.fromkeys(text for text in (error_message, cause) if text)
        super().__init__(run_id, "FAILED", "; ".join(words) or "the platform does not say why")
        self.error_message = error_message
        self.failure_analysis = failure_analysis


class RunEndedError(RunError):
    """A run ended in another state than was waited for: it was stopped, or paused."""


class RunTimeoutError(RunError, TimeoutError):
    """A run did not get somewhere in time; it goes on, and costs money, until it is over."""


class VolumeFileNotFoundError(PrimeError, FileNotFoundError):
    """There is no such path on the volume, as it was last saved."""


class VolumeTransferError(PrimeError):
    """A transfer broke off; the text says why. The same call again goes on where it was."""


class SourceChangedError(VolumeTransferError):
    """A file changed while it was put; put it again when it is at rest."""


class VolumeChecksumError(VolumeTransferError):
    """Bytes arrived otherwise than they were sent, and were thrown away. Transfer them again.

    Args:
        key: path on the volume.
        expected: the checksum that they should have.
        actual: the checksum that they have.
    """

    def __init__(self, key: str, expected: str, actual: str) -> None:
        super().__init__(f"The checksum of {key!r} should be {expected}, and is {actual}")
        self.key = key
        self.expected = expected
        self.actual = actual
