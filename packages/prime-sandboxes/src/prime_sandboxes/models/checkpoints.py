"""Checkpoints: saved files of sandboxes and of volumes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from prime_core.models import RequestModel, ResponseModel, UtcDatetime


class SandboxCheckpoint(ResponseModel):
    """Saved files. Follows the pages "sandboxes/checkpoints" and "sandboxes/volumes".

    Attributes:
        id: names it; a sandbox is restored with it as `checkpoint_id`.
        sandbox_id: the sandbox whose files it holds.
        parent_id: the checkpoint that it builds on.
        team_id: owning team; `None` is personal.
        state: `DURABLE` once it can be used, `FAILED`, `DELETING`, or any other word while it is
            in progress.
        depth: length of the chain of parents.
        docker_image: the sandbox's image.
        disk_size_bytes: size of the disk.
        stored_bytes: compressed size, which is billed.
        occupied_bytes: size of the data, which counts for the storage quota.
        error: why it failed.
        created_at: time of creation.
        updated_at: time of the last change.
    """

    id: str
    sandbox_id: str
    parent_id: str | None = None
    team_id: str | None = None
    state: str
    depth: int
    docker_image: str
    disk_size_bytes: int | None = None
    stored_bytes: int | None = None
    occupied_bytes: int = 0
    error: str | None = None
    created_at: UtcDatetime
    updated_at: UtcDatetime


class CheckpointList(ResponseModel):
    """The checkpoints of a sandbox.

    Attributes:
        checkpoints: oldest first.
    """

    checkpoints: list[SandboxCheckpoint]


class BatchCheckpointRequest(RequestModel):
    """Asks for many checkpoints.

    Attributes:
        checkpoint_ids: 1 to 100 different ids of 1 to 64 characters.
    """

    checkpoint_ids: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(
        min_length=1, max_length=100
    )

    @field_validator("checkpoint_ids")
    @classmethod
    def _refuse_repeats(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError("a checkpoint id is repeated")
        return value


class CheckpointLookupError(ResponseModel):
    """A checkpoint that could not be read.

    Attributes:
        checkpoint_id: what was asked for.
        code: `NOT_FOUND`, or a word that is not known here.
        message: why, in words.
    """

    checkpoint_id: str
    code: Literal["NOT_FOUND"] | str
    message: str


class BatchCheckpointResponse(ResponseModel):
    """What was found of many checkpoints.

    Attributes:
        checkpoints: those that were found.
        errors: one for each other id.
    """

    checkpoints: list[SandboxCheckpoint]
    errors: list[CheckpointLookupError]


class CheckpointDeleteError(ResponseModel):
    """A checkpoint that could not be deleted.

    Attributes:
        checkpoint_id: the checkpoint.
        code: `NOT_FOUND`, `CONFLICT` (in progress, or a live sandbox builds on it), or a word that
            is not known here.
        message: why, in words.
    """

    checkpoint_id: str
    code: Literal["NOT_FOUND", "CONFLICT"] | str
    message: str


class DeleteSandboxCheckpointsResponse(ResponseModel):
    """What became of a sandbox's checkpoints.

    Attributes:
        deleted: ids that were deleted.
        errors: one for each that was not.
    """

    deleted: list[str]
    errors: list[CheckpointDeleteError]
