"""Waiting for volumes, sessions and copies: what their states mean."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from prime_core.polling import PollSchedule, PollTimeout
from prime_train.errors import (
    BucketTransferError,
    BucketTransferTimeoutError,
    VolumeNotReadyError,
    VolumeSessionError,
    VolumeSessionTimeoutError,
    VolumeWaitTimeoutError,
)
from prime_train.models.bucket_transfers import (
    FINAL_TRANSFER_STATUSES,
    BucketTransfer,
    BucketTransferStatus,
)
from prime_train.models.volume_sessions import VolumeSession, VolumeSessionPhase
from prime_train.models.volumes import Volume, VolumeStatus

__all__ = [
    "Key",
    "is_session_over",
    "wait_until_copied",
    "wait_until_session_ready",
    "wait_until_volume_ready",
]

# A volume's team and name, and the id of what is on it; the last is empty for the volume itself.
Key = tuple[str | None, str, str]
T = TypeVar("T")

# Seconds between two looks, to begin with and in the end.
PAUSE = 3.0
LONGEST_PAUSE = 5.0

_VOLUME_OVER = frozenset({VolumeStatus.FAILED, VolumeStatus.TOMBSTONED, VolumeStatus.TERMINATING})
_PHASES_OVER = frozenset(
    {VolumeSessionPhase.FINALIZING, VolumeSessionPhase.STOPPED, VolumeSessionPhase.FAILED}
)
_STATUSES_OVER = frozenset(
    {"FAILED", "STOPPED", "COMPLETED", "UNKNOWN", "TERMINATING", "TOMBSTONED"}
)


def is_session_over(session: VolumeSession) -> bool:
    """Whether a session can't be used any more; a read-write one may still save its changes."""
    return session.phase in _PHASES_OVER or session.status in _STATUSES_OVER


async def wait_until_volume_ready(
    schedule: PollSchedule[Key, Volume], key: Key, timeout: float
) -> Volume:
    """Waits until a volume is RUNNING.

    Raises:
        VolumeNotReadyError: it failed or is being deleted; the subclass says that time is over.
    """

    def ready(volume: Volume) -> bool:
        if volume.status in _VOLUME_OVER:
            reason = f"can't be used: it is {volume.status}"
            raise VolumeNotReadyError(volume.name, reason, str(volume.status))
        return volume.status == VolumeStatus.RUNNING

    def late(last: Volume | None) -> Exception:
        status = None if last is None else str(last.status)
        reason = f"could not be used in time (last seen: {status or 'nothing'})"
        return VolumeWaitTimeoutError(key[1], reason, status)

    return await _wait(schedule, key, timeout, ready, late)


async def wait_until_session_ready(
    schedule: PollSchedule[Key, VolumeSession], key: Key, timeout: float
) -> VolumeSession:
    """Waits until a session can be connected to.

    Raises:
        VolumeSessionError: it has ended; the subclass says that time is over.
    """

    def ready(session: VolumeSession) -> bool:
        if is_session_over(session):
            why = f": {session.error_message}" if session.error_message else ""
            reason = f"has ended before it could be used{why}"
            raise VolumeSessionError(session.id, reason, _phase(session))
        return session.ssh_connection is not None

    def late(last: VolumeSession | None) -> Exception:
        phase = None if last is None else _phase(last)
        reason = f"could not be used in time (last seen: {phase or 'nothing'})"
        return VolumeSessionTimeoutError(key[2], reason, phase)

    return await _wait(schedule, key, timeout, ready, late)


async def wait_until_copied(
    schedule: PollSchedule[Key, BucketTransfer], key: Key, timeout: float
) -> BucketTransfer:
    """Waits until a copy is complete.

    Raises:
        BucketTransferError: it failed or was cancelled; the subclass says that time is over.
    """

    def over(transfer: BucketTransfer) -> bool:
        if transfer.status not in FINAL_TRANSFER_STATUSES:
            return False
        if transfer.status != BucketTransferStatus.SUCCEEDED:
            why = f": {transfer.error_message}" if transfer.error_message else ""
            reason = f"is {transfer.status}{why}"
            raise BucketTransferError(transfer.id, reason, str(transfer.status))
        return True

    def late(last: BucketTransfer | None) -> Exception:
        status = None if last is None else str(last.status)
        reason = f"did not end in time (last seen: {status or 'nothing'}): wait again, or cancel it"
        return BucketTransferTimeoutError(key[2], reason, status)

    return await _wait(schedule, key, timeout, over, late)


def _phase(session: VolumeSession) -> str:
    return str(session.phase or session.status)


async def _wait(
    schedule: PollSchedule[Key, T],
    key: Key,
    timeout: float,
    over: Callable[[T], bool],
    late: Callable[[T | None], Exception],
) -> T:
    last: T | None = None

    def look(seen: T) -> bool:
        nonlocal last
        last = seen
        return over(seen)

    deadline = asyncio.get_running_loop().time() + timeout
    try:
        return await schedule.wait(key, look, deadline, interval=PAUSE, longest=LONGEST_PAUSE)
    except PollTimeout as reason:
        raise late(last) from reason.last_error
