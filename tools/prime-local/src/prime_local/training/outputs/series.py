"""What is kept of each step of a run: metrics, samples, distributions, and how far it is."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.training.outputs import figures
from prime_local.training.runs.record import Run
from prime_local.training.runs.wire import date

# The steps that have samples and distributions.
SAMPLED_EVERY = 10
# By type: the least value, the width of a bin, and how many there are.
_BINS = {"rewards": (0.0, 0.2, 5), "advantages": (-1.0, 0.2, 10)}


def done_steps(run: Run, now: float) -> dict[int, float]:
    """Return the steps that are done by `now`, in their order, each with its time.

    After a restart, steps are done again.
    """
    found: dict[int, float] = {}
    for stretch in run.stretches(now):
        for number in range(stretch.first + 1, stretch.last + 1):
            found[number] = stretch.began_at + (number - stretch.first) * run.step_seconds
    return dict(sorted(found.items()))


def metrics(
    run: Run, now: float, first: int | None, last: int | None, limit: int | None
) -> list[JsonObject]:
    """Return a record for each step that is done, of those that are asked for."""
    asked = [
        (number, at)
        for number, at in done_steps(run, now).items()
        if (first is None or number >= first) and (last is None or number <= last)
    ]
    return [_record(run, number, at) for number, at in asked[:limit]]


def progress(run: Run, now: float) -> JsonObject:
    """Return the `RunProgress` object of the contract."""
    done = done_steps(run, now)
    sampled = _sampled(run, list(done))
    newest = max(done, default=None)
    return {
        "latestStep": newest,
        "stepsWithSamples": sampled,
        "stepsWithDistributions": sampled,
        "lastUpdatedAt": None if newest is None else date(done[newest]),
    }


def samples(run: Run, now: float, step: int, page: int, limit: int) -> JsonObject:
    """Return the `RunSamples` object of the contract; a step without samples has none."""
    found = figures.rollouts(run, step) if step in _sampled(run, list(done_steps(run, now))) else []
    first = (page - 1) * limit
    rows = [
        _sample(number, each)
        for number, each in enumerate(found[first : first + limit], start=first)
    ]
    return {
        "run_id": run.id,
        "samples": rows,
        "total": len(found),
        "page": page,
        "limit": limit,
        "total_pages": -(-len(found) // limit),
    }


def distribution(run: Run, now: float, kind: str, step: int | None) -> JsonObject:
    """Return the `RunDistributions` object of the contract.

    Raises:
        PlatformError: 404 for an unknown kind.
    """
    if kind not in _BINS:
        raise PlatformError(404, f"No distribution of {kind!r}: there are {', '.join(_BINS)}")
    sampled = _sampled(run, list(done_steps(run, now)))
    if step is None:
        step = max(sampled, default=None)
    found = figures.rollouts(run, step) if step in sampled and step is not None else []
    values = [each.reward if kind == "rewards" else each.advantage for each in found]
    return {"chartData": {"histogramData": _histogram(kind, values)}, "step": step}


def _record(run: Run, step: int, at: float) -> JsonObject:
    record: JsonObject = {
        "step": step,
        "loss/mean": figures.loss(run, step),
        "entropy/mean": figures.entropy(run, step),
        "optim/lr": figures.learning_rate(run),
        "optim/grad_norm": figures.gradient(run, step),
        "perf/throughput": figures.throughput(run, step),
        "progress/tokens": figures.tokens(run, step),
        "time/step": run.step_seconds,
        "_timestamp": round(at, 3),
    }
    if run.mode == "sft":
        return {**record, "loss/perplexity": round(math.exp(record["loss/mean"]), 6)}
    rewards = {
        f"reward/{name}/mean": figures.mean_reward(run, step, name)
        for name in figures.env_names(run)
    }
    return {**record, "reward/all/mean": figures.mean_reward(run, step), **rewards}


def _sampled(run: Run, done: Sequence[int]) -> list[int]:
    return [each for each in done if each % SAMPLED_EVERY == 0] if run.mode == "rl" else []


def _sample(number: int, rollout: figures.Rollout) -> JsonObject:
    question = f"Problem {rollout.problem} of {rollout.env_name} (simulated by prime-local)"
    answer = f"An answer worth {rollout.reward}"
    return {
        "sample_id": number,
        "problem_id": rollout.problem,
        "env_name": rollout.env_name,
        "prompt": json.dumps([{"role": "user", "content": question}]),
        "completion": json.dumps([{"role": "assistant", "content": answer}]),
        "reward": rollout.reward,
        "advantage": rollout.advantage,
        "num_turns": rollout.turns,
    }


def _histogram(kind: str, values: Sequence[float]) -> list[JsonObject]:
    if not values:
        return []
    least, width, bins = _BINS[kind]
    counts = [0] * bins
    for value in values:
        counts[max(0, min(int((value - least) / width + 1e-9), bins - 1))] += 1
    edges = [round(least + number * width, 3) for number in range(bins + 1)]
    return [
        {"binStart": low, "binEnd": high, "count": count, "range": f"{low:.3f}-{high:.3f}"}
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
