"""Traces on the Prime Intellect platform: upload, query and search, async and sync."""

# A bare table: nothing is imported before a name of it is used (PEP 562).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from prime_core._async.api_client import AsyncAPIClient as AsyncAPIClient
    from prime_core._sync.api_client import APIClient as APIClient
    from prime_core.config import Config as Config
    from prime_core.errors import APIConnectionError as APIConnectionError
    from prime_core.errors import APIError as APIError
    from prime_core.errors import APIResponseError as APIResponseError
    from prime_core.errors import APITimeoutError as APITimeoutError
    from prime_core.errors import BadRequestError as BadRequestError
    from prime_core.errors import ConfigurationError as ConfigurationError
    from prime_core.errors import ConflictError as ConflictError
    from prime_core.errors import ForbiddenError as ForbiddenError
    from prime_core.errors import NotFoundError as NotFoundError
    from prime_core.errors import PaymentRequiredError as PaymentRequiredError
    from prime_core.errors import PrimeError as PrimeError
    from prime_core.errors import QuotaExceededError as QuotaExceededError
    from prime_core.errors import RateLimitError as RateLimitError
    from prime_core.errors import ServerError as ServerError
    from prime_core.errors import UnauthorizedError as UnauthorizedError
    from prime_core.errors import ValidationError as ValidationError
    from prime_traces._async.api_client import AsyncTracesAPIClient as AsyncTracesAPIClient
    from prime_traces._async.spool import AsyncTraceSpool as AsyncTraceSpool
    from prime_traces._async.traces_client import AsyncTracesClient as AsyncTracesClient
    from prime_traces._sync.api_client import TracesAPIClient as TracesAPIClient
    from prime_traces._sync.spool import TraceSpool as TraceSpool
    from prime_traces._sync.traces_client import TracesClient as TracesClient
    from prime_traces.batches import DEFAULT_TARGET_BATCH_BYTES as DEFAULT_TARGET_BATCH_BYTES
    from prime_traces.batches import MAX_BATCH_BYTES as MAX_BATCH_BYTES
    from prime_traces.batches import MAX_BATCH_LINES as MAX_BATCH_LINES
    from prime_traces.batches import MAX_LINE_BYTES as MAX_LINE_BYTES
    from prime_traces.batches import Batch as Batch
    from prime_traces.batches import aiter_batches as aiter_batches
    from prime_traces.batches import iter_batches as iter_batches
    from prime_traces.batches import read_jsonl_lines as read_jsonl_lines
    from prime_traces.errors import AmbiguousDeleteError as AmbiguousDeleteError
    from prime_traces.errors import BatchRejectedError as BatchRejectedError
    from prime_traces.errors import InvalidRecordError as InvalidRecordError
    from prime_traces.errors import LineFormatConflictError as LineFormatConflictError
    from prime_traces.errors import PrimeTracesError as PrimeTracesError
    from prime_traces.errors import RecordTypeError as RecordTypeError
    from prime_traces.errors import RetryableAPIError as RetryableAPIError
    from prime_traces.errors import ServiceUnavailableError as ServiceUnavailableError
    from prime_traces.errors import SpoolClosedError as SpoolClosedError
    from prime_traces.errors import SpoolError as SpoolError
    from prime_traces.errors import SpoolFullError as SpoolFullError
    from prime_traces.errors import SpoolLockedError as SpoolLockedError
    from prime_traces.errors import SpoolWriteError as SpoolWriteError
    from prime_traces.errors import ThrottledError as ThrottledError
    from prime_traces.errors import TraceNotIndexedError as TraceNotIndexedError
    from prime_traces.errors import TraceTooLargeError as TraceTooLargeError
    from prime_traces.errors import TransportError as TransportError
    from prime_traces.errors import ValidationRejectedError as ValidationRejectedError
    from prime_traces.errors import partial_upload as partial_upload
    from prime_traces.models import EpisodeDetail as EpisodeDetail
    from prime_traces.models import EpisodeError as EpisodeError
    from prime_traces.models import EpisodeListPage as EpisodeListPage
    from prime_traces.models import EpisodeSummary as EpisodeSummary
    from prime_traces.models import EpisodeTraceAggregate as EpisodeTraceAggregate
    from prime_traces.models import ErrorCode as ErrorCode
    from prime_traces.models import Execution as Execution
    from prime_traces.models import FailedBatch as FailedBatch
    from prime_traces.models import LineFormat as LineFormat
    from prime_traces.models import ModelInfo as ModelInfo
    from prime_traces.models import NodeMessage as NodeMessage
    from prime_traces.models import PartialUpload as PartialUpload
    from prime_traces.models import RunListPage as RunListPage
    from prime_traces.models import RunStep as RunStep
    from prime_traces.models import RunStepList as RunStepList
    from prime_traces.models import RunSummary as RunSummary
    from prime_traces.models import RunType as RunType
    from prime_traces.models import Score as Score
    from prime_traces.models import SearchField as SearchField
    from prime_traces.models import TraceActivity as TraceActivity
    from prime_traces.models import TraceCall as TraceCall
    from prime_traces.models import TraceCallPage as TraceCallPage
    from prime_traces.models import TraceListPage as TraceListPage
    from prime_traces.models import TraceNode as TraceNode
    from prime_traces.models import TraceNodePage as TraceNodePage
    from prime_traces.models import TraceSearchCoverage as TraceSearchCoverage
    from prime_traces.models import TraceSearchMatch as TraceSearchMatch
    from prime_traces.models import TraceSearchPage as TraceSearchPage
    from prime_traces.models import TraceSummary as TraceSummary
    from prime_traces.models import UploadReceipt as UploadReceipt
    from prime_traces.records import SupportsToRecord as SupportsToRecord
    from prime_traces.records import TraceRecord as TraceRecord
    from prime_traces.spool.status import SpoolStats as SpoolStats

