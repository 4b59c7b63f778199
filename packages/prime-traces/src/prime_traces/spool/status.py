"""What a spool says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["SpoolState", "SpoolStats"]

SpoolState: TypeAlias = Literal["idle", "uploading", "retrying", "paused", "closed"]


@dataclass(frozen=True)
class SpoolStats:
    """Where the records of a spool are.

    Attributes:
        state: ``idle`` (nothing waits, or not for long enough yet), ``uploading``, ``retrying``
            (the platform or the network fails; it goes on by itself), ``paused`` (the platform
            refuses the account: ``error`` says why; it is asked again once a minute, and by
            ``flush``), ``closed``.
        pending: records on disk that the platform has not confirmed.
        appended: records that this spool confirmed as written.
        uploaded: records that the platform confirmed to this spool.
        rejected: records that the platform refused as invalid, or that the disk changed; they are
            in the folder ``rejected``.
        disk_bytes: bytes of the directory's files.
        error: why it is retrying or paused.
        lost: records that were not uploaded when somebody removed them from the directory.
    """

    state: SpoolState
    pending: int
    appended: int
    uploaded: int
    rejected: int
    disk_bytes: int
    error: Exception | None
    lost: int = 0
