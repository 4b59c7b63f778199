"""Traces as rows of the platform's legacy sample storage."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from prime_traces.runs.metrics import reward_of
from prime_traces.runs.parcels import Parcel

__all__ = ["samples_of"]


def samples_of(parcel: Parcel) -> Iterator[dict[str, Any]]:
    """A row for each trace, those within episodes too."""
    for line in parcel.lines:
        record = json.loads(line)
        if parcel.kind == "trace":
            yield _sample(record, None)
            continue
        for number, trace in enumerate(record["traces"]):
            yield {**_sample(trace, record.get("task")), **_place(record, number)}


def _place(episode: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"episode_id": episode.get("id"), "rollout_number": number}


def _sample(trace: Mapping[str, Any], episode_task: object) -> dict[str, Any]:
    task = trace.get("task") or episode_task
    data = _mapping(_mapping(task).get("data"))
    messages = [_mapping(node.get("message")) for node in trace.get("nodes") or ()]
    sampled = [bool(node.get("sampled")) for node in trace.get("nodes") or ()]
    first = sampled.index(True) if True in sampled else len(messages)
    row = {
        "sample_id": trace.get("id"),
        "example_id": data.get("idx", data.get("id")),
        "task": data or None,
        "prompt": messages[:first],
        "completion": messages[first:],
        "answer": data.get("answer"),
        "reward": reward_of(trace),
        "metrics": trace.get("metrics"),
        "num_steps": sum(sampled),
        "info": {
            name: trace[name]
            for name in ("info", "errors", "stop_condition", "timing", "run")
            if trace.get(name)
        },
    }
    return {name: value for name, value in row.items() if value is not None}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
