"""What happens to a run by itself, and when."""

from __future__ import annotations

from prime_local.training.runs.admission import table
from prime_local.training.runs.record import Moment, Run, Status, step

_ON_THE_WAY = {
    Status.PENDING: Status.CREATING,
    Status.CREATING: Status.PULLING_IMAGE,
    Status.PULLING_IMAGE: Status.RUNNING,
}


def next_moment(run: Run) -> Moment | None:
    """Return the next state that a run comes into by itself, and when; None for none."""
    if run.status.final:
        return None
    coming = _by_itself(run, run.timeline[-1])
    if run.stops_at is not None and (coming is None or run.stops_at <= coming.at):
        return Moment(Status.STOPPED, run.stops_at, step(run, run.stops_at))
    return coming


def _by_itself(run: Run, last: Moment) -> Moment | None:
    if last.status in _ON_THE_WAY:
        at = last.at + run.setup_seconds
        if run.doom is not None and last.status is Status.CREATING:
            return Moment(Status.FAILED, at, last.step)
        return Moment(_ON_THE_WAY[last.status], at, last.step)
    if last.status is Status.RUNNING and run.max_steps is not None:
        trained_at = last.at + max(0, run.max_steps - last.step) * run.step_seconds
        return Moment(Status.COMPLETED, trained_at + _drain(run), max(last.step, run.max_steps))
    if last.status is Status.PAUSING:
        stretch = run.stretches(last.at)[-1]
        final = stretch.last + 1
        if run.max_steps is not None:
            final = min(final, run.max_steps)
        at = stretch.began_at + (final - stretch.first) * run.step_seconds
        return Moment(Status.PAUSED, max(at, last.at), final)
    return None


def _drain(run: Run) -> float:
    """Return how long the evaluations of the last checkpoint of an SFT run take."""
    evaluates = run.mode == "sft" and table(run.config, "eval") is not None
    return run.step_seconds if evaluates else 0.0
