"""Training runs that are executed elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import AliasChoices, Field

from prime_core.models import RequestModel, ResponseModel
from prime_train.models.wrapped import Wrapped

__all__ = ["ExternalRun", "ExternalRunEnvironment"]


class ExternalRunEnvironment(RequestModel):
    """An environment that an external run trains on.

    Attributes:
        id: of the hub: ``owner/name``, a bare name or its id.
        version_id: one of its versions.
    """

    omits_null: ClassVar[bool] = True

    id: str = Field(min_length=1)
    version_id: str | None = None


class CreateExternalRunBody(RequestModel):
    """What an external run is registered by."""

    omits_null: ClassVar[bool] = True

    base_model: str = Field(min_length=1)
    max_steps: int = Field(ge=0)
    environments: list[ExternalRunEnvironment]
    name: str
    batch_size: int | None = Field(None, ge=1)
    rollouts_per_example: int | None = Field(None, ge=1)
    seq_len: int | None = Field(None, ge=1)
    run_config: Mapping[str, Any] | None = None
    wandb_project: str | None = None
    wandb_entity: str | None = None
    wandb_run_name: str | None = None


class SetExternalRunStatusBody(RequestModel):
    """How an external run ended."""

    omits_null: ClassVar[bool] = True

    status: Literal["completed", "failed"]
    error_message: str | None = None


class FinalizeExternalRunBody(RequestModel):
    """How the process of an external run ended."""

    run_id: str
    exit_code: int


class LogExternalRunMetricsBody(RequestModel):
    """Metrics of one step."""

    run_id: str
    metrics: Mapping[str, Any]


class PresignSamplesBody(RequestModel):
    """Which samples are to come."""

    run_id: str
    step: int


class ConfirmSamplesBody(RequestModel):
    """Which samples have been put."""

    run_id: str
    step: int
    s3_key: str


class ExternalRun(ResponseModel):
    """A training run that is executed elsewhere.

    Attributes:
        id: of the run.
        name: what it is called, with a mark such as ``-3f9a2c41d0``.
    """

    id: str
    name: str | None = None


class ExternalRunEnvelope(ResponseModel):
    """What a create answers."""

    run: ExternalRun


class ExternalRunPage(ResponseModel):
    """The part of a list of runs that tells what a create has made."""

    runs: list[ExternalRun]


class SamplesTicket(Wrapped):
    """Where the samples of a step go.

    Attributes:
        url: where to put them.
        s3_key: what they are confirmed by.
    """

    url: str = Field(validation_alias=AliasChoices("presignedUrl", "presigned_url"), repr=False)
    s3_key: str = Field(validation_alias=AliasChoices("s3Key", "s3_key"))