_EXPORTS = {
    "APIClient": "prime_core._sync.api_client",
    "APIConnectionError": "prime_core.errors",
    "APIError": "prime_core.errors",
    "APIResponseError": "prime_core.errors",
    "APITimeoutError": "prime_core.errors",
    "AmbiguousDeleteError": "prime_traces.errors",
    "AsyncAPIClient": "prime_core._async.api_client",
    "AsyncTraceSpool": "prime_traces._async.spool",
    "AsyncTracesAPIClient": "prime_traces._async.api_client",
    "AsyncTracesClient": "prime_traces._async.traces_client",
    "BadRequestError": "prime_core.errors",
    "Batch": "prime_traces.batches",
    "BatchRejectedError": "prime_traces.errors",
    "Config": "prime_core.config",
    "ConfigurationError": "prime_core.errors",
    "ConflictError": "prime_core.errors",
    "EpisodeDetail": "prime_traces.models",
    "EpisodeError": "prime_traces.models",
    "EpisodeListPage": "prime_traces.models",
    "EpisodeSummary": "prime_traces.models",
    "EpisodeTraceAggregate": "prime_traces.models",
    "ErrorCode": "prime_traces.models",
    "Execution": "prime_traces.models",
    "DEFAULT_TARGET_BATCH_BYTES": "prime_traces.batches",
    "FailedBatch": "prime_traces.models",
    "ForbiddenError": "prime_core.errors",
    "InvalidRecordError": "prime_traces.errors",
    "LineFormat": "prime_traces.models",
    "LineFormatConflictError": "prime_traces.errors",
    "ModelInfo": "prime_traces.models",
    "NodeMessage": "prime_traces.models",
    "MAX_BATCH_BYTES": "prime_traces.batches",
    "MAX_BATCH_LINES": "prime_traces.batches",
    "MAX_LINE_BYTES": "prime_traces.batches",
    "NotFoundError": "prime_core.errors",
    "PartialUpload": "prime_traces.models",
    "PaymentRequiredError": "prime_core.errors",
    "PrimeError": "prime_core.errors",
    "PrimeTracesError": "prime_traces.errors",
    "QuotaExceededError": "prime_core.errors",
    "RateLimitError": "prime_core.errors",
    "RecordTypeError": "prime_traces.errors",
    "RetryableAPIError": "prime_traces.errors",
    "RunListPage": "prime_traces.models",
    "RunStep": "prime_traces.models",
    "RunStepList": "prime_traces.models",
    "RunSummary": "prime_traces.models",
    "RunType": "prime_traces.models",
    "Score": "prime_traces.models",
    "SearchField": "prime_traces.models",
    "ServerError": "prime_core.errors",
    "ServiceUnavailableError": "prime_traces.errors",
    "SpoolClosedError": "prime_traces.errors",
    "SpoolError": "prime_traces.errors",
    "SpoolFullError": "prime_traces.errors",
    "SpoolLockedError": "prime_traces.errors",
    "SpoolStats": "prime_traces.spool.status",
    "SpoolWriteError": "prime_traces.errors",
    "SupportsToRecord": "prime_traces.records",
    "ThrottledError": "prime_traces.errors",
    "TraceActivity": "prime_traces.models",
    "TraceCall": "prime_traces.models",
    "TraceCallPage": "prime_traces.models",
    "TraceListPage": "prime_traces.models",
    "TraceNode": "prime_traces.models",
    "TraceNodePage": "prime_traces.models",
    "TraceNotIndexedError": "prime_traces.errors",
    "TraceSearchCoverage": "prime_traces.models",
    "TraceSearchMatch": "prime_traces.models",
    "TraceSearchPage": "prime_traces.models",
    "TraceSummary": "prime_traces.models",
    "TraceRecord": "prime_traces.records",
    "TraceSpool": "prime_traces._sync.spool",
    "TraceTooLargeError": "prime_traces.errors",
    "TracesAPIClient": "prime_traces._sync.api_client",
    "TracesClient": "prime_traces._sync.traces_client",
    "TransportError": "prime_traces.errors",
    "UnauthorizedError": "prime_core.errors",
    "UploadReceipt": "prime_traces.models",
    "ValidationError": "prime_core.errors",
    "ValidationRejectedError": "prime_traces.errors",
    "aiter_batches": "prime_traces.batches",
    "iter_batches": "prime_traces.batches",
    "partial_upload": "prime_traces.errors",
    "read_jsonl_lines": "prime_traces.batches",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> object:
    from prime_core.lazy import load

    return load(__name__, name, _EXPORTS)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
