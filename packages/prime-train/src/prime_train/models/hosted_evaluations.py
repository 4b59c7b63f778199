"""Evaluations that the platform runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator

from prime_core.models import RequestModel, ResponseModel
from prime_train.models.documents import Document

__all__ = [
    "CancelledEvaluation",
    "CreatedHostedEvaluation",
    "HostedEvalConfig",
    "InferenceModel",
]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class HostedEvalConfig(RequestModel):
    """How a hosted evaluation runs.

    Follows the documented page "tutorials-environments/hosted-evaluations".

    Attributes:
        num_examples: examples of each environment, at least 1, or -1 for all.
        rollouts_per_example: 1 to 2048.
        env_args: passed to the environment's loader.
        extra_env_kwargs: passed to the environment's constructor.
        allow_sandbox_access: whether the run may use sandboxes. Sent always: the platform's own
            default is not the documented one.
        allow_instances_access: whether it may use pods.
        allow_tunnel_access: whether it may use tunnels; sent always, too.
        timeout_minutes: 120 to 1440; 1440 without it.
        custom_secrets: variables for this run only, by name. Left out of `repr`.
        sampling_args: for the model, such as ``temperature``.
        max_concurrent: most rollouts at once, at least 1.
        max_retries: at least 0.
        state_columns: further columns to keep.
        independent_scoring: whether each rollout is scored by itself.
        verbose: whether it logs more.
        headers: ``Name: Value`` texts for the model's endpoint. Left out of `repr`.
        api_client_type: protocol of the model's endpoint.
        api_base_url: an inference endpoint of your own.
        api_key_var: the variable, of ``custom_secrets`` for one, that holds its key.

    Raises:
        pydantic.ValidationError: a `ValueError`; a limit above is not kept.
    """

    omits_null: ClassVar[bool] = True
    always_sent: ClassVar[frozenset[str]] = frozenset(
        {"num_examples", "rollouts_per_example", "allow_sandbox_access", "allow_tunnel_access"}
    )

    num_examples: int = Field(default=5, ge=-1)
    rollouts_per_example: int = Field(default=3, ge=1, le=2048)
    env_args: Document | None = None
    extra_env_kwargs: Document | None = None
    allow_sandbox_access: bool = True
    allow_instances_access: bool | None = None
    allow_tunnel_access: bool = True
    timeout_minutes: int | None = Field(default=None, ge=120, le=1440)
    custom_secrets: Mapping[str, str] | None = Field(default=None, repr=False)
    sampling_args: Document | None = None
    max_concurrent: int | None = Field(default=None, ge=1)
    max_retries: int | None = Field(default=None, ge=0)
    state_columns: list[str] | None = None
    independent_scoring: bool | None = None
    verbose: bool | None = None
    headers: list[str] | None = Field(default=None, repr=False)
    api_client_type: str | None = None
    api_base_url: str | None = None
    api_key_var: str | None = None

    @field_validator("num_examples")
    @classmethod
    def _some(cls, value: int) -> int:
        if value == 0:
            raise ValueError("at least 1, or -1 for all")
        return value

    @field_validator("custom_secrets")
    @classmethod
    def _named(cls, value: Mapping[str, str] | None) -> Mapping[str, str] | None:
        for name in value or ():
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable")
        return value


class CreateHostedBody(RequestModel):
    """The body of a create, but for the team."""

    omits_null: ClassVar[bool] = True

    environment_ids: list[str]
    inference_model: str
    eval_config: dict[str, Any]
    name: str | None = None


class CreatedHostedEvaluation(ResponseModel):
    """A hosted evaluation that was started.

    Attributes:
        evaluation_id: the evaluation, the first where there are several.
        evaluation_ids: one for each environment, where there are several.
        status: its state.
        sandbox_id: where it runs, if that is known yet.
        error: why it could not start.
    """

    evaluation_id: str | None = None
    evaluation_ids: list[str] | None = None
    status: str | None = None
    sandbox_id: str | None = None
    error: str | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of all evaluations that it made."""
        first = [self.evaluation_id] if self.evaluation_id else []
        return list(dict.fromkeys([*first, *(self.evaluation_ids or ())]))


class HostedEvaluationLogs(ResponseModel):
    """The log of a hosted evaluation.

    Attributes:
        logs: all lines so far, or what the platform says in their place.
    """

    logs: str = ""


class CancelledEvaluation(ResponseModel):
    """A hosted evaluation that was cancelled.

    Attributes:
        success: whether it was.
        message: the platform's words.
        evaluation_id: the evaluation.
        status: its state now.
    """

    success: bool = True
    message: str | None = None
    evaluation_id: str | None = None
    status: str | None = None


class InferenceModel(ResponseModel):
    """A model that a hosted evaluation can use.

    Attributes:
        id: its name, for ``inference_model``.
    """

    id: str


class InferenceModelList(ResponseModel):
    """All models that a hosted evaluation can use."""

    models: list[InferenceModel] = Field(default_factory=list)


class PutLogsBody(RequestModel):
    """The body that stores a log."""

    logs: str
