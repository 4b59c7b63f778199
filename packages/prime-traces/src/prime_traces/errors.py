"""The errors that the traces service adds to those of every package."""

from __future__ import annotations

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

__all__ = [
    "AmbiguousDeleteError",
    "InvalidRecordError",
    "LineFormatConflictError",
    "PrimeTracesError",
    "RecordTypeError",
    "RetryableAPIError",
    "ServiceUnavailableError",
    "ThrottledError",
    "TraceNotIndexedError",
    "TraceTooLargeError",
    "TransportError",
    "ValidationRejectedError",
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
        cls = TraceNotIndexedError if not_indexed else LineFormatConflictError
    # A quota that is reached, an answer that can't be read: their classes say more.
    if cls is None or not issubclass(cls, type(error)):
        return error
    return rebuilt(cls, error)
