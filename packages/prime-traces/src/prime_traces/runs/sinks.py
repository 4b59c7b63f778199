"""Where records go: to Prime Traces, or to the platform's legacy storage of samples."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from prime_traces._async.api_client import AsyncTracesAPIClient
from prime_traces.models import LineFormat, UploadReceipt
from prime_traces.runs.background import exiting, off_loop
from prime_traces.runs.control import ControlPlane
from prime_traces.runs.operations import PUSH_EVALUATION_SAMPLES
from prime_traces.runs.parcels import Parcel
from prime_traces.runs.records import has_members
from prime_traces.runs.samples import samples_of

__all__ = ["SamplesSink", "Sink", "TracesSink"]

KEPT_RECEIPTS = 100
MAX_SAMPLES_BYTES = 25 * 1024 * 1024
SAMPLES_TIMEOUT = 300.0


class Sink(Protocol):
    """Something that takes parcels.

    Attributes:
        repeatable: whether a parcel that may have arrived can be sent again.
    """

    repeatable: bool

    async def send(self, parcel: Parcel) -> None:
        """Sends a parcel, wholly or not at all.

        Raises:
            APIError: it could not be sent, or was refused.
            ValueError: it can't be sent in one piece; smaller ones can.
        """


class TracesSink:
    """Uploads to Prime Traces.

    Args:
        api: the service.
        context: labels for each trace.
    """

    repeatable = True  # the same bytes are stored once

    def __init__(self, api: AsyncTracesAPIClient, context: Mapping[str, str]) -> None:
        self._api = api
        self._context = context
        self.receipts: deque[UploadReceipt] = deque(maxlen=KEPT_RECEIPTS)
        self.episodes_written = 0

    async def send(self, parcel: Parcel) -> None:
        body = parcel.data
        digest = await off_loop(lambda: hashlib.sha256(body).hexdigest())
        receipt = await self._api.upload_batch(
            body,
            f"sha256:{digest}",
            line_format=LineFormat(parcel.kind),
            context=self._context,
            # Compressing takes a thread, and at the interpreter's exit there are none.
            compress=not exiting(),
        )
        self.receipts.append(receipt)
        if parcel.kind == "episode":
            self.episodes_written += sum(map(has_members, parcel.lines))


class SamplesSink:
    """Pushes the samples of an evaluation to the legacy storage.

    Args:
        control: the control plane.
        evaluation_id: the evaluation.
    """

    repeatable = False  # the same rows would be there twice

    def __init__(self, control: ControlPlane, evaluation_id: str) -> None:
        self._control = control
        self._path = {"evaluation_id": evaluation_id}

    async def send(self, parcel: Parcel) -> None:
        body = await off_loop(_push_body, parcel)
        await self._control.call(
            PUSH_EVALUATION_SAMPLES, body, path=self._path, timeout=SAMPLES_TIMEOUT
        )


def _push_body(parcel: Parcel) -> bytes:
    rows = {"samples": list(samples_of(parcel))}
    body = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_SAMPLES_BYTES:
        raise ValueError(
            f"samples of {len(body)} bytes are above the {MAX_SAMPLES_BYTES} of a request"
        )
    return body
