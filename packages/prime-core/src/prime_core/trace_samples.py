"""Traces and episodes in the form of verifiers v1 as samples, the older form of the platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["nested", "reward_of", "sample_of_trace", "samples_of_episode"]

# What of a trace goes into the free part of its sample.
_TOLD = ("info", "errors", "stop_condition", "timing", "run")


def samples_of_episode(episode: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A sample for each trace of an episode."""
    for number, trace in enumerate(episode.get("traces") or ()):
        if isinstance(trace, Mapping):
            place = {"episode_id": episode.get("id"), "rollout_number": number}
            yield {**sample_of_trace(trace, nested(episode, "task")), **place}


def sample_of_trace(
    trace: Mapping[str, Any], episode_task: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The sample of a trace; what it has not is left out.

    Args:
        trace: the trace's record.
        episode_task: the task of its episode, for a trace that has none of its own.
    """
    data = nested(trace, "task", "data") or nested(episode_task or {}, "data")
    nodes = [node for node in trace.get("nodes") or () if isinstance(node, Mapping)]
    messages = [nested(node, "message") for node in nodes]
    sampled = [bool(node.get("sampled")) for node in nodes]
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
        "info": {name: trace[name] for name in _TOLD if trace.get(name)},
    }
    return {name: value for name, value in row.items() if value is not None}


def reward_of(trace: Mapping[str, Any]) -> float | None:
    """The weighted sum of a trace's scores; None when it has none."""
    weighted = [
        float(reward["score"]) * float(reward.get("weight", 1.0))
        for reward in nested(trace, "rewards").values()
        if isinstance(reward, Mapping) and reward.get("score") is not None
    ]
    return sum(weighted) if weighted else None


def nested(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The mapping within nested mappings, or an empty one."""
    for name in names:
        inner = value.get(name)
        if not isinstance(inner, Mapping):
            return {}
        value = inner
    return value
