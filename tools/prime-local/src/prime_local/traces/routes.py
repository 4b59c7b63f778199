"""The routes of the traces service."""

from __future__ import annotations

from prime_local.calls import Handler
from prime_local.traces import reading
from prime_local.traces.ingest import upload_traces

HANDLERS: dict[str, Handler] = {"upload_traces": upload_traces, **reading.HANDLERS}
