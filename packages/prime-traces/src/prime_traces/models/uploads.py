"""Uploads of traces."""

from __future__ import annotations

from prime_core.models import ResponseModel, StrEnum

__all__ = ["LineFormat", "UploadReceipt"]


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
