"""Figures of an evaluation, computed from its episodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from prime_core.trace_samples import reward_of
from prime_traces.runs.records import as_record

__all__ = ["from_episodes"]


def from_episodes(
    episodes: Iterable[object], traces: Iterable[object] | None = None
) -> dict[str, Any]:
    """Averages of the traces that count: those of trainable agents, or all if there are none.

    Args:
        episodes: episode records, or objects with ``to_record()``.
        traces: the traces to count, in place of those within the episodes.

    Returns:
        ``avg_reward`` (the mean over scored traces, None without one), ``avg_metrics`` (by
        name, the mean over the traces that have it) and ``avg_error`` (the share of traces
        that ended in an error, None without a trace).

    Raises:
        TypeError: something that is no record.
    """
    if traces is None:
        members = [as_record(trace) for each in episodes for trace in _members(as_record(each))]
    else:
        members = [as_record(trace) for trace in traces]
    counted = [trace for trace in members if _trainable(trace)] or members
    rewards = [reward for trace in counted if (reward := reward_of(trace)) is not None]
    named: dict[str, list[float]] = {}
    for trace in counted:
        for name, value in _numbers(trace.get("metrics")).items():
            named.setdefault(name, []).append(value)
    return {
        "avg_reward": fmean(rewards) if rewards else None,
        "avg_metrics": {name: fmean(values) for name, values in named.items()},
        "avg_error": fmean(map(has_error, counted)) if counted else None,
    }


def has_error(trace: Mapping[str, Any]) -> bool:
    """Whether a trace ended in an error."""
    return not trace["ok"] if "ok" in trace else bool(trace.get("errors"))


def _members(episode: Mapping[str, Any]) -> Iterable[object]:
    members = episode.get("traces")
    return [episode] if members is None else members


def _trainable(trace: Mapping[str, Any]) -> bool:
    agent = trace.get("agent")
    return bool(agent.get("trainable", True)) if isinstance(agent, Mapping) else True


def _numbers(metrics: object) -> dict[str, float]:
    if not isinstance(metrics, Mapping):
        return {}
    return {
        str(name): float(value)
        for name, value in metrics.items()
        if isinstance(value, (int, float))
    }
