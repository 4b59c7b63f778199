"""The routes of the traces service."""

from __future__ import annotations

from prime_local.calls import Handler
from prime_local.traces.ingest import upload_traces

HANDLERS: dict[str, Handler] = {handler.__name__: handler for handler in (upload_traces,)}
