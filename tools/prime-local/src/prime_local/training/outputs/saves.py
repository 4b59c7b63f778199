"""The checkpoints of a run, as clients see them."""

from __future__ import annotations

import hashlib

from prime_local.contract.document import JsonObject
from prime_local.training.runs.checkpoints import (
    CHECKPOINT_BYTES,
    Checkpoint,
    checkpoints,
    files,
    folder,
)
from prime_local.training.runs.record import Run
from prime_local.training.runs.wire import date

_ID_LENGTH = 24


def checkpoint_rows(run: Run, now: float, status: str | None) -> list[JsonObject]:
    """Return the `RunCheckpoint` objects of the contract, of those that are still there.

    They are UPLOADING until the volume has got them, at the run's end. Without a volume, a
    checkpoint is gone with the pods.
    """
    if run.volume is None and run.status.final:
        return []
    rows = [_row(run, each) for each in checkpoints(run, now) if each.kept]
    return [row for row in rows if status in (None, row["status"])]


def _row(run: Run, saved: Checkpoint) -> JsonObject:
    ready = saved.step in run.saved
    name = hashlib.sha256(f"{run.id} {saved.step}".encode()).hexdigest()
    _, metadata = next(files(run.id, saved.step))
    return {
        "id": f"c{name[: _ID_LENGTH - 1]}",
        "rftRunId": run.id,
        "step": saved.step,
        "storageUrl": folder(run.id, saved.step),
        "status": "READY" if ready else "UPLOADING",
        "sizeBytes": CHECKPOINT_BYTES + sum(map(len, metadata)),
        "createdAt": date(saved.at),
        "uploadedAt": date(run.updated_at) if ready else None,
    }
