"""The checkpoints that a run's config makes it save, and what is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from prime_local.contract.document import JsonObject
from prime_local.training.runs.record import Run, Status

# A real one has 11 to 12 bytes for each parameter.
CHECKPOINT_BYTES = 256 * 1024
_PIECE = 64 * 1024
_SHARDS = 2


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was saved.

    Args:
        step: the step that it is of.
        at: when, in the platform's seconds since 1970.
        kept: whether it is still there: `keep_last` and `keep_interval` say which are.
    """

    step: int
    at: float
    kept: bool


def checkpoints(run: Run, now: float) -> list[Checkpoint]:
    """Return what a run has saved by `now`, the oldest first."""
    table = _table(run)
    saved: dict[int, float] = {}
    for stretch in run.stretches(now):
        for number in _due(run, table, stretch.first, stretch.last):
            saved[number] = stretch.began_at + (number - stretch.first) * run.step_seconds
    if run.status is Status.PAUSED and run.timeline[-1].at <= now:
        saved[run.timeline[-1].step] = run.timeline[-1].at
    kept = _kept(table, sorted(saved))
    return [Checkpoint(number, saved[number], number in kept) for number in sorted(saved)]


def latest_step(run: Run, now: float) -> int:
    """Return the step that a restart goes on from: that of the newest checkpoint, or the first."""
    return max((each.step for each in checkpoints(run, now)), default=run.started_from)


def folder(run_id: str, number: int) -> str:
    """Return where the checkpoint of a step is on the run's volume."""
    return f"runs/{run_id}/checkpoints/step_{number}"


def files(run_id: str, number: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the files of a checkpoint, by their path on the volume, with their pieces.

    The bytes follow from the run and the step: whoever knows both can tell whether a copy is good.
    """
    place = folder(run_id, number)
    yield f"{place}/trainer/.metadata", [f"{run_id} step {number} (simulated)\n".encode()]
    for shard in range(_SHARDS):
        seed = hashlib.sha256(f"{run_id} {number} {shard}".encode()).digest()
        size = CHECKPOINT_BYTES // _SHARDS
        pieces = [
            hashlib.shake_256(seed + bytes([index])).digest(_PIECE)
            for index in range(size // _PIECE)
        ]
        yield f"{place}/trainer/__{shard}_0.distcp", pieces


def _table(run: Run) -> JsonObject | None:
    table = run.config.get("ckpt")
    return table if isinstance(table, dict) else None


def _due(run: Run, table: JsonObject | None, first: int, last: int) -> Iterator[int]:
    """Yield the steps of a stretch that are saved: each `interval`, and the last of all."""
    if table is None:
        return
    interval = table.get("interval")
    if interval:
        yield from range((first // interval + 1) * interval, last + 1, interval)
    if run.max_steps == last > first:
        yield last


def _kept(table: JsonObject | None, steps: list[int]) -> set[int]:
    newest, every = (table or {}).get("keep_last"), (table or {}).get("keep_interval")
    if newest is None:
        # Without a number to keep, nothing is deleted but what `keep_interval` leaves out.
        return {each for each in steps if not every or each % every == 0 or each == steps[-1]}
    pinned = {each for each in steps if every and each % every == 0}
    return pinned | set(steps[-newest:] if newest else ())
