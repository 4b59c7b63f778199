"""What the states of checkpoints mean, and what a fork takes over from its source."""

from __future__ import annotations

from prime_sandboxes.errors import CheckpointFailedError
from prime_sandboxes.fleet_labels import FLEET_LABEL
from prime_sandboxes.models import CreateSandboxRequest, Sandbox, SandboxCheckpoint

__all__ = ["fork_request", "is_durable"]

_LONGEST_NAME = 100
_FORK = "-fork"
# Stands in the request until the checkpoint is there.
_NO_CHECKPOINT = "none-yet"


def is_durable(checkpoint: SandboxCheckpoint) -> bool:
    """Whether a checkpoint can be used; False while it is in progress, whatever that is called.

    Raises:
        CheckpointFailedError: it never will.
    """
    if checkpoint.state in ("FAILED", "DELETING"):
        raise CheckpointFailedError(checkpoint.id, checkpoint.state, checkpoint.error)
    return checkpoint.state == "DURABLE"


def fork_request(
    source: Sandbox | None,
    name: str | None,
    cpu_cores: float | None,
    memory_gb: float | None,
    timeout_minutes: int | None,
) -> CreateSandboxRequest:
    """Returns the request for a fork, without its checkpoint yet.

    Args:
        source: the sandbox to fork; without one this only checks the other arguments.

    Raises:
        pydantic.ValidationError: a limit is not kept.
    """
    fields: dict[str, object] = {"name": _FORK}
    if source is not None:
        fields = {
            "name": source.name[: _LONGEST_NAME - len(_FORK)] + _FORK,
            "cpu_cores": source.cpu_cores,
            "memory_gb": source.memory_gb,
            "gpu_count": source.gpu_count,
            "gpu_type": source.gpu_type,
            "timeout_minutes": source.timeout_minutes,
            # A fleet deletes by its label what it has not made, if it is told to sweep.
            "labels": [each for each in source.labels if not each.startswith(FLEET_LABEL)],
            "region": source.region,
            # "" is the personal account: None would be the client's team.
            "team_id": source.team_id or "",
            # What was cut off from the network must not get it back by being forked.
            "network_allowlist": source.network_allowlist,
            "network_denylist": source.network_denylist,
        }
    given = {
        "name": name,
        "cpu_cores": cpu_cores,
        "memory_gb": memory_gb,
        "timeout_minutes": timeout_minutes,
    }
    fields.update({field: value for field, value in given.items() if value is not None})
    return CreateSandboxRequest.model_validate({**fields, "checkpoint_id": _NO_CHECKPOINT})
