"""Traces as rows of the platform's legacy sample storage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from prime_core.trace_samples import sample_of_trace, samples_of_episode
from prime_traces.runs.parcels import Parcel

__all__ = ["samples_of"]


def samples_of(parcel: Parcel) -> Iterator[dict[str, Any]]:
    """A row for each trace, those within episodes too."""
    for line in parcel.lines:
        record = json.loads(line)
        if parcel.kind == "trace":
            yield sample_of_trace(record)
        else:
            yield from samples_of_episode(record)
