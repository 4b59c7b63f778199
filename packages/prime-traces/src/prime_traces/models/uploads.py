"""Uploads of traces."""

from __future__ import annotations

from dataclasses import dataclass

from prime_core.models import ResponseModel, StrEnum

__all__ = ["FailedBatch", "LineFormat", "PartialUpload", "UploadReceipt"]


class LineFormat(StrEnum):
    """What each line of an upload holds.

    Follows the documented page "api-reference/traces/ingestion/upload-traces".

    Attributes:
        TRACE: one trace.
        EPISODE: one whole episode, with its traces.
        PRIME_AGENT: one agent session, as an array of its file's lines, header first.
    """

    TRACE = "trace"
    EPISODE = "episode"
    PRIME_AGENT = "prime_agent"


class UploadReceipt(ResponseModel):
    """What the service says once every line of a batch is stored.

    Attributes:
        upload_id: the digest of the batch's bytes; `list` finds its traces by it.
        status: `committed`.
    """

    upload_id: str
    status: str


@dataclass(frozen=True)
class FailedBatch:
    """A batch of which no receipt came.

    Attributes:
        upload_id: what its receipt would have named.
        first_line_number: its first line or record, from 1, in the caller's input.
        last_line_number: its last.
        error: why.
    """

    upload_id: str
    first_line_number: int
    last_line_number: int
    error: str


@dataclass(frozen=True)
class PartialUpload:
    """How far an upload came that failed.

    Every line before ``next_line_number`` is in a batch of ``receipts`` or of ``failed``. The same
    call made again stores nothing twice, as long as its input and ``target_batch_bytes`` are the
    same.

    Attributes:
        receipts: of the batches that are stored, in order.
        failed: the batches that are not, or of which that is not known.
        next_line_number: the first line or record, from 1, that was not sent.
    """

    receipts: list[UploadReceipt]
    failed: list[FailedBatch]
    next_line_number: int
