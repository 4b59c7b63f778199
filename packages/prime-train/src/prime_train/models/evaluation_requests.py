"""What is said of an evaluation on the wire."""

from __future__ import annotations

from typing import ClassVar, Literal

from prime_core.models import RequestModel
from prime_train.models.documents import Document
from prime_train.models.evaluations import EnvironmentReference

__all__ = [
    "BulkDeleteBody",
    "CreateEvaluationBody",
    "FinalizeBody",
    "UpdateEvaluationBody",
]


class CreateEvaluationBody(RequestModel):
    """The body of a create, but for the team."""

    omits_null: ClassVar[bool] = True

    name: str
    environments: list[EnvironmentReference] | None = None
    suite_id: str | None = None
    run_id: str | None = None
    model_name: str | None = None
    dataset: str | None = None
    framework: str | None = None
    task_type: str | None = None
    description: str | None = None
    tags: list[str]
    metadata: Document | None = None
    metrics: Document | None = None
    is_public: bool


class UpdateEvaluationBody(RequestModel):
    """The body of an update: what is left out stays."""

    omits_null: ClassVar[bool] = True

    name: str | None = None
    model_name: str | None = None
    dataset: str | None = None
    framework: str | None = None
    task_type: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    metadata: Document | None = None
    metrics: Document | None = None
    is_public: bool | None = None
    status: Literal["FAILED", "CANCELLED"] | None = None
    error_message: str | None = None


class FinalizeBody(RequestModel):
    """The body that completes an evaluation."""

    omits_null: ClassVar[bool] = True

    metrics: Document | None = None


class BulkDeleteBody(RequestModel):
    """The body of a bulk delete."""

    evaluation_ids: list[str]
