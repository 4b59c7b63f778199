"""What runs look like to clients."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from prime_local.contract.document import JsonObject
from prime_local.sandboxes.record import wire_date
from prime_local.training.runs.admission import table
from prime_local.training.runs.record import Run, Status


def to_wire(run: Run, runs_ahead: int, *, detail: bool = True) -> JsonObject:
    """Return the `Run` object of the contract.

    Args:
        run: the run.
        runs_ahead: how many runs wait for the same GPUs before it.
        detail: whether it is read by itself; lists leave the volume out.
    """
    queued = run.status is Status.QUEUED
    wire = {
        "id": run.id,
        "name": run.name,
        "userId": run.owner.user_id,
        "teamId": run.owner.team_id,
        "status": run.status.value,
        "kind": run.kind,
        "rftClusterId": None,
        "primeClusterId": run.cluster_id,
        "gpuCount": run.gpus,
        "sourceCommit": None,
        "baseModel": run.model,
        "environments": run.environments,
        "maxSteps": run.max_steps,
        "loss": run.mode,
        "runConfig": run.config,
        "runsAhead": runs_ahead if queued else None,
        "queueReason": f"No room for {run.gpus} GPUs of type {run.gpu_type}" if queued else None,
        "errorMessage": run.error_message,
        "failureAnalysis": run.failure_analysis,
        "createdAt": date(run.created_at),
        "updatedAt": date(run.updated_at),
        "startedAt": None if run.started_at is None else date(run.started_at),
        "completedAt": None if run.completed_at is None else date(run.completed_at),
        **_described(run.config, run.mode),
    }
    return {**wire, "volumeName": run.volume} if detail else wire


def to_dispatch_wire(run: Run, token: str) -> JsonObject:
    """Return the `TrainingRunDispatch` object of the contract."""
    on_demand = not run.reserved
    return {
        "runId": run.id,
        "tokenValue": token,
        "onDemand": on_demand,
        "gpuType": run.gpu_type,
        "pricePerGpuHour": float(run.price) if on_demand else None,
        "estimatedCostPerHour": float(run.hourly) if on_demand else None,
        "isBeta": on_demand,
    }


def date(seconds: float) -> str:
    """Return a time in seconds since 1970 as clients see it."""
    return wire_date(datetime.fromtimestamp(seconds, timezone.utc))


def _described(config: JsonObject, mode: str) -> JsonObject:
    """Return what rows say about the config."""
    if mode == "sft":
        data, optim = table(config, "data") or {}, table(config, "optim") or {}
        return {
            "batchSize": _number(data.get("batch_size")),
            "seqLen": _number(data.get("seq_len")),
            "learningRate": _fraction(optim.get("lr")),
            "evalConfig": table(config, "eval"),
            "valConfig": table(config, "val"),
        }
    train = table(config, "orchestrator", "train") or {}
    sampling = table(train, "sampling") or {}
    most = sampling.get("max_completion_tokens", sampling.get("max_tokens"))
    return {
        "batchSize": _number((table(config, "orchestrator") or {}).get("batch_size")),
        "rolloutsPerExample": _number(train.get("group_size")),
        "seqLen": _number(config.get("seq_len")),
        "maxTokens": _number(most),
        "learningRate": _fraction((table(config, "trainer", "optim") or {}).get("lr")),
        "evalConfig": table(config, "orchestrator", "eval"),
        "wandbProject": (table(config, "wandb") or {}).get("project"),
        "wandbRunName": (table(config, "wandb") or {}).get("name"),
    }


def _number(value: object) -> int | None:
    return value if type(value) is int else None


def _fraction(value: object) -> float | None:
    """A number of the config; another value, which prime-rl itself would refuse, is not told."""
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None
