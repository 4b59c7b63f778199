"""The errors that the traces service adds to those of every package."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from prime_core.errors import (
    APIConnectionError,
    APIError,
    BadRequestError,
    ConflictError,
    PrimeError,
    RateLimitError,
    ServerError,
    rebuilt,
)
from prime_traces.operations import UPLOAD_TRACES

if TYPE_CHECKING:
    from prime_traces.models import PartialUpload, UploadReceipt

__all__ = [
    "AmbiguousDeleteError",
    "BatchRejectedError",
    "InvalidRecordError",
    "LineFormatConflictError",
    "PrimeTracesError",
    "RecordTypeError",
    "RetryableAPIError",
    "ServiceUnavailableError",
    "SpoolClosedError",
    "SpoolError",
    "SpoolFullError",
    "SpoolLockedError",
    "SpoolWriteError",
    "ThrottledError",
    "TraceNotIndexedError",
    "TraceTooLargeError",
    "TransportError",
    "ValidationRejectedError",
    "named_line",
    "partial_upload",
    "set_partial_upload",
    "typed",
]

# The documented names of two classes that all packages share.
PrimeTracesError = PrimeError
TransportError = APIConnectionError


class TraceTooLargeError(PrimeError, ValueError):
    """A line is larger than the service takes; nothing of its batch was sent.

    Args:
        line_number: the line, from 1, in the caller's input.
        size: its bytes, without the line feed.
        limit: the most bytes that a line may have.
    """

    def __init__(self, line_number: int, size: int, limit: int) -> None:
        super().__init__(line_number, size, limit)
        self.line_number = line_number
        self.size = size
        self.limit = limit

    def __str__(self) -> str:
        return (
            f"line {self.line_number} has {self.size:,} bytes, more than the {self.limit:,} that "
            "the service takes; split the record, or leave out large fields"
        )


class InvalidRecordError(PrimeError, ValueError):
    """A record or line is nothing that the service takes; nothing of its batch was sent.

    Args:
        line_number: the line or record, from 1, in the caller's input.
        reason: what is wrong with it.
    """

    def __init__(self, line_number: int, reason: str) -> None:
        super().__init__(line_number, reason)
        self.line_number = line_number
        self.reason = reason

    def __str__(self) -> str:
        return f"line {self.line_number}: {self.reason}"


class RecordTypeError(InvalidRecordError, TypeError):
    """A record is no mapping, has no ``to_record()``, or holds what JSON can't."""


class ValidationRejectedError(BadRequestError):
    """400: the service refused what was sent; correct it, sending it again changes nothing."""


class BatchRejectedError(ValidationRejectedError):
    """400: the service refused a line, and with it the batch; the others are stored.

    Attributes:
        line_number: the line or record, from 1, in the caller's input; None if the service did
            not say which.
        first_line_number: of the batch.
        last_line_number: of the batch.
    """

    line_number: int | None = None
    first_line_number: int = 0
    last_line_number: int = 0

    @property
    def receipts(self) -> list[UploadReceipt]:
        """Those of the other batches, in order."""
        partial = partial_upload(self)
        return [] if partial is None else partial.receipts


class TraceNotIndexedError(ConflictError):
    """409: the index of this trace is still being built; ask again later, or read it raw."""


class LineFormatConflictError(ConflictError):
    """409: the same bytes are stored already under another line format."""


class RetryableAPIError(APIError):
    """The service could not do it now, or its gateway failed, and further attempts did not help."""


class ThrottledError(RetryableAPIError, RateLimitError):
    """429: the service refused the call because of its load."""


class ServiceUnavailableError(RetryableAPIError, ServerError):
    """502, 503 or 504: the service, or a gateway before it, failed."""


class AmbiguousDeleteError(APIError):
    """A delete may have been done or not: read what it was about before you delete again."""


class SpoolError(PrimeError):
    """A spool can't do what it was asked for; what it has confirmed is safe."""


class SpoolFullError(SpoolError):
    """There is no room for the record: the spool's limit is reached, or the disk is full."""


class SpoolWriteError(SpoolError):
    """The disk failed, and the record is not safe."""


class SpoolLockedError(SpoolError):
    """Another spool, in this process or another, uses the directory."""


class SpoolClosedError(SpoolError):
    """The spool is closed; make another one in its directory."""


_CLASSES: dict[int, type[APIError]] = {
    400: ValidationRejectedError,
    429: ThrottledError,
    502: ServiceUnavailableError,
    503: ServiceUnavailableError,
    504: ServiceUnavailableError,
}


def typed(error: APIError) -> APIError:
    """The error of a call to the traces service, in the class that is documented for it."""
    cls = _CLASSES.get(error.status_code or 0)
    if error.status_code == 409:
        not_indexed = error.code == "trace_not_indexed"
        if not_indexed:
            cls = TraceNotIndexedError
        elif error.operation == UPLOAD_TRACES.id:
            cls = LineFormatConflictError
    # A quota that is reached, an answer that can't be read: their classes say more.
    if cls is None or not issubclass(cls, type(error)):
        return error
    return rebuilt(cls, error)


_LINE = re.compile(r"\bline (\d+)\b")


def named_line(message: str) -> re.Match[str] | None:
    """Where a rejection names the line that it is about, counted from 1, as its first group."""
    return _LINE.search(message)


def partial_upload(error: BaseException) -> PartialUpload | None:
    """What was stored before an upload failed.

    Args:
        error: what ended the upload, whatever its class: also a cancellation, Ctrl-C, or the
            TimeoutError of what limits its time.

    Returns:
        The receipts and what is missing; None if it comes from no upload.
    """
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        partial: PartialUpload | None = getattr(cause, "partial_upload", None)
        if partial is not None:
            return partial
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return None


def set_partial_upload(error: BaseException, partial: PartialUpload) -> None:
    """Lets an error say what was stored before it."""
    with contextlib.suppress(AttributeError):  # of a class that takes no attributes
        error.partial_upload = partial  # type: ignore[attr-defined]
