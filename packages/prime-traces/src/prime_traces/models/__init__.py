"""What the traces service takes and answers."""

from prime_traces.models.episodes import (
    EpisodeDetail,
    EpisodeError,
    EpisodeListPage,
    EpisodeSummary,
    EpisodeTraceAggregate,
)
from prime_traces.models.error_codes import ErrorCode
from prime_traces.models.nodes import (
    NodeMessage,
    TraceCall,
    TraceCallPage,
    TraceNode,
    TraceNodePage,
)
from prime_traces.models.runs import RunListPage, RunStep, RunStepList, RunSummary, RunType
from prime_traces.models.search import (
    SearchField,
    TraceSearchCoverage,
    TraceSearchMatch,
    TraceSearchPage,
)
from prime_traces.models.traces import (
    Execution,
    ModelInfo,
    Score,
    TraceActivity,
    TraceListPage,
    TraceSummary,
)
from prime_traces.models.uploads import FailedBatch, LineFormat, PartialUpload, UploadReceipt

__all__ = [
    "EpisodeDetail",
    "EpisodeError",
    "EpisodeListPage",
    "EpisodeSummary",
    "EpisodeTraceAggregate",
    "ErrorCode",
    "Execution",
    "FailedBatch",
    "LineFormat",
    "ModelInfo",
    "NodeMessage",
    "PartialUpload",
    "RunListPage",
    "RunStep",
    "RunStepList",
    "RunSummary",
    "RunType",
    "Score",
    "SearchField",
    "TraceActivity",
    "TraceCall",
    "TraceCallPage",
    "TraceListPage",
    "TraceNode",
    "TraceNodePage",
    "TraceSearchCoverage",
    "TraceSearchMatch",
    "TraceSearchPage",
    "TraceSummary",
    "UploadReceipt",
]
